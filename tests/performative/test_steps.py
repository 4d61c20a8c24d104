"""The steps of the pipeline on small settings, and its configuration."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from retable.common.configuration import load_paper
from retable.common.data.arrays import save_arrays
from retable.common.errors import InputError
from retable.common.metrics import read_measures, read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.seeds import Seeds
from retable.performative import BernoulliSquare, direct, learn_model, regret
from retable.performative.config import CountsSettings, Inner, LogitWorld, Method, Toy
from retable.performative.environments import LogitPricing
from retable.performative.steps.counts import count_demand, counts, read_counts
from retable.performative.steps.evaluate import (
    _deployment_exponents,
    _dimension_exponents,
    evaluate,
    second_differences,
)
from retable.performative.steps.figure import figure
from retable.performative.steps.inner import inner
from retable.performative.steps.run import environment, generator, run
from retable.performative.steps.table import table
from retable.performative.steps.toy import toy

ROOT = Path(__file__).parents[2]


def ratings(**changes):
    arrays = {
        "user": np.array([1, 1, 2, 2, 3]),
        "item": np.array([1, 2, 1, 3, 3]),
        "rating": np.array([5, 3, 4, 4, 1]),
        "timestamp": np.arange(5),
        "item_genres": np.array([[True, True, False], [False, True, False], [True, False, False]]),
        "genre_names": np.array(["Drama", "War", "Western"]),
    }
    return arrays | changes


def test_likes_are_shared_by_a_films_genres():
    arrays = ratings()
    names, bought, not_bought = count_demand(
        arrays["item"], arrays["rating"], arrays["item_genres"], arrays["genre_names"]
    )
    assert names == ["Drama", "War"]
    assert bought == [2.0, 1.0]
    assert not_bought == 2


def test_counts_are_written_and_read_without_loss(tmp_path):
    genres = np.array([[True, True, True], [False, True, False], [True, False, False]])
    save_arrays(tmp_path / "r.npz", ratings(item_genres=genres))
    counts(tmp_path / "r.npz", tmp_path / "c.csv", settings=CountsSettings(genres=2))
    names, bought, not_bought = read_counts(tmp_path / "c.csv")
    assert names == ["Drama", "War"]
    np.testing.assert_array_equal(bought, [1 + 2 / 3, 2 / 3])
    assert not_bought == 2.0
    env, products = environment(
        LogitWorld(sensitivity=1.0, theta_max=4.0, phi_min=0.01, phi_max=0.5), [tmp_path / "c.csv"]
    )
    assert products == names
    np.testing.assert_allclose(env.a, np.log(bought / 2))


def test_counts_refuse_bad_data(tmp_path):
    file, out = tmp_path / "r.npz", tmp_path / "c.csv"
    arrays = ratings()
    del arrays["item_genres"]
    save_arrays(file, arrays)
    with pytest.raises(InputError, match=r"r\.npz: the array 'item_genres' is missing"):
        counts(file, out, settings=CountsSettings(genres=2))
    save_arrays(file, ratings())
    with pytest.raises(InputError, match=r"2 genres were liked, genres=3"):
        counts(file, out, settings=CountsSettings(genres=3))
    save_arrays(file, ratings(item_genres=np.zeros((3, 3), bool)))
    with pytest.raises(InputError, match="item 1: a liked film has no genre"):
        counts(file, out, settings=CountsSettings(genres=2))
    out.write_text("genre,count\nDrama,3\n")
    with pytest.raises(InputError, match="must have the columns genre, count"):
        read_counts(out)


def small(tmp_path):
    """The smoke scale with fewer dimensions' worth of work; its settings and a demand table."""
    config = load_paper("performative", "smoke", ROOT)
    (tmp_path / "counts.csv").write_text("genre,count\nDrama,30.0\nWar,20.0\n(nothing),50.0\n")
    return config, tmp_path / "counts.csv"


def test_one_long_baseline_run_answers_all_horizons(tmp_path):
    config, _ = small(tmp_path)
    settings = config.run["bernoulli_d2"]
    run([], tmp_path / "rows.csv", dataset="bernoulli_d2", seeds=Seeds((3,)), settings=settings)
    rows = read_metrics(tmp_path / "rows.csv")
    env = BernoulliSquare(2)
    for budget in settings.budgets:
        alone = direct(
            env,
            [0.3, 0.3],
            budget=budget,
            n_kl=32,
            step=1.0,
            delta=0.1,
            rng=generator(3, "bernoulli_d2", "direct"),
        )
        at = rows[(rows["method"] == "direct") & (rows["x"] == budget)].set_index("metric")["value"]
        excess = env.risk(alone.theta) - env.optimal_risk
        assert at["excess_final"] == pytest.approx(excess, rel=1e-6)
        assert at["regret"] == pytest.approx(regret(alone.log, env)[1][-1], rel=1e-8)
    curve = rows[(rows["method"] == "reparam") & (rows["metric"] == "excess_by_samples")]
    assert curve["x"].max() <= max(settings.budgets)
    assert curve["value"].min() >= 0


def test_runs_are_reproduced_byte_for_byte_and_depend_on_the_seed(tmp_path):
    config, demand = small(tmp_path)
    settings = config.run["movielens"]
    files = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    for file, seed in zip(files, (0, 0, 1), strict=True):
        run([demand], file, dataset="movielens", seeds=Seeds((seed,)), settings=settings)
    assert files[0].read_bytes() == files[1].read_bytes()
    frames = [pd.read_csv(file) for file in files]
    own = [frame[frame["method"] == "reparam"]["value"].to_numpy() for frame in frames]
    assert not np.array_equal(own[0], own[2])
    rows = frames[0][frames[0]["metric"] == "revenue"]
    assert set(rows["method"]) == set(settings.methods)


def test_second_differences_are_the_hessian():
    env = LogitPricing([0.2, -0.3], 1.0, theta_max=4.0)
    theta = env.theta_set.sample(np.random.default_rng(0), 20)
    np.testing.assert_allclose(second_differences(env, theta), env.risk_hessian(theta), atol=1e-6)


def test_inner_error_is_the_distance_of_distributions(tmp_path):
    settings = Inner(
        steps=(5, 200),
        dims=(1,),
        n_kl=64,
        theta0=0.3,
        target=0.36,
        repetitions=8,
        c_in=0.3,
        c_step=0.2,
    )
    inner(tmp_path / "i.csv", d=1, seeds=Seeds((0, 1)), settings=settings)
    rows = read_metrics(tmp_path / "i.csv")
    assert len(rows) == 4
    by_steps = rows.groupby("x")["value"].mean()
    # Not moving at all would leave |.09 - .36| = .27.
    assert by_steps[200] < by_steps[5] / 2 < 0.27 / 2


def test_inner_error_takes_the_widths_and_steps_of_the_schedule(tmp_path):
    settings = Inner(
        steps=(5, 10),
        dims=(4,),
        n_kl=8,
        theta0=0.3,
        target=0.36,
        repetitions=2,
        c_in=0.3,
        c_step=0.2,
    )
    inner(tmp_path / "i.csv", d=4, seeds=Seeds((1,)), settings=settings)
    env = BernoulliSquare(4)
    for row in read_metrics(tmp_path / "i.csv").itertuples():
        steps = int(row.x)
        squares = []
        for repetition in range(2):
            learned = learn_model(
                env,
                [0.36] * 4,
                [0.3] * 4,
                steps=steps,
                n_kl=8,
                delta=0.3 * 4**0.25 * steps**-0.25,
                step_size=0.2 / 2,
                rng=generator(1, "inner", 4, steps, repetition),
            )
            squares.append(np.sum((learned.theta**2 - 0.36) ** 2))
        assert row.value == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-6)


def test_from_runs_to_table_figure_and_measures(tmp_path):
    config, demand = small(tmp_path)
    runs = []
    for dataset in ("bernoulli_d1", "bernoulli_d2", "movielens"):
        runs.append(tmp_path / f"{dataset}.csv")
        run(
            [demand] if dataset == "movielens" else [],
            runs[-1],
            dataset=dataset,
            seeds=Seeds((0, 1)),
            settings=config.run[dataset],
        )
    inner(tmp_path / "inner.csv", d=1, seeds=Seeds((0, 1)), settings=config.inner)
    toy(tmp_path / "toy.csv", settings=config.toy)
    out = {name: tmp_path / f"{name}_out.csv" for name in ("rows", "curves", "measures")}
    evaluate(
        runs,
        [tmp_path / "inner.csv"],
        tmp_path / "toy.csv",
        demand,
        **out,
        settings=config.evaluate,
    )
    measures = read_measures(out["measures"])
    seed_file = read_seed_file(ROOT / "seeds" / "performative.yaml")
    checks = [check.id for claim in seed_file.claims for check in claim.checks]
    assert sorted(measures["check"].unique()) == sorted(checks)
    rows = read_metrics(out["rows"])
    measured = measures.set_index(["check", "seed"])["value"]
    for seed in (0, 1):
        own = rows[(rows["method"] == "reparam") & (rows["seed"] == seed)]
        exponents = own[own["metric"] == "growth_exponent"].set_index("dataset")["value"]
        assert measured["performative-6", seed] == pytest.approx(exponents.max())
        regrets = own[own["metric"] == "regret@8192"].set_index("dataset")["value"]
        slope = np.log(regrets["bernoulli_d2"] / regrets["bernoulli_d1"]) / np.log(2)
        assert measured["performative-7", seed] == pytest.approx(slope)
        growth = own[(own["dataset"] == "bernoulli_d1")].set_index("metric")["value"]
        ratio = np.log2(growth["regret@8192"] / growth["regret@4096"])
        assert exponents["bernoulli_d1"] == pytest.approx(ratio)
        at = (
            rows[rows["seed"] == seed]
            .set_index(["dataset", "method", "metric"])["value"]
            .sort_index()
        )
        worlds = [at[dataset, "closed_form"] for dataset in ("bernoulli_d2", "movielens")]
        eigenvalues = [world["min_eig_theta"] for world in worlds]
        assert measured["performative-1", seed] == pytest.approx(max(eigenvalues))
        for check, metric in (("2a", "min_eig_phi"), ("2b", "midpoint_gap")):
            expected = min(world[metric] for world in worlds)
            assert measured[f"performative-{check}", seed] == pytest.approx(expected)
        excess = at["bernoulli_d1", "reparam", "excess_final@8192"]
        assert measured["performative-3", seed] == pytest.approx(excess)
        # -PR* is the best revenue, what the known map earns in the end.
        prices = at["movielens", "reparam"]
        best = prices["revenue@4096"] + prices["excess_final@4096"]
        share = prices["excess_final@4096"] / best
        assert measured["performative-4", seed] == pytest.approx(share)
        errors = at["bernoulli_d1", "learn_model"]
        slope = np.log(errors["inner_error@20"] / errors["inner_error@10"]) / np.log(2)
        assert measured["performative-5", seed] == pytest.approx(slope)
    paths = read_metrics(tmp_path / "toy.csv")
    paths = paths[(paths["metric"] == "risk")].sort_values("x")
    for check, dataset in (("8", "toy_nonconvex"), ("9", "toy_matched")):
        for start in (0, 1):
            own = paths[(paths["dataset"] == dataset) & (paths["seed"] == start)]
            curves = own.groupby("method")["value"].agg(list)
            gap = np.array(curves["direct"]) - np.array(curves["reparam_exact_inner"])
            area = gap.sum() - (gap[0] + gap[-1]) / 2
            assert measured[f"performative-{check}", start] == pytest.approx(area, abs=1e-7)
    table(out["rows"], ROOT / "seeds" / "performative.yaml", tmp_path / "table.csv")
    written = pd.read_csv(tmp_path / "table.csv")
    assert {"mean", "ci_low", "n_seeds", "reported", "source"} <= set(written.columns)
    direct_toy = written[(written["dataset"] == "toy_paper") & (written["metric"] == "risk@1")]
    assert direct_toy.set_index("method")["reported"]["direct"] == -0.133
    files = [tmp_path / name for name in ("a.png", "a.pdf", "b.png", "b.pdf")]
    figure(out["rows"], out["curves"], *files[:2])
    figure(out["rows"], out["curves"], *files[2:])
    assert files[0].read_bytes() == files[2].read_bytes()
    assert files[1].read_bytes() == files[3].read_bytes()


def test_exponents_in_dimension_and_in_samples_of_a_deployment():
    """Regret 3 d^.5 m^.2 at N = 100; sweeps over m stay out of the slope over d."""
    rows = [
        {"dataset": f"bernoulli_d{d}" + f"_nkl{m}" * (m != 32), "method": "reparam", "seed": 0}
        | {"metric": "regret", "x": x, "value": 3 * d**0.5 * m**0.2 * (x / 100) ** 0.8}
        for d in (1, 2, 4)
        for m in (16, 32, 64, 256)
        for x in (50, 100)
    ]
    horizons = pd.DataFrame(rows).assign(experiment="regret")
    (slope,) = _dimension_exponents(horizons, 100)
    assert (slope["dataset"], slope["metric"]) == ("bernoulli", "dim_exponent@100")
    assert slope["value"] == pytest.approx(0.5)
    found = list(_deployment_exponents(horizons, 100))
    assert [row["dataset"] for row in found] == ["bernoulli_d1", "bernoulli_d2", "bernoulli_d4"]
    assert {row["metric"] for row in found} == {"n_kl_exponent@100"}
    assert [row["value"] for row in found] == pytest.approx([0.2] * 3)


def test_toy_starts(tmp_path):
    config = load_paper("performative", "laptop", ROOT)
    toy(tmp_path / "toy.csv", settings=config.toy)
    rows = read_metrics(tmp_path / "toy.csv")
    first = rows[(rows["x"] == 0) & (rows["metric"] == "risk")]
    mean = first.groupby(["dataset", "method"])["value"].mean()
    assert mean["toy_matched", "direct"] == pytest.approx(mean["toy_matched", "reparam"])
    assert mean["toy_nonconvex", "direct"] == pytest.approx(mean["toy_nonconvex", "reparam"])
    # The notebook starts direct search at another, worse model.
    assert mean["toy_paper", "direct"] > mean["toy_paper", "reparam"] + 0.1
    single = config.toy.model_dump() | {"single": {"phi": 0.3, "iterations": 500}}
    toy(tmp_path / "toy.csv", settings=Toy.model_validate(single))
    rows = read_metrics(tmp_path / "toy.csv")
    assert rows[rows["dataset"] == "toy_single_matched"]["x"].max() == 500


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_configuration_holds_at_every_scale(scale):
    config = load_paper("performative", scale, ROOT)
    datasets = {dataset for dataset, _ in config.run_jobs()}
    assert datasets == set(config.run)
    seeds = [s for d, text in config.run_jobs() if d == "movielens" for s in Seeds.parse(text)]
    assert seeds == list(config.pricing.seeds)


def test_bad_configuration_is_refused_with_its_key(tmp_path):
    text = (ROOT / "config" / "performative.yaml").read_text(encoding="utf-8")
    (tmp_path / "config").mkdir()

    def load(change):
        values = yaml.safe_load(text)
        change(values["base"])
        (tmp_path / "config" / "performative.yaml").write_text(yaml.safe_dump(values))
        return load_paper("performative", "laptop", tmp_path)

    load(lambda base: None)
    for change, message in [
        (lambda base: base.update(n_kl=0), "n_kl: .* greater than or equal to 1, got 0"),
        (lambda base: base["pricing"].update(phi_max=1.5), "pricing.phi_max: .* less than 1"),
        (lambda base: base["toy"].update(speed=1), "toy.speed: unknown key; allowed: .*step"),
        (lambda base: base["judge"].update(budget=7), "judge.budget must be one of"),
        (lambda base: base["judge"].update(exponent_dims=[3]), "judge.exponent_dims must be some"),
        (lambda base: base["schedule"].pop("pricing"), "schedule.pricing: is missing"),
        (lambda base: base["toy"].update(limits=[0.9, 0.1]), "toy: .*limits must be rising"),
        (
            lambda base: base["toy"]["starts"].update(paper=[-1, 0.8, 10]),
            r"toy: .*starts.paper must lie within \[0.1, 0.9\], found -1",
        ),
        (lambda base: base["pricing"].update(phi_min=0.2), "pricing: .*phi_max must be >= phi_min"),
        (lambda base: base["pricing"].update(theta0=5.0), "pricing: .*theta0 must be <= theta_max"),
        (lambda base: base["plateau"].update(phi_min=0.9), "plateau: .*phi_max must be >= phi_min"),
        (lambda base: base["plateau"].update(theta0=13.0), "plateau: .*theta0 must be <= 12"),
        (
            lambda base: base["plateau"].update(budgets=[1000]),
            "budgets of logit1 must be >= 3264, .*n_kl=64, found 1000",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            load(change)
    with pytest.raises(ValueError, match="direct and direct_one_point take both"):
        Method(kind="direct", step=1.0)
