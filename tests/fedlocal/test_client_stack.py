import copy

import pytest
import torch
from torch import nn

from retable.fedlocal.client_stack import ClientStack, average_states
from retable.fedlocal.models import small_cnn


def batch_norm_net():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 2)
    )


def test_average_of_weights_and_counters():
    states = [
        {"w": torch.tensor([1.0]), "count": torch.tensor(5)},
        {"w": torch.tensor([3.0]), "count": torch.tensor(7)},
    ]
    average = average_states(states)
    assert average["w"].item() == 2
    assert average["w"].dtype == torch.float32
    assert average["count"].item() == 7
    assert average_states(states, [3, 1])["w"].item() == 1.5


def test_the_order_of_clients_does_not_matter():
    generator = torch.Generator().manual_seed(0)
    states = [{"w": torch.randn(50, generator=generator)} for _ in range(7)]
    torch.testing.assert_close(
        average_states(states)["w"], average_states(states[::-1])["w"], rtol=0, atol=1e-7
    )


@pytest.mark.parametrize(
    ("states", "weights", "message"),
    [
        ([], None, "states is empty"),
        ([{"a": torch.ones(2)}, {"b": torch.ones(2)}], None, r"states\[1\] differs"),
        ([{"a": torch.ones(2)}, {"a": torch.ones(3)}], None, r"states\[1\] differs"),
        ([{"a": torch.ones(2)}] * 2, [1], "weights has 1 entries; it must have 2"),
        ([{"a": torch.ones(2)}] * 2, [1, -1], "must be ≥ 0 with a positive sum"),
        ([{"a": torch.ones(2)}] * 2, [0, 0], "must be ≥ 0 with a positive sum"),
    ],
)
def test_bad_averages(states, weights, message):
    with pytest.raises(ValueError, match=message):
        average_states(states, weights)


@pytest.mark.parametrize("make", [lambda: small_cnn(image=8), batch_norm_net])
def test_copies_train_as_separate_models_do(make):
    torch.manual_seed(0)
    model = make()
    size = 8 if len(model) == 6 else 6
    separate = [copy.deepcopy(model) for _ in range(3)]
    stack = ClientStack(model, 3)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, weight_decay=0.01) for m in separate]
    together = torch.optim.SGD(stack.parameters(), lr=0.1, weight_decay=0.01)
    for _ in range(4):
        x, y = torch.randn(3, 5, 3, size, size), torch.randint(0, 2, (3, 5))
        together.zero_grad()
        torch.vmap(nn.functional.cross_entropy)(stack(x), y).sum().backward()
        together.step()
        for k, (net, optimizer) in enumerate(zip(separate, optimizers, strict=True)):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[k]), y[k]).backward()
            optimizer.step()
    for k, net in enumerate(separate):
        torch.testing.assert_close(stack.state(k), dict(net.state_dict()), rtol=1e-5, atol=1e-6)
    stack.eval()
    for net in separate:
        net.eval()
    x = torch.randn(3, 5, 3, size, size)
    expected = torch.stack([net(batch) for net, batch in zip(separate, x, strict=True)])
    torch.testing.assert_close(stack(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("buffers", [True, False])
def test_the_average_is_that_of_the_states(buffers):
    torch.manual_seed(1)
    stack = ClientStack(batch_norm_net(), 3)
    stack(torch.randn(3, 5, 3, 6, 6))
    with torch.no_grad():
        for value in stack.parameters():
            value += torch.randn_like(value)
    before = [stack.state(k) for k in range(3)]
    expected = average_states(before)
    stack.average(buffers=buffers)
    for k in range(3):
        own = {n: v for n, v in before[k].items() if "running" in n or "tracked" in n}
        torch.testing.assert_close(stack.state(k), expected if buffers else expected | own)


def test_the_model_itself_is_left_alone():
    model = small_cnn(image=8)
    before = copy.deepcopy(model.state_dict())
    stack = ClientStack(model, 2)
    with torch.no_grad():
        for value in stack.parameters():
            value.zero_()
    torch.testing.assert_close(dict(model.state_dict()), dict(before))


def test_nonfinite_clients_are_found():
    stack = ClientStack(small_cnn(image=8), 3)
    assert stack.nonfinite().tolist() == [False] * 3
    next(stack.parameters()).data[1, 0, 0, 0, 0] = torch.inf
    assert stack.nonfinite().tolist() == [False, True, False]


def test_bad_input():
    with pytest.raises(ValueError, match="n_clients is 0; it must be at least 1"):
        ClientStack(small_cnn(image=8), 0)
    with pytest.raises(ValueError, match="x has batches for 2 clients; it must have 3"):
        ClientStack(small_cnn(image=8), 3)(torch.zeros(2, 1, 3, 8, 8))
