import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from retable.hstu.bias import RelativeBias, time_bucket


def test_time_bucket_vectors():
    delta = torch.tensor([0, 1, 2, 60, 3600, 86400, 10**9])
    expected = [0, 0, 2, 13, 27, 37, 68]
    assert time_bucket(delta).tolist() == expected
    assert time_bucket(-delta).tolist() == expected


@given(st.integers(-(2**62), 2**62))
def test_time_bucket_is_the_formula(delta):
    bucket = int(time_bucket(torch.tensor(delta)))
    assert bucket == min(128, math.floor(math.log(max(1, abs(delta))) / 0.301))


def test_time_bucket_stops_at_the_last():
    assert int(time_bucket(torch.tensor(10**9), num_buckets=20)) == 20


def test_position_bias_vector():
    bias = RelativeBias(3)
    with torch.no_grad():
        bias.w_pos.copy_(torch.tensor([10.0, 20, 30, 40, 50]))
        bias.w_time.zero_()
    rows = bias(torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 3, dtype=torch.long))
    assert rows[0, 2].tolist() == [10, 20, 30]
    assert rows[0, 0, 0] == 30


def test_bias_entry_by_entry():
    torch.manual_seed(0)
    bias = RelativeBias(6)
    times = torch.tensor([[0, 5, 5, 4000], [7, 8, 9, 10**8]])
    targets = torch.tensor([[5, 5, 4000, 9000], [8, 9, 10**8, 10**9]])
    rows = bias(times, targets)
    for b in range(2):
        for i in range(4):
            for j in range(4):
                bucket = int(time_bucket(targets[b, i] - times[b, j]))
                expected = bias.w_pos[j - i + 5] + bias.w_time[bucket]
                assert rows[b, i, j] == expected


def test_bias_of_position_alone_ignores_time():
    bias = RelativeBias(4, use_time=False)
    assert [name for name, _ in bias.named_parameters()] == ["w_pos"]
    assert bias(torch.tensor([[1, 2], [3, 9]]), None).shape == (2, 2, 2)


def test_bias_of_time_alone():
    bias = RelativeBias(4, use_position=False)
    times = torch.tensor([[0, 100]])
    rows = bias(times, times)
    assert rows[0, 0, 0] == rows[0, 1, 1] == bias.w_time[0]
    assert rows[0, 1, 0] == bias.w_time[15]


def test_bias_gradients():
    torch.manual_seed(0)
    bias = RelativeBias(4, num_buckets=40).double()
    times = torch.tensor([[0, 50, 4000]])

    def value(w_pos, w_time):
        parameters = {"w_pos": w_pos, "w_time": w_time}
        return torch.func.functional_call(bias, parameters, (times, times + 60))

    assert torch.autograd.gradcheck(value, (bias.w_pos, bias.w_time))


def test_bad_input():
    with pytest.raises(ValueError, match="target_timestamps is None"):
        RelativeBias(4)(torch.zeros(1, 2, dtype=torch.long), None)
    with pytest.raises(ValueError, match=r"timestamps hold 5 slots, more than max_len = 4"):
        RelativeBias(4)(torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, 5, dtype=torch.long))
    with pytest.raises(ValueError, match="both False"):
        RelativeBias(4, use_time=False, use_position=False)
    with pytest.raises(ValueError, match="max_len must be at least 1, got 0"):
        RelativeBias(0)
    with pytest.raises(ValueError, match="num_buckets must be at least 1, got 0"):
        time_bucket(torch.tensor([1]), 0)
