import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from retable.adambias.config import PrepareSettings, TrainSettings
from retable.adambias.data import Split, load_split, small_network
from retable.adambias.flow import bias_coefficient
from retable.adambias.fullbatch import FullBatch, Trainee, augment
from retable.adambias.models import mlp
from retable.adambias.steps.prepare import average_pool, prepare
from retable.adambias.steps.train import train
from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.errors import InputError
from retable.common.seeds import Seeds


def _split(count=30, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 1, 4, 4, generator=generator)
    y = torch.randint(3, (count,), generator=generator)
    x_test = torch.randn(11, 1, 4, 4, generator=generator)
    return Split(x, y, x_test, torch.randint(3, (11,), generator=generator))


def _run(split, physical_batch=None, **kwargs):
    torch.manual_seed(1)
    trainee = Trainee(mlp(16, 5, 3))
    settings = {"beta": 0.9, "rho": 0.99, "eps": 1e-8} | kwargs
    return FullBatch(trainee, split, "run", physical_batch=physical_batch, **settings)


def _gradients(run, epoch=0):
    run.trainee.zero_grad()
    (batch,) = run.batches(epoch)
    value = run.loss(run.trainee, batch)
    value.backward()
    return value.item(), torch.cat([p.grad.flatten() for p in run.trainee.parameters()])


@pytest.mark.parametrize("squares", [False, True])
def test_physical_batches_sum_to_the_full_batch(squares):
    split = _split()
    value, gradient = _gradients(_run(split, squares=squares))
    in_parts, in_parts_gradient = _gradients(_run(split, physical_batch=7, squares=squares))
    assert in_parts == pytest.approx(value, rel=1e-6)
    torch.testing.assert_close(in_parts_gradient, gradient, rtol=1e-5, atol=1e-7)
    logits = _run(split).trainee(split.x)
    if squares:
        expected = (logits - nn.functional.one_hot(split.y, 3)).square().sum(1).mean()
    else:
        expected = nn.functional.cross_entropy(logits, split.y)
    assert value == pytest.approx(expected.item(), rel=1e-6)


def test_a_row_holds_what_the_step_saw():
    split = _split()
    run = _run(split, test_every=2)
    _, gradient = _gradients(run, epoch=4)
    row = run.after_epoch(5)
    assert row["one_norm"] == pytest.approx(gradient.abs().sum().item())
    assert row["perturbed_one_norm"] == pytest.approx((gradient**2 + 1e-8).sqrt().sum().item())
    assert row["two_norm"] == pytest.approx(gradient.norm().item())
    assert row["mean_abs_grad"] == pytest.approx(gradient.abs().mean().item())
    assert row["std_abs_grad"] == pytest.approx(gradient.abs().std(correction=0).item())
    kappa = bias_coefficient(gradient, beta=0.9, rho=0.99, eps=1e-8, n=4)
    assert row["share_negative"] == pytest.approx((kappa < 0).double().mean().item())
    with torch.no_grad():
        logits, logits_test = run.trainee(split.x), run.trainee(split.x_test)
    assert row["train_accuracy"] == (logits.argmax(1) == split.y).double().mean().item()
    assert row["test_accuracy"] == pytest.approx(
        (logits_test.argmax(1) == split.y_test).double().mean().item()
    )
    expected = nn.functional.cross_entropy(logits_test, split.y_test)
    assert row["test_loss"] == pytest.approx(expected.item(), rel=1e-6)
    _gradients(run, epoch=5)
    assert math.isnan(run.after_epoch(6)["test_accuracy"])


def test_a_loss_that_rises_or_is_no_number_stops_the_run():
    run = _run(_split())
    _gradients(run)
    with torch.no_grad():
        for parameter in run.trainee.parameters():
            parameter.mul_(1e4)
    message = r"run: the training loss is .* at step 3, .*beta=0.9, rho=0.99.*lower lr"
    with pytest.raises(InputError, match=message):
        _gradients(run, epoch=3)
    with torch.no_grad():
        next(run.trainee.parameters()).fill_(math.nan)
    with pytest.raises(InputError, match="the training loss is nan at step 4"):
        _gradients(run, epoch=4)


@pytest.mark.parametrize(("times", "stops"), [(9.9, False), (10.1, True)])
def test_ten_times_the_first_loss_is_the_limit(times, stops):
    run = _run(_split())
    value, _ = _gradients(run)
    run.trainee.first_loss.fill_(value / times)
    if stops:
        with pytest.raises(InputError, match="more than 10 times its first value"):
            _gradients(run, epoch=1)
    else:
        _gradients(run, epoch=1)


def test_augmentation_moves_and_flips_whole_images():
    torch.manual_seed(0)
    images = torch.arange(1.0, 65.0).view(1, 1, 8, 8).expand(200, 1, 8, 8)
    moved = augment(images, pad=2)
    assert moved.shape == images.shape
    # a crop of the padded image, or of its mirror image
    padded = nn.functional.pad(images[:1], (2, 2, 2, 2))
    crops = {
        tuple(side[0, 0, top : top + 8, left : left + 8].flatten().tolist())
        for side in (padded, padded.flip(-1))
        for top in range(5)
        for left in range(5)
    }
    seen = {tuple(image.flatten().tolist()) for image in moved}
    assert seen <= crops
    assert len(seen) > 40


def test_average_pool():
    images = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4)
    pooled = average_pool(images, 2)
    assert pooled.shape == (2, 1, 2, 2)
    assert pooled[0, 0, 0, 0] == pytest.approx((0 + 1 + 4 + 5) / 4 / 255)
    colour = np.stack([images, images + 1, images + 2], axis=-1)
    torch.testing.assert_close(
        torch.from_numpy(average_pool(colour, 2)[:, 2] - pooled[:, 0]),
        torch.full((2, 2, 2), 2 / 255),
    )
    with pytest.raises(ValueError, match="pool is 3, allowed: divisors of the image's 4×4"):
        average_pool(images, 3)


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "images.npz"
    arrays = {}
    for split, count in (("train", 60), ("test", 20)):
        arrays[f"{split}_labels"] = np.arange(count) % 3
        pixels = rng.integers(0, 200, (count, 8, 8)) + 10 * (np.arange(count) % 3)[:, None, None]
        arrays[f"{split}_images"] = pixels.astype(np.uint8)
    save_arrays(path, arrays)
    return path


def test_prepare_chooses_by_seed_and_normalises(images, tmp_path):
    settings = PrepareSettings(source="mnist", n=40, n_test=15, pool=2)
    prepare(images, tmp_path / "both.npz", seeds=Seeds((3, 4)), settings=settings)
    prepare(images, tmp_path / "one.npz", seeds=Seeds((4,)), settings=settings)
    both, one = load_split(tmp_path / "both.npz", 1), load_split(tmp_path / "one.npz", 0)
    for first, second in zip(both, one, strict=True):
        assert torch.equal(first, second)
    assert one.x.shape == (40, 1, 4, 4)
    assert one.x_test.shape == (15, 1, 4, 4)
    assert one.x.mean().item() == pytest.approx(0.0, abs=1e-5)
    assert one.x.std(correction=0).item() == pytest.approx(1.0, abs=1e-5)
    chosen = np.random.default_rng(4).permutation(60)[:40]
    assert torch.equal(one.y, torch.from_numpy(load_arrays(images)["train_labels"][chosen]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 61}, "n is 61, allowed: at most 60 training images"),
        ({"n_test": 21}, "n_test is 21, allowed: at most 20 test images"),
        ({"mean": (0.1, 0.2), "std": (1.0, 1.0)}, "one value for each of 1 channels"),
    ],
)
def test_prepare_refuses(images, tmp_path, change, message):
    settings = PrepareSettings(**({"source": "mnist", "n": 40, "n_test": 15} | change))
    with pytest.raises(InputError, match=message):
        prepare(images, tmp_path / "out.npz", seeds=Seeds((0,)), settings=settings)


def test_prepare_needs_two_classes(images, tmp_path):
    arrays = load_arrays(images)
    save_arrays(images, arrays | {"train_labels": np.zeros(60, np.int64)})
    with pytest.raises(InputError, match="needs at least 2 classes"):
        prepare(
            images,
            tmp_path / "out.npz",
            seeds=Seeds((0,)),
            settings=PrepareSettings(source="mnist", n=40, n_test=15),
        )


def _trained(images, tmp_path, name, seeds, **change):
    data, history = tmp_path / "data.npz", tmp_path / f"{name}.csv"
    prepare(
        images, data, seeds=seeds, settings=PrepareSettings(source="mnist", n=40, n_test=15, pool=2)
    )
    settings = {"model": "mlp", "hidden": 4, "classes": 3, "lr": 0.01, "epochs": 30, "eps": 1e-8}
    train(
        data,
        history,
        method="b0.9_r0.99",
        seeds=seeds,
        settings=TrainSettings(**(settings | change)),
        checkpoints=Checkpoints(tmp_path / f"checkpoints-{name}", identity="x"),
    )
    return history


def test_training_falls_and_repeats_to_the_byte(images, tmp_path):
    first = _trained(images, tmp_path, "first", Seeds((0, 1)))
    second = _trained(images, tmp_path, "second", Seeds((0, 1)))
    assert first.read_bytes() == second.read_bytes()
    rows = pd.read_csv(first)
    assert rows["seed"].tolist() == [0] * 30 + [1] * 30
    for _, run in rows.groupby("seed"):
        assert run["train_loss"].iloc[-1] < 0.8 * run["train_loss"].iloc[0]
        assert run["epoch"].tolist() == list(range(1, 31))
        assert run["test_accuracy"].notna().tolist() == [e % 10 == 0 for e in range(30)]


def test_a_seed_does_not_depend_on_the_others_of_its_job(images, tmp_path):
    both = pd.read_csv(_trained(images, tmp_path, "both", Seeds((0, 1))))
    alone = pd.read_csv(_trained(images, tmp_path, "alone", Seeds((1,))))
    expected = both[both["seed"] == 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, expected)


def test_small_network_is_in_double_precision(images, tmp_path):
    prepare(
        images,
        tmp_path / "data.npz",
        seeds=Seeds((0,)),
        settings=PrepareSettings(source="mnist", n=40, n_test=15, pool=4),
    )
    loss, start = small_network(tmp_path / "data.npz", 0, 0, 3)
    assert start.dtype == torch.float64
    assert start.numel() == 4 * 3 + 3 + 3 * 3 + 3
    assert 0.5 < loss(start).item() < 3.0
