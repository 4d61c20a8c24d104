import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from retable.hstu.cost import (
    activation_bytes_per_token,
    attention_flops,
    layer_flops,
    training_flops,
)
from retable.hstu.layers import HSTULayer


def test_activation_vectors():
    assert activation_bytes_per_token("hstu", d=64, h=2, d_qk=32, d_v=32) == 896
    assert activation_bytes_per_token("transformer", d=64, h=2, d_qk=32, d_v=32) == 2112


def test_hstu_flops_against_a_counter():
    n, d, h, d_qk, d_v = 40, 24, 2, 10, 6
    layer = HSTULayer(d, h, d_qk, d_v, 0.0, n)
    with FlopCounterMode(display=False) as counter:
        layer(torch.randn(1, n, d))
    # The plain layer multiplies all n^2 pairs, twice the causal half without its diagonal.
    full = 2 * n * n * h * (d_qk + d_v)
    expected = counter.get_total_flops() - full + attention_flops(n, h, d_qk, d_v)
    assert layer_flops("hstu", n, d, h, d_qk, d_v) == expected


def test_transformer_flops():
    n, d = 10, 8
    assert layer_flops("transformer", n, d, 2, 4, 4) == (
        2 * n * d * 4 * d + 2 * n * d * 8 * d + attention_flops(n, 2, 4, 4)
    )
    assert layer_flops("transformer", n, d, d_ff=d) == (
        2 * n * d * 4 * d + 2 * n * d * 2 * d + attention_flops(n, 1, d, d)
    )


def test_training_flops():
    assert training_flops(parameters=10, tokens=7, attention=100) == 720


def test_bad_input():
    with pytest.raises(ValueError, match=r"kind must be one of \['hstu', 'transformer'\], got"):
        layer_flops("gru", 4, 4)
    with pytest.raises(ValueError, match="got 'gru'"):
        activation_bytes_per_token("gru", 4, 1, 4, 4)
