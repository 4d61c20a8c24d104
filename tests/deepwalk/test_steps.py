import numpy as np
import pandas as pd
import pytest

from retable.common.configuration import load_paper
from retable.common.errors import InputError
from retable.common.metrics import read_measures, read_metrics, write_metrics
from retable.common.project import Project
from retable.common.seeds import Seeds
from retable.deepwalk.blocks import BlockModel
from retable.deepwalk.config import (
    Config,
    Descent,
    DynamicsSettings,
    EvaluateSettings,
    GrowthSettings,
    PhaseSettings,
    RealSettings,
    ScalingSettings,
    SparseSettings,
    StartsSettings,
    WalksSettings,
)
from retable.deepwalk.experiments import centred_product, draw, largest_rise, row
from retable.deepwalk.steps.dynamics import dynamics
from retable.deepwalk.steps.evaluate import evaluate
from retable.deepwalk.steps.growth import growth
from retable.deepwalk.steps.phase import phase
from retable.deepwalk.steps.prepare import prepare
from retable.deepwalk.steps.real import real
from retable.deepwalk.steps.scaling import scaling
from retable.deepwalk.steps.sparse import sparse
from retable.deepwalk.steps.starts import starts
from retable.deepwalk.steps.walks import walks

SHORT = Descent(max_iter=30)
PARTS = ["experiment", "dataset", "method", "metric", "seed"]


def values(path, **where):
    rows = read_metrics(path)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.set_index("seed")["value"]


@pytest.mark.parametrize(
    "name", ["sbm_log_a6_b1_n4000", "sbm_log_a1_b0.2_n1000", "sbm_log_a8_b1_n1000_k3"]
)
def test_block_models_are_read_by_name(name):
    block = BlockModel.parse(name)
    assert str(block) == name
    assert block.p == pytest.approx(block.a * np.log(block.n) / block.n)
    assert block.q == pytest.approx(block.b * np.log(block.n) / block.n)
    assert draw(block, 0).n == block.n
    assert np.unique(draw(block, 0).labels).size == block.k


@pytest.mark.parametrize("name", ["karate", "sbm_log_a6_n100", "sbm_log_a6_b1_n100_k"])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match=rf"datasets: '{name}' is no block model"):
        BlockModel.parse(name)


def test_the_largest_rise_is_relative():
    assert largest_rise(np.array([4.0, 2, 3, 1])) == 0.5
    assert largest_rise(np.array([4.0, 2, 1])) == 0
    assert largest_rise(np.array([4.0])) == 0


def test_the_centred_product_is_blind_to_shift_and_gauge():
    labels = np.array([0, 0, 1, 1])
    x = np.array([[-2.0], [-2], [2], [2]])
    assert centred_product(x, 0.25 * x + 7, labels) == pytest.approx(1)
    assert centred_product(-3 * x, -x / 12, labels) == pytest.approx(1)


def test_growth_writes_every_quantity(tmp_path):
    growth(
        tmp_path / "rows.csv",
        dataset="sbm_log_a8_b1_n300",
        seeds=Seeds((0, 1)),
        settings=GrowthSettings(),
    )
    rows = read_metrics(tmp_path / "rows.csv")
    assert not rows.duplicated(PARTS).any()
    assert set(rows["method"]) == {
        "deepwalk",
        "graph",
        "linear",
        "spectral/adjacency",
        "spectral/normalized",
        "spectral/regularized",
        "theory",
    }
    assert (values(tmp_path / "rows.csv", method="deepwalk", metric="accuracy") > 0.99).all()
    assert (values(tmp_path / "rows.csv", metric="converged") == 1).all()
    assert (values(tmp_path / "rows.csv", metric="gradient") < 1e-6).all()
    assert (values(tmp_path / "rows.csv", metric="steps_to_alignment") > 1).all()


def test_seeds_in_one_job_or_two_give_the_same_rows(tmp_path):
    settings = GrowthSettings(descent=SHORT)
    name = "sbm_log_a6_b1_n200"
    for file, seeds in (("both", (0, 1)), ("first", (0,)), ("second", (1,))):
        growth(tmp_path / file, dataset=name, seeds=Seeds(seeds), settings=settings)
    both = read_metrics(tmp_path / "both")
    apart = read_metrics([tmp_path / "first", tmp_path / "second"])
    pd.testing.assert_frame_equal(
        both.sort_values(PARTS, ignore_index=True), apart.sort_values(PARTS, ignore_index=True)
    )


def test_the_plane_leaves_out_what_is_not_assortative(tmp_path):
    settings = PhaseSettings(a=(2, 6), b=(1, 2), descent=SHORT)
    name = "sbm_log_grid_n200"
    phase(tmp_path / "rows.csv", dataset=name, seeds=Seeds((0,)), settings=settings)
    assert set(read_metrics(tmp_path / "rows.csv")["dataset"]) == {
        "sbm_log_a2_b1_n200",
        "sbm_log_a6_b1_n200",
        "sbm_log_a6_b2_n200",
    }
    with pytest.raises(InputError, match="must be sbm_log_grid_n<nodes>"):
        phase(tmp_path / "rows.csv", dataset="grid", seeds=Seeds((0,)), settings=settings)


def test_sparse_graphs_take_their_own_windows(tmp_path):
    name = "sbm_log_a1_b0.2_n200"
    settings = SparseSettings(windows=(2, 3), descent=SHORT)
    sparse(tmp_path / "rows.csv", dataset=name, seeds=Seeds((0,)), settings=settings)
    methods = set(read_metrics(tmp_path / "rows.csv")["method"])
    assert {
        "deepwalk/w2",
        "deepwalk/w3",
        "deepwalk/w3-short",
        "spectral/normalized-component",
    } <= methods
    assert (values(tmp_path / "rows.csv", metric="isolated") > 0).all()


def test_dynamics_follow_the_theory(tmp_path):
    dynamics(
        tmp_path / "rows.csv",
        dataset="sbm_log_a8_b1_n400",
        seeds=Seeds((0,)),
        settings=DynamicsSettings(),
    )
    rows = read_metrics(tmp_path / "rows.csv").set_index("metric")["value"]
    assert rows["smallest_cosine"] > 0.999
    assert rows["fixed_point_gap"] < 5e-4
    assert rows["growth_measured"] == pytest.approx(rows["growth_predicted"], rel=0.02)
    assert rows["s2"] < rows["s"]
    width = 0.1
    for community in (0, 1):
        assert rows[f"density_{community}"].sum() * width == pytest.approx(1)


def test_starts_and_walks(tmp_path):
    starts(
        tmp_path / "starts.csv",
        dataset="sbm_log_a8_b1_n200",
        seeds=Seeds((0,)),
        settings=StartsSettings(n_starts=3, scales=(0.01, 0.5)),
    )
    assert (values(tmp_path / "starts.csv", metric="spread") < 0.02).all()
    walks(
        tmp_path / "walks.csv",
        dataset="sbm_log_a8_b1_n200",
        seeds=Seeds((0,)),
        settings=WalksSettings(sampling=({"n_walks": 10, "walk_length": 20},)),
    )
    accuracy = read_metrics(tmp_path / "walks.csv").query("metric == 'accuracy'")
    assert set(accuracy["method"]) == {"deepwalk", "deepwalk/10x20", "deepwalk/earlier-10x20"}
    assert (accuracy["value"] > 0.95).all()


def test_the_karate_club(tmp_path):
    prepare(tmp_path / "karate.npz")
    settings = RealSettings(
        windows=(2,), dims=(1, 2), n_starts=2, descent=Descent(step=0.1, max_iter=1500)
    )
    real(tmp_path / "karate.npz", tmp_path / "rows.csv", settings=settings)
    accuracy = read_metrics(tmp_path / "rows.csv").query("metric == 'accuracy'")
    assert set(accuracy["dataset"]) == {"karate"}
    found = accuracy.groupby("method")["value"].mean()
    assert found["spectral/adjacency"] == pytest.approx(33 / 34)
    assert found["deepwalk/k1-w2"] > 0.9


def test_scaling_measures_ratios(tmp_path):
    scaling(
        tmp_path / "rows.csv",
        dataset="sbm_log_a6_b1",
        seeds=Seeds((0,)),
        settings=ScalingSettings(
            # Large enough for the edges to outweigh the m polynomials of each node.
            nodes=(4000, 8000, 16000),
            repeats=1,
            softmax_n=200,
            fit_n=200,
            sampling={"n_walks": 1, "walk_length": 10},
            descent=SHORT,
        ),
    )
    rows = read_metrics(tmp_path / "rows.csv")
    assert not rows.duplicated(PARTS).any()
    assert values(tmp_path / "rows.csv", metric="memory_slope")[0] == pytest.approx(1, abs=0.1)
    assert (rows["value"] > 0).all()


def measured(tmp_path, rows, speed=()):
    write_metrics(rows, tmp_path / "rows.csv")
    write_metrics(speed, tmp_path / "speed.csv")
    settings = EvaluateSettings(recovery_n=1000, slope_n=4000, fixed_point_n=1000)
    evaluate(
        [tmp_path / "rows.csv"],
        [tmp_path / "speed.csv"],
        tmp_path / "metrics.csv",
        tmp_path / "measures.csv",
        settings=settings,
    )
    return read_measures(tmp_path / "measures.csv")


def synthetic_rows():
    """Rows with known answers for every check."""
    rows = []
    for seed in (0, 1):
        for n in (500, 1000, 4000):
            for a, error in ((8, 0.0), (6, 0.01), (3, 100 / n)):
                make = [f"sbm_log_a{a}_b1_n{n}", "deepwalk", seed]
                rows += [
                    row("growth", *make, "accuracy", 1 - error),
                    row("growth", *make, "exact", error == 0),
                    row("growth", *make, "gradient", 1e-7 * (1 + seed)),
                    row("growth", *make, "largest_rise", 0),
                    row("growth", *make, "steps_to_alignment", 3 * np.log(n)),
                    row("growth", *make, "product", 0.55),
                ]
        for a, normalized in ((2, 0.7), (6, 0.99), (8, 0.95)):
            for method, value in (("deepwalk", 0.98), ("spectral/normalized", normalized)):
                rows.append(row("phase", f"sbm_log_a{a}_b1_n9", method, seed, "accuracy", value))
        for n in (1000, 8000):
            for method, value in (
                ("deepwalk/w3", 0.9),
                ("spectral/adjacency", 0.8 if n == 1000 else 0.1),
                ("spectral/normalized", 0.95),
            ):
                name = f"sbm_log_a1_b0.2_n{n}"
                rows.append(row("sparse", name, method, seed, "accuracy", value))
        rows.append(row("dynamics", "sbm_log_a6_b1_n9", "deepwalk", seed, "smallest_cosine", 0.99))
        rows.append(row("dynamics", "expected", "deepwalk", seed, "fixed_point_gap", 1e-5))
        rows.append(row("starts", "sbm_log_a3_b1_n9", "deepwalk", seed, "spread", 0.001))
        for method, value in (
            ("deepwalk", 0.95),
            ("deepwalk/2x20", 0.6),
            ("deepwalk/10x40", 0.94),
            ("deepwalk/earlier-10x40", 0.1),
        ):
            rows.append(row("walks", "sbm_log_a3_b1_n9", method, seed, "accuracy", value))
        for method, value in (("deepwalk", 0.9), ("spectral/normalized", 0.92)):
            rows.append(row("dims", "sbm_log_a8_b1_n9_k3", method, seed, "accuracy", value))
    for n in (500, 1000, 4000):
        rows.append(row("growth", f"sbm_log_a6_b1_n{n}", "theory", None, "product", 0.5))
    return rows


def test_measures_of_all_claims(tmp_path):
    speed = [
        row("scaling", "sbm_log_a6_b1", "deepwalk", 0, "time_slope", 1.1),
        row("scaling", "sbm_log_a6_b1", "deepwalk", 0, "memory_slope", 1.0),
    ]
    measures = measured(tmp_path, synthetic_rows(), speed)
    assert not measures.dropna(subset="seed").duplicated(["check", "seed"]).any()
    means = measures.groupby("check")["value"].agg(list)
    expected = {
        "deepwalk-1a": [1] * 4,
        "deepwalk-1b": [0.01] * 4,
        "deepwalk-1c": [-1, -1],
        "deepwalk-2a": [1e-7, 2e-7],
        "deepwalk-2b": [3, 3],
        "deepwalk-2c": [0, 0],
        # The point where the Laplacian is at 0.7 does not count: (0.01 + 0.03)/2.
        "deepwalk-3": [0.02, 0.02],
        "deepwalk-4": [0.99, 0.99],
        "deepwalk-5a": [0.1, 0.1],
        "deepwalk-5b": [-0.05, -0.05],
        "deepwalk-6": [0.001, 0.001],
        "deepwalk-7": [-0.01, -0.01],
        "deepwalk-8a": [0.1, 0.1],
        "deepwalk-8b": [1e-5, 1e-5],
        "deepwalk-9a": [1.1],
        "deepwalk-9b": [1.0],
        "deepwalk-10": [0.02, 0.02],
    }
    assert set(means.index) == set(expected)
    for check, found in means.items():
        assert found == pytest.approx(expected[check]), check


def test_paired_differences_join_the_rows_and_times_do_not(tmp_path):
    speed = [row("scaling", "sbm_log_a6_b1", "deepwalk", 0, "time_slope", 1.1)]
    measured(tmp_path, synthetic_rows(), speed)
    rows = read_metrics(tmp_path / "metrics.csv")
    assert "scaling" not in set(rows["experiment"])
    largest = rows[(rows["experiment"] == "phase") & (rows["metric"] == "largest_distance")]
    assert largest["value"].tolist() == pytest.approx([0.03, 0.03])
    pairs = rows[(rows["experiment"] == "sparse") & (rows["metric"] == "accuracy_difference")]
    assert set(pairs["method"]) == {
        "deepwalk/w3 - spectral/adjacency",
        "deepwalk/w3 - spectral/normalized",
    }


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_the_configuration_names_graphs_that_exist(pytestconfig, scale):
    config = load_paper("deepwalk", scale, pytestconfig.rootpath)
    assert isinstance(config, Config)
    for experiment, datasets in config.datasets.items():
        for name in datasets:
            if experiment not in ("phase", "scaling"):
                BlockModel.parse(name)
    assert set(config.sparse) == set(config.datasets["sparse"])
    jobs = config.jobs("growth")
    assert len(jobs) == len(set(jobs)) >= len(config.datasets["growth"])


def test_a_further_seed_adds_a_job_and_changes_none(pytestconfig):
    project = Project(pytestconfig.rootpath, {"papers": ["deepwalk"]})
    config = project.paper("deepwalk", "paper")
    more = config.model_copy(update={"seeds": (*config.seeds, 50)})
    datasets = config.datasets | {"dynamics": {"sbm_log_a6_b1_n100000": 51}}
    more = more.model_copy(update={"datasets": datasets})
    assert set(more.jobs("dynamics")) - set(config.jobs("dynamics")) == {
        ("sbm_log_a6_b1_n100000", "50")
    }
    assert set(config.jobs("dynamics")) < set(more.jobs("dynamics"))
