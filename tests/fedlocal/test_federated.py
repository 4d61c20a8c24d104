import copy
import functools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, softplus

from retable.common.checkpoints import Checkpoints
from retable.common.errors import InputError
from retable.fedlocal.data_model import FeatureNoiseModel
from retable.fedlocal.federated import (
    client_batches,
    federated_sgd,
    local_gd,
    parallel_sgd,
    round_lengths,
)
from retable.fedlocal.models import small_cnn
from retable.fedlocal.patch_cnn import PatchCNN
from retable.fedlocal.theory import net_growth


def synthetic(seed=0, **change):
    settings = {
        "n_major": 3,
        "n_minor": 1,
        "alpha": 1.0,
        "gamma": 0.5,
        "kappa": 0.2,
        "n": 6,
        "dim": 40,
    }
    model = FeatureNoiseModel(**(settings | change))
    return model, model.clients(np.random.default_rng(seed))


def network(seed=0, filters=5, dim=40, dtype=torch.float64, init_std=0.3):
    torch.manual_seed(seed)
    return PatchCNN(filters, dim, init_std).to(dtype)


def loss_of(net, x, y):
    return softplus(-torch.as_tensor(y).double() * net(torch.as_tensor(x).double())).mean()


def by_autograd(net, clients, rounds, local_steps, lr):
    """Separate copies, autograd and the plain definition of a round."""
    for _ in range(rounds):
        ends = []
        for x, y in clients:
            own = copy.deepcopy(net)
            for _ in range(local_steps):
                (gradient,) = torch.autograd.grad(loss_of(own, x, y), own.weight)
                own.weight.data -= lr * gradient
            ends.append(own.weight.data)
        net.weight.data = torch.stack(ends).mean(0)
    return net.weight.detach()


@pytest.mark.parametrize(("rounds", "local_steps"), [(6, 1), (2, 3), (1, 6)])
def test_local_gd_is_gradient_descent_on_each_clients_loss(rounds, local_steps):
    _, clients = synthetic()
    expected = by_autograd(network(), clients, rounds, local_steps, lr=0.2)
    net = network()
    local_gd(net, clients, rounds=rounds, local_steps=local_steps, lr=0.2)
    torch.testing.assert_close(net.weight.detach(), expected, rtol=1e-12, atol=1e-14)


def test_one_local_step_is_a_global_update():
    _, clients = synthetic(1)
    expected = network()
    for _ in range(20):
        total = sum(loss_of(expected, x, y) for x, y in clients) / len(clients)
        (gradient,) = torch.autograd.grad(total, expected.weight)
        expected.weight.data -= 0.2 * gradient
    net = network(dtype=torch.float32)
    local_gd(net, clients, rounds=20, local_steps=1, lr=0.2)
    torch.testing.assert_close(net.weight.double(), expected.weight, rtol=0, atol=1e-6)


def test_the_gradient_is_that_of_finite_differences():
    _, clients = synthetic(2)
    net = network(init_std=0.5)
    start = net.weight.detach().clone()
    local_gd(net, clients, rounds=1, local_steps=1, lr=1.0)
    step = start - net.weight.detach()
    direction = torch.randn(start.shape, generator=torch.Generator().manual_seed(0)).double()
    values = []
    for sign in (1, -1):
        net.weight.data = start + sign * 1e-5 * direction
        values.append(np.mean([loss_of(net, x, y).item() for x, y in clients]))
    slope = (values[0] - values[1]) / 2e-5
    assert (step * direction).sum().item() == pytest.approx(slope, rel=1e-7)


def test_clients_of_different_sizes_weigh_the_same():
    model, _ = synthetic()
    rng = np.random.default_rng(3)
    clients = [model.sample(k, n, rng) for k, n in enumerate([2, 6, 3, 5])]
    expected = by_autograd(network(), clients, 2, 2, lr=0.3)
    net = network()
    history = local_gd(net, clients, rounds=2, local_steps=2, lr=0.3, test=clients)
    torch.testing.assert_close(net.weight.detach(), expected, rtol=1e-12, atol=1e-14)
    for k, (x, y) in enumerate(clients):
        assert history.test_loss[-1][k] == pytest.approx(loss_of(net, x, y).item(), rel=1e-12)
        right = y * net(torch.as_tensor(x).double()).detach().numpy() > 0
        assert history.test_accuracy[-1][k] == pytest.approx(right.mean())


def test_early_growth_follows_the_theory():
    # One filter and the signal patch alone: a' = (3/2) a² while the derivative is near ½.
    x, y = np.array([[[1.0, 0.0]], [[-1.0, 0.0]]]), np.array([1.0, -1.0])
    net = network(filters=1, dim=2)
    net.weight.data = torch.tensor([[0.05, 0.0]], dtype=torch.float64)
    local_gd(net, [(x, y)], rounds=1, local_steps=30, lr=0.2)
    a = net.weight[0, 0].item()
    assert a == pytest.approx(0.0895019450, rel=2e-4)
    continuous = 0.05 * (1 + net_growth(1.5 * 0.2 * 30 * 0.05, 1, 0.65, 0))
    assert continuous == pytest.approx(0.0909090909, abs=1e-10)


def test_one_shot_of_identical_clients_is_single_training():
    _, clients = synthetic(4)
    single, shared = network(), network()
    local_gd(single, clients[:1], rounds=1, local_steps=15, lr=0.2)
    local_gd(shared, clients[:1] * 4, rounds=1, local_steps=15, lr=0.2)
    torch.testing.assert_close(single.weight, shared.weight, rtol=1e-13, atol=0)


def test_the_order_of_clients_leaves_the_average_unchanged():
    _, clients = synthetic(5)
    one, other = network(), network()
    local_gd(one, clients, rounds=3, local_steps=4, lr=0.2)
    local_gd(other, clients[::-1], rounds=3, local_steps=4, lr=0.2)
    torch.testing.assert_close(one.weight, other.weight, rtol=1e-12, atol=1e-14)


def test_history_of_local_gd():
    model, clients = synthetic(6)
    net = network()
    history = local_gd(
        net, clients, rounds=5, local_steps=4, lr=0.1, features=model.features, eval_every=2
    )
    assert history.step == [8, 16, 20]
    assert len(history.train_loss) == len(history.train_accuracy) == len(history.projections) == 3
    assert history.train_loss[0].shape == (4,)
    assert history.test_loss == []
    assert history.average_buffers is None
    np.testing.assert_allclose(history.projections[-1], net.projections(model.features), rtol=1e-12)


def test_a_last_round_may_be_shorter():
    assert round_lengths(3, 4, 10) == [4, 4, 2]
    assert round_lengths(2, 5) == [5, 5]
    _, clients = synthetic(7)
    whole, parts = network(), network()
    local_gd(whole, clients, rounds=4, local_steps=3, lr=0.1, steps=10)
    local_gd(parts, clients, rounds=3, local_steps=3, lr=0.1)
    local_gd(parts, clients, rounds=1, local_steps=1, lr=0.1)
    torch.testing.assert_close(whole.weight, parts.weight)


def test_local_steps_learn_what_global_updates_miss():
    """The paper's main result, in a small instance of the data model."""
    model, clients = synthetic(
        8, n_major=6, n_minor=1, gamma=0.8, kappa=0.5, n=8, dim=120
    )  # sγ³ = 3.07
    minor = []
    for local_steps in (1, 100):
        net = network(2, filters=30, dim=120, dtype=torch.float32, init_std=0.03)
        history = local_gd(
            net,
            clients,
            rounds=1200 // local_steps,
            local_steps=local_steps,
            lr=0.2,
            features=model.features,
        )
        assert history.train_accuracy[-1].min() == 1
        minor.append(history.projections[-1].max(0)[-1])
    assert minor[0] < 0.1
    assert minor[1] > 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds is 0; it must be at least 1"),
        ({"local_steps": 0}, "local_steps is 0; it must be at least 1"),
        ({"steps": 4}, r"steps is 4; 2 rounds of 4 local steps hold 5\.\.8"),
        ({"lr": 0.0}, "lr is 0.0; it must be positive"),
        ({"eval_every": 0}, "eval_every is 0"),
        ({"test": synthetic()[1][:3]}, "test has 3 clients; it must have 4"),
        (
            {"test": [(x[:, :2], y) for x, y in synthetic()[1]]},
            r"test has samples of shape \(2, 40\); clients has \(3, 40\)",
        ),
        ({"features": np.eye(3)}, r"features has shape \(3, 3\); it must be \(K, 40\)"),
        ({"features": np.ones(40)}, r"features has shape \(40,\); it must be \(K, 40\)"),
        ({"clients": []}, "clients is empty"),
        ({"clients": [(np.zeros((0, 3, 40)), np.zeros(0))]}, r"clients\[0\] has no samples"),
        ({"clients": [(np.zeros((2, 3, 9)), np.ones(2))]}, r"they must be \(patches, 40\)"),
        ({"clients": [(np.zeros((2, 3, 40)), np.zeros(2))]}, "labels other than -1 and 1"),
        ({"clients": [(np.zeros((2, 3, 40)), np.ones(3))]}, r"labels must be \(2,\)"),
        (
            {"clients": [(np.zeros((2, p, 40)), np.ones(2)) for p in (3, 4)]},
            "all clients must agree",
        ),
    ],
)
def test_bad_input_to_local_gd(change, message):
    _, clients = synthetic()
    arguments = {"clients": clients, "rounds": 2, "local_steps": 4, "lr": 0.1} | change
    with pytest.raises(ValueError, match=message):
        local_gd(network(), arguments.pop("clients"), **arguments)


def test_diverging_weights_name_round_and_client():
    _, clients = synthetic()
    clients[2] = (clients[2][0].astype(np.float64) * 1e160, clients[2][1])
    with pytest.raises(InputError, match="round 0, client 2: weights are not finite"):
        local_gd(network(), clients, rounds=3, local_steps=2, lr=0.1)


# SGD on batches


def images(n_clients=3, n=20, seed=0, size=8):
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(n, 3, size, size, generator=generator),
            torch.randint(0, 2, (n,), generator=generator),
        )
        for _ in range(n_clients)
    ]


def cnn(seed=0):
    torch.manual_seed(seed)
    return small_cnn(image=8)


def batch_norm_net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(54, 2)
    )


SGD = {"batch_size": 6, "lr": 0.1, "milestones": (5, 8), "weight_decay": 0.01}


def by_hand(net, learners, lengths, *, batch_size, lr, milestones, weight_decay, rng):
    """Each client's own model, plain updates, the mean of parameters after each round."""
    batches = client_batches([len(y) for _, y in learners], batch_size, sum(lengths), rng)
    step = 0
    for length in lengths:
        ends = []
        for k, (x, y) in enumerate(learners):
            own = copy.deepcopy(net)
            for t in range(step, step + length):
                own.zero_grad()
                cross_entropy(own(x[batches[t, k]]), y[batches[t, k]]).backward()
                rate = lr * 0.5 ** sum(t >= m for m in milestones)
                for p in own.parameters():
                    p.data -= rate * (p.grad + weight_decay * p.data)
            ends.append([p.data for p in own.parameters()])
        step += length
        for p, values in zip(net.parameters(), zip(*ends, strict=True), strict=True):
            p.data = torch.stack(values).mean(0)
    return net


@pytest.mark.parametrize("local_steps", [1, 4, 10])
def test_federated_sgd_by_hand(local_steps):
    clients = images()
    rounds = -(-10 // local_steps)
    net = cnn()
    history = federated_sgd(
        net,
        clients,
        rounds=rounds,
        local_steps=local_steps,
        steps=10,
        average_buffers="average",
        rng=np.random.default_rng(1),
        test=clients[::-1],
        **SGD,
    )
    lengths = round_lengths(rounds, local_steps, 10)
    expected = by_hand(cnn(), clients, lengths, rng=np.random.default_rng(1), **SGD)
    torch.testing.assert_close(
        dict(net.state_dict()), dict(expected.state_dict()), rtol=1e-5, atol=1e-6
    )
    assert history.step == [10]
    np.testing.assert_array_equal(history.test_loss[0], history.train_loss[0][::-1])
    for k, (x, y) in enumerate(clients):
        outputs = expected(x)
        assert history.train_loss[0][k] == pytest.approx(cross_entropy(outputs, y).item(), rel=1e-4)
        right = (outputs.argmax(1) == y).double().mean().item()
        assert history.train_accuracy[0][k] == pytest.approx(right)


def test_parallel_sgd_by_hand():
    clients = images()
    net = cnn()
    history = parallel_sgd(
        net, clients, steps=10, rng=np.random.default_rng(2), eval_every=4, test=clients, **SGD
    )
    union = [tuple(torch.cat(parts) for parts in zip(*clients, strict=True))]
    expected = by_hand(cnn(), union, [10], rng=np.random.default_rng(2), **SGD)
    torch.testing.assert_close(
        dict(net.state_dict()), dict(expected.state_dict()), rtol=1e-5, atol=1e-6
    )
    assert history.step == [4, 8, 10]
    assert history.test_accuracy[0].shape == (3,)


def test_batches_run_through_permutations():
    batches = client_batches([7, 10], 3, 6, np.random.default_rng(0))
    assert batches.shape == (6, 2, 3)
    for k, (size, per_epoch) in enumerate([(7, 2), (10, 3)]):
        for start in range(0, 6, per_epoch):
            epoch = batches[start : start + per_epoch, k].ravel()
            assert len(np.unique(epoch)) == len(epoch)
            assert epoch.max() < size
    # A client's batches are its own: they do not depend on who else takes part.
    alone = client_batches([7], 3, 6, np.random.default_rng(0))
    np.testing.assert_array_equal(alone[:, 0], batches[:, 0])


def test_recalibrated_statistics_are_those_of_the_training_data():
    clients = images(seed=1)
    net = batch_norm_net()
    history = federated_sgd(
        net,
        clients,
        rounds=2,
        local_steps=5,
        average_buffers="average",
        rng=np.random.default_rng(3),
        **SGD,
    )
    assert history.average_buffers == "average"
    outputs = [net[0](x).detach() for x, _ in clients]
    mean = torch.stack([o.mean((0, 2, 3)) for o in outputs]).mean(0)
    variance = torch.stack([o.transpose(0, 1).flatten(1).var(1) for o in outputs]).mean(0)
    torch.testing.assert_close(net[1].running_mean, mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(net[1].running_var, variance, rtol=1e-5, atol=1e-6)


def test_local_statistics_stay_with_their_client():
    clients = [(x + 3 * k, y) for k, (x, y) in enumerate(images(seed=2))]
    net, averaged = batch_norm_net(), batch_norm_net()
    arguments = {"rounds": 2, "local_steps": 5, "test": clients, **SGD}
    history = federated_sgd(
        net, clients, average_buffers="local", rng=np.random.default_rng(4), **arguments
    )
    other = federated_sgd(
        averaged, clients, average_buffers="average", rng=np.random.default_rng(4), **arguments
    )
    # Training uses the batches' own statistics: the weights agree, the tests do not.
    torch.testing.assert_close(net[0].weight, averaged[0].weight)
    assert history.average_buffers == "local"
    assert not np.allclose(history.test_loss[-1], other.test_loss[-1])
    # `net` ends with client 0's statistics, under which client 0 was tested.
    x, y = clients[0]
    loss = cross_entropy(net.eval()(x), y).item()
    assert history.test_loss[-1][0] == pytest.approx(loss, rel=1e-5)
    assert history.test_loss[-1][2] != pytest.approx(
        cross_entropy(net(clients[2][0]), clients[2][1]).item(), rel=1e-2
    )


def test_transforms_are_random_in_training_only():
    calls = []

    def transform(x, generator):
        calls.append(generator is not None)
        if generator is None:
            return x
        return x + torch.rand(len(x), generator=generator)[:, None, None, None]

    clients = images(seed=3)
    nets = []
    for _ in range(2):
        nets.append(cnn())
        federated_sgd(
            nets[-1],
            clients,
            rounds=2,
            local_steps=3,
            average_buffers="average",
            rng=np.random.default_rng(5),
            transform=transform,
            **SGD,
        )
    torch.testing.assert_close(nets[0].state_dict(), nets[1].state_dict(), rtol=0, atol=0)
    assert calls.count(True) == 12
    assert calls.count(False) == 6


class _Killed(Exception):
    pass


@pytest.mark.parametrize("stop_at", [3, 8, 11])
def test_a_killed_run_ends_with_the_same_bytes(tmp_path, stop_at):
    clients = images(seed=4)
    arguments = {"rounds": 3, "local_steps": 4, "average_buffers": "local", "eval_every": 1, **SGD}
    expected = batch_norm_net()
    history = federated_sgd(expected, clients, rng=np.random.default_rng(6), **arguments)

    calls = 0

    def dying(outputs, targets):
        nonlocal calls
        calls += 1
        if calls > stop_at:
            raise _Killed
        return cross_entropy(outputs, targets)

    def checkpoints():
        return Checkpoints(tmp_path, identity="a", seconds=0)

    with pytest.raises(_Killed):
        federated_sgd(
            batch_norm_net(),
            clients,
            rng=np.random.default_rng(6),
            loss=dying,
            checkpoints=checkpoints(),
            **arguments,
        )
    net = batch_norm_net()
    resumed = federated_sgd(
        net, clients, rng=np.random.default_rng(6), checkpoints=checkpoints(), **arguments
    )
    torch.testing.assert_close(net.state_dict(), expected.state_dict(), rtol=0, atol=0)
    assert resumed.step == history.step
    np.testing.assert_array_equal(resumed.train_loss, history.train_loss)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds is 0"),
        ({"local_steps": 0}, "local_steps is 0"),
        (
            {"batch_size": 21},
            r"batch_size is 21; it must be in 1\.\.20, the smallest client's size",
        ),
        ({"lr": -1.0}, "lr is -1.0; it must be positive"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0; it must not be negative"),
        ({"average_buffers": "mean"}, "it must be 'average' or 'local'"),
        ({"test": images(2)}, "test has 2 clients; it must have 3"),
        ({"test": images(size=4)}, r"test has samples of shape \(3, 4, 4\); clients has"),
    ],
)
def test_bad_input_to_federated_sgd(change, message):
    arguments = {"rounds": 2, "local_steps": 2, "average_buffers": "average"} | SGD | change
    with pytest.raises(ValueError, match=message):
        federated_sgd(cnn(), images(), rng=np.random.default_rng(0), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y + 5, "labels reach 6; the model has 2 outputs"),
        (lambda y: y - 1, r"\[0\] has labels other than integers ≥ 0"),
        (lambda y: y.float(), r"\[0\] has labels other than integers ≥ 0"),
    ],
)
@pytest.mark.parametrize("where", ["clients", "test"])
def test_labels_that_no_output_stands_for(change, message, where):
    data = {"clients": images(), "test": images(seed=1)}
    data[where] = [(x, change(y)) for x, y in data[where]]
    with pytest.raises(ValueError, match=message):
        federated_sgd(
            cnn(),
            data["clients"],
            rounds=2,
            local_steps=2,
            average_buffers="average",
            rng=np.random.default_rng(0),
            test=data["test"],
            **SGD,
        )


def test_bad_input_to_parallel_sgd():
    train = functools.partial(parallel_sgd, cnn(), images(), rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="at least 1"):
        train(steps=0, **SGD)
    with pytest.raises(ValueError, match=r"batch_size is 61; it must be in 1\.\.60"):
        train(steps=5, **(SGD | {"batch_size": 61}))


def test_a_bad_sample_names_round_and_client():
    clients = images()
    clients[1][0][:] = torch.nan
    with pytest.raises(InputError, match="round 0, client 1: the loss is not finite"):
        federated_sgd(
            cnn(),
            clients,
            rounds=2,
            local_steps=2,
            average_buffers="average",
            rng=np.random.default_rng(0),
            **SGD,
        )
