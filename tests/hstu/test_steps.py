"""The steps called as plain functions on small real inputs of their own."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from pydantic import ValidationError

from retable.common.checkpoints import Checkpoints
from retable.common.configuration import load_paper
from retable.common.data.arrays import load_arrays, save_arrays
from retable.common.metrics import read_measures, read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.seeds import Seeds
from retable.hstu.config import Config, TrainSettings
from retable.hstu.data import Sequence, pack_sequences, unpack_sequences
from retable.hstu.evaluation import held_out_ranks
from retable.hstu.metrics import ndcg
from retable.hstu.runs import load_encoder, load_runs
from retable.hstu.steps.evaluate import evaluate
from retable.hstu.steps.measures import _fit_rows, measures
from retable.hstu.steps.prepare import prepare
from retable.hstu.steps.ranking import ranking
from retable.hstu.steps.speed import alternate, speed
from retable.hstu.steps.stream import _segments, stream
from retable.hstu.steps.table import speed as speed_table
from retable.hstu.steps.table import table
from retable.hstu.steps.train import TrainingSet, train
from retable.hstu.synthetic import DirichletStream

ROOT = Path(__file__).resolve().parents[2]
SEEDS = Seeds((0, 1))


@pytest.fixture(scope="module")
def config():
    return load_paper("hstu", "smoke", ROOT)


@pytest.fixture(scope="module")
def interactions(tmp_path_factory):
    """Ratings of 40 users who follow one of four tastes, in a file order of their own."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(1, 41), 30)
    item = np.concatenate([10 * (1 + 20 * (u % 4) + rng.permutation(30)[:30]) for u in range(40)])
    rating = rng.integers(1, 6, len(user))
    timestamp = np.concatenate([rng.integers(0, 5000, 30).cumsum() for _ in range(40)])
    order = rng.permutation(len(user))
    path = tmp_path_factory.mktemp("data") / "interactions.npz"
    columns = {"user": user, "item": item, "rating": rating, "timestamp": timestamp}
    save_arrays(path, {name: values[order] for name, values in columns.items()})
    return path


@pytest.fixture(scope="module")
def folder(interactions, config, tmp_path_factory):
    """Everything that the smoke scale makes, in the places that the rules give it."""
    root = tmp_path_factory.mktemp("hstu")
    prepare(interactions, root / "ml-100k.npz", settings=config.prepare["ml-100k"])
    for experiment, by_dataset in config.train.items():
        place = root / experiment / "ml-100k" / "all"
        place.mkdir(parents=True)
        train(
            root / "ml-100k.npz",
            place / "seeds0-1.safetensors",
            place / "seeds0-1.csv",
            experiment=experiment,
            dataset="ml-100k",
            seeds=SEEDS,
            settings=by_dataset["ml-100k"]["all"],
            checkpoints=Checkpoints(root / "checkpoints" / experiment, experiment),
        )
    for experiment, jobs in config.stream.items():
        place = root / experiment / "all"
        place.mkdir(parents=True)
        stream(
            place / "seeds0-1.safetensors",
            place / "seeds0-1.npz",
            place / "seeds0-1.csv",
            experiment=experiment,
            seeds=SEEDS,
            settings=jobs["all"],
            checkpoints=Checkpoints(root / "checkpoints" / experiment, experiment),
        )
    (root / "ranking").mkdir()
    ranking(
        root / "ml-100k.npz",
        root / "ranking" / "seeds0-1.safetensors",
        root / "ranking" / "seeds0-1.csv",
        dataset="ml-100k",
        seeds=SEEDS,
        settings=config.ranking["ml-100k"],
        checkpoints=Checkpoints(root / "checkpoints" / "ranking", "ranking"),
    )
    (root / "evaluated" / "ml-100k").mkdir(parents=True)
    _evaluate(root, config)
    speed(root / "times.csv", settings=config.speed)
    return root


def _evaluate(root, config, users="users.npz"):
    evaluate(
        root / "ml-100k.npz",
        [root / e / "ml-100k" / "all" / "seeds0-1.safetensors" for e in ("public", "sl")],
        [root / "ranking" / "seeds0-1.safetensors"],
        root / "evaluated" / "ml-100k" / users,
        root / "evaluated" / "ml-100k" / "rows.csv",
        root / "evaluated" / "ml-100k" / "checks.csv",
        dataset="ml-100k",
        settings=config.evaluate,
    )


def test_every_scale_has_settings_and_every_check_its_place():
    for scale in ("smoke", "laptop", "paper"):
        load_paper("hstu", scale, ROOT)
    assert len(read_seed_file(ROOT / "seeds" / "hstu.yaml").claims) == 12


def test_paper_scale_has_the_published_sizes():
    paper = load_paper("hstu", "paper", ROOT)
    large = paper.train["public"]["ml-20m"]["hstu-large"]
    sizes = large.methods["hstu-large"]
    assert (sizes.n_blocks, sizes.n_heads, sizes.d_qk, sizes.d_model) == (16, 8, 32, 256)
    assert large.max_len + large.spare_len == 211
    books = paper.train["public"]["amzn-books"]["sasrec"]
    assert (books.optimizer.n_negatives, books.epochs, books.methods["sasrec"].dropout) == (
        512,
        201,
        0.5,
    )


def test_prepared_sequences_are_sorted_and_relabelled(folder, interactions):
    arrays = load_arrays(folder / "ml-100k.npz")
    raw = load_arrays(interactions)
    seqs = unpack_sequences(arrays)
    assert [seq.user for seq in seqs] == list(range(1, 41))
    assert len(arrays["item_id_map"]) == len(np.unique(raw["item"]))
    for seq in seqs[:5]:
        rows = np.flatnonzero(raw["user"] == seq.user)
        rows = rows[np.argsort(raw["timestamp"][rows], kind="stable")]
        assert (arrays["item_id_map"][seq.items - 1] == raw["item"][rows]).all()
        assert (seq.timestamps == raw["timestamp"][rows]).all()


def test_saved_weights_are_those_of_the_best_epoch(folder, config):
    """The history's best validation NDCG@10 is what the saved weights give."""
    runs, about = load_runs(folder / "public" / "ml-100k" / "all" / "seeds0-1.safetensors")
    assert sorted(runs) == sorted(
        f"{method}/{seed}" for method in config.train["public"]["ml-100k"]["all"].methods
        for seed in (0, 1)
    )  # fmt: skip
    history = read_metrics(folder / "public" / "ml-100k" / "all" / "seeds0-1.csv")
    seqs = unpack_sequences(load_arrays(folder / "ml-100k.npz"))
    for method in ("hstu", "sasrec"):
        model = load_encoder(
            runs[f"{method}/1"], about["methods"][method], about["n_items"], about["max_len"]
        )
        held = [seq[: len(seq) - about["n_test"]] for seq in seqs]
        ranks = held_out_ranks(model, held, about["n_valid"], about["max_len"])
        row = history[
            (history["method"] == method)
            & (history["seed"] == 1)
            & (history["metric"] == "validation NDCG@10")
        ]
        assert ndcg(torch.from_numpy(ranks), 10) == pytest.approx(row["value"].max(), abs=1e-6)


def test_evaluation_repeats_itself(folder, config):
    place = folder / "evaluated" / "ml-100k"
    before = (place / "rows.csv").read_bytes(), (place / "checks.csv").read_bytes()
    _evaluate(folder, config, users="again.npz")
    assert ((place / "rows.csv").read_bytes(), (place / "checks.csv").read_bytes()) == before
    assert (place / "again.npz").read_bytes() == (place / "users.npz").read_bytes()


def test_exact_checks_hold(folder):
    checks = read_measures(folder / "evaluated" / "ml-100k" / "checks.csv")
    values = checks.set_index("check")["value"]
    assert values["hstu-1a"] < 1e-5
    assert values["hstu-10a"] < 1e-5
    assert set(values.index) == {"hstu-1a", "hstu-10a", "hstu-9a"}


def test_measures_and_tables_hold_every_claim(folder, config):
    measures(
        [folder / "evaluated" / "ml-100k" / "users.npz"],
        [folder / "evaluated" / "ml-100k" / "rows.csv"],
        [folder / "evaluated" / "ml-100k" / "checks.csv"],
        [folder / e / "ml-100k" / "all" / "seeds0-1.csv" for e in ("public", "sl")],
        [folder / e / "all" / "seeds0-1.npz" for e in ("stream", "scaling")],
        [folder / e / "all" / "seeds0-1.csv" for e in ("stream", "scaling")],
        folder / "times.csv",
        folder / "rows.csv",
        folder / "measures.csv",
        settings=config.measures,
    )
    found = set(read_measures(folder / "measures.csv")["check"])
    seed_file = read_seed_file(ROOT / "seeds" / "hstu.yaml")
    wanted = {
        check.id
        for claim in seed_file.claims
        for check in claim.checks
        if check.needs_paper_scale is None
    }
    assert wanted <= found
    table(folder / "rows.csv", ROOT / "seeds" / "hstu.yaml", folder / "table.csv")
    frame = pd.read_csv(folder / "table.csv")
    ours = frame[frame["mean"].notna()]
    assert set(ours["experiment"]) == {"public", "sl", "stream", "scaling", "ranking"}
    assert set(ours[ours["experiment"] == "public"]["method"]) == {
        *("popularity", "gru4rec", "sasrec", "hstu", "hstu-large"),
    }
    # The paper's rows that no run of ours stands beside are shown too.
    assert frame["reported"].notna().sum() == len(seed_file.reported)
    speed_table(folder / "times.csv", folder / "speed.csv")
    assert len(pd.read_csv(folder / "speed.csv")) == 2 * (3 * len(config.speed.lengths) + 2)


def test_training_set_draws_anew_every_epoch_and_again_after_a_restart():
    seqs = [Sequence(u, np.arange(1, 41), np.ones(40), np.arange(40) * 100 + u) for u in range(8)]
    data = TrainingSet(seqs, 30, 4, 1.3, seed=5)
    data(0)
    first = [seq.items for seq in data.current]
    data(1)
    second = [seq.items for seq in data.current]
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(first, second, strict=True))
    assert all(seq.min() >= 11 for seq in first)
    assert {len(seq) for seq in first} <= {30, math.floor(30**0.65)}
    again = TrainingSet(seqs, 30, 4, 1.3, seed=5)
    again(1)
    assert all((a == b.items).all() for a, b in zip(second, again.current, strict=True))


def test_segments_are_the_training_records_in_order(config):
    settings = config.stream["scaling"]["all"]
    source = DirichletStream(
        settings.n_items, settings.n_categories, settings.n_records, settings.length, (1, 20)
    )
    segments = _segments(source, settings)
    assert len(segments) == settings.checkpoints
    ids = torch.cat([ids for part in segments for ids, _ in part])
    assert (ids.numpy() == source.records[: source.first_test_record]).all()
    growing = DirichletStream(200, 20, 100, 8, (1, 20), initial_fraction=0.5)
    lasts = [int(a) for part in _segments(growing, settings) for _, a in part]
    assert lasts == sorted(lasts)
    assert lasts[-1] == growing.available(growing.first_test_record - 1)


def test_no_model_beats_the_oracle(folder):
    curve = read_metrics(folder / "stream" / "all" / "seeds0-1.csv")
    oracle = curve[curve["method"] == "oracle"].set_index(["seed", "metric"])["value"]
    found = load_arrays(folder / "stream" / "all" / "seeds0-1.npz")
    assert len(found) == 6
    for run, ranks in found.items():
        for k in (10, 50):
            best = oracle[int(run.split("/")[1]), f"HR@{k}"]
            noise = 3 * math.sqrt(best * (1 - best) / ranks.size)
            assert (ranks <= k).mean() <= best + noise
    assert (curve[curve["metric"] == "excess loss"]["value"] > 0).all()


def _curve(points, loss=2.0, guess=6.0):
    rows = [("excess loss", x, y) for x, y in points]
    rows += [("loss", np.nan, loss), ("guess", np.nan, guess)]
    return pd.DataFrame(rows, columns=["metric", "x", "value"])


def test_fit_of_a_power_law():
    points = [(10.0**k, 3 * 10 ** (-0.2 * k)) for k in range(1, 5)]
    # Worse than guessing (excess 4), and a dominated point: both stay out.
    rows = _fit_rows(0, _curve([(1.0, 4.5), *points, (5e3, 2.0)]))
    values = {row["metric"]: row["value"] for row in rows}
    assert values["slope of the fit"] == pytest.approx(-0.2)
    assert values["R^2 of the fit"] == pytest.approx(1)
    assert values["span of the fit (decades)"] == pytest.approx(3)
    assert 10 ** values["intercept of the fit"] == pytest.approx(3)
    assert _fit_rows(0, _curve(points[:2])) == []


def test_alternation_takes_turns():
    calls = []
    taken = alternate({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls == ["a", "b"] * 4
    assert len(taken["cpu"]) == len(taken["wall"]) == 3
    assert set(taken["wall"][0]) == {"a", "b"}


def test_packing_round_trip(sequences):
    again = unpack_sequences(pack_sequences(sequences, np.arange(1, 31)))
    for a, b in zip(sequences, again, strict=True):
        assert a.user == b.user
        for name in ("items", "ratings", "timestamps"):
            assert (getattr(a, name) == getattr(b, name)).all()


def test_bad_settings(config):
    base = config.train["public"]["ml-100k"]["all"].model_dump()
    with pytest.raises(ValidationError, match="there is no method 'other'"):
        TrainSettings(**{**base, "alphas": {"other": 1.5}})
    with pytest.raises(ValidationError, match=r"alpha must lie in \(1, 2\], got 1\.0"):
        TrainSettings(**{**base, "alphas": {"hstu": 1.0}})
    whole = config.model_dump()
    whole["datasets"] = ("ml-100k", "ml-1m")
    with pytest.raises(ValidationError, match="no settings for the data set 'ml-1m'"):
        Config(**whole)
    whole = config.model_dump()
    whole["measures"]["reference_length"] = 100
    with pytest.raises(ValidationError, match=r"reference_length must be one of \[64\], got 100"):
        Config(**whole)
    whole = config.model_dump()
    whole["speed"]["lengths"] = (128, 64)
    with pytest.raises(ValidationError, match="lengths must ascend"):
        Config(**whole)
