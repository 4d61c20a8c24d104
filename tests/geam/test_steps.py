"""The evaluation's measures by hand, and bad input of the steps."""

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from safetensors.torch import save_file

from retable.common.checkpoints import Checkpoints
from retable.common.data.arrays import save_arrays
from retable.common.errors import InputError
from retable.common.seeds import Seeds
from retable.geam.config import GenerateSettings
from retable.geam.fgib import FGIB
from retable.geam.fragments import fragment_molecule
from retable.geam.library import Library
from retable.geam.oracles import docking_property, qed, sa_score
from retable.geam.steps.evaluate import _gaps, _Judge, _measures, _new_share
from retable.geam.steps.generate import _vocabulary, generate

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
PIPERIDINE = "CC(=O)Nc1ccc(OCC(O)CN2CCCCC2)cc1"
TASKS = ("a", "b", "c")
RATIOS = {
    "geam": (0.3, 0.2, 0.0),
    "geam_wo_modification": (0.1, 0.1, 0.1),
    "graph_ga": (0.1, 0.1, 0.1),
    "reinvent": (0.0, 0.25, 0.0),
    "random_library": (0.0, 0.0, 0.05),
}


def values():
    return {
        (task, method, 0, "novel_hit_ratio"): ratio
        for method, ratios in RATIOS.items()
        for task, ratio in zip(TASKS, ratios, strict=True)
    }


def test_gaps_to_the_best_baseline():
    mean, median = _gaps(values(), list(TASKS), [0])[0]
    assert mean == pytest.approx(0.5 / 3 - 0.1)  # graph_ga is the best on average
    assert median == pytest.approx(-0.05)  # 0.2, -0.05, -0.1
    assert _gaps(values(), [*TASKS, "d"], [0]) == {}


def test_measures_pair_seeds_and_average_tasks():
    given = values()
    for task, first, second in zip(TASKS, (0.4, 0.5, 0.6), (0.3, 0.3, 0.6), strict=True):
        given[(task, "assembly/fgib", 0, "top100")] = first
        given[(task, "assembly/random", 0, "top100")] = second
    found = {row["check"]: row for row in _measures(given)}
    assert found["geam-1"]["value"] == pytest.approx(0.1)
    assert found["geam-4b"]["value"] == pytest.approx(0.5 / 3 - 0.1)
    assert set(found) == {"geam-1", "geam-3", "geam-4b", "geam-6"}
    assert all(row["seed"] == 0 for row in found.values())


def test_share_of_new_fragments():
    distinct = pd.DataFrame({"smiles": [PIPERIDINE], "score": [1.0]})
    known = {"CC(=O)[*:1]", "O([*:1])[*:1]", "N([*:1])[*:1]"}
    assert _new_share(distinct, known) == pytest.approx(0.5)


def test_metrics_of_a_run():
    library = Library((ASPIRIN,), (None,), (), (), {})
    run = pd.DataFrame(
        {
            "dataset": "perindopril",
            "smiles": [PIPERIDINE, ASPIRIN, PIPERIDINE, "CCO"],
            "score": [0.5, 0.9, 0.5, 0.1],
            "call": [1, 2, 1, 3],
        }
    )
    judge = _Judge(library, run["smiles"].unique())
    found = judge.metrics(run, 0.4, 3, {"CC(=O)[*:1]"})
    assert found["novel_hit_ratio"] == pytest.approx(1 / 4)  # aspirin is known, CCO no hit
    assert found["uniqueness"] == pytest.approx(3 / 4)
    assert found["novelty"] == pytest.approx(3 / 4)
    assert found["top10"] == pytest.approx(0.5)
    assert found["n_circles"] == 2


def test_docking_hits_are_judged_by_the_docking_score():
    mol = Chem.MolFromSmiles(PIPERIDINE)
    library = Library((ASPIRIN,), (None,), (), (), {})
    for ds, hit in ((-9.3, 1), (-8.9, 0)):
        y = docking_property(ds, qed(mol), sa_score(mol))
        run = pd.DataFrame({"dataset": "jak2", "smiles": [PIPERIDINE], "score": [y], "call": [1]})
        found = _Judge(library, run["smiles"].unique()).metrics(run, 0.0, 1, None)
        assert found["novel_hit_ratio"] == hit


def test_vocabularies():
    scores = pd.DataFrame(
        {"fgib": [0.1, 0.3, 0.2], "property": [0.3, 0.2, 0.1], "property_size": [0.2, 0.3, 0.1]},
        index=["C[*:1]", "N[*:1]", "O[*:1]"],
    )
    assert _vocabulary("geam", scores, 2, 0, "s.csv").fragments == ("N[*:1]", "O[*:1]")
    assert _vocabulary("assembly/property", scores, 2, 0, "s.csv").fragments[0] == "C[*:1]"
    drawn = {_vocabulary("assembly/random", scores, 2, seed, "s.csv").fragments
             for seed in range(9)}  # fmt: skip
    assert len(drawn) > 1
    with pytest.raises(InputError, match="vocabulary is 4; there are 3 distinct"):
        _vocabulary("geam", scores, 4, 0, "s.csv")


@pytest.fixture
def prepared(tmp_path):
    """The inputs of generation: a library, labels, a bottleneck, scores of fragments."""
    molecules = [PIPERIDINE, "CC(=O)Nc1ccc(OCC)cc1", "CCOc1ccccc1C(=O)NC", "COc1ccc(CCN)cc1"]
    molecules = tuple(Chem.CanonSmiles(smiles) for smiles in molecules)
    graphs = tuple(fragment_molecule(smiles) for smiles in molecules)
    Library(molecules, graphs, molecules[1:], molecules, {}).save(tmp_path / "library.npz")
    save_arrays(tmp_path / "labels.npz", {"y": np.full(len(molecules), 0.2)})
    torch.manual_seed(0)
    weights = {f"seed0.{name}": value for name, value in FGIB().state_dict().items()}
    save_file(weights, tmp_path / "models.safetensors")
    names = sorted({fragment for graph in graphs for fragment in graph.fragments})
    scores = pd.DataFrame({"seed": 0, "fragment": names, "fgib": 0.1, "property": 0.1})
    scores.to_csv(tmp_path / "scores.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    ("method", "logs", "has_vocabulary"),
    [("graph_ga", False, False), ("random_library", False, False), ("geam_static", True, True)],
)
def test_a_job_of_one_method_writes_all_its_files(prepared, method, logs, has_vocabulary):
    small = {
        "vocabulary": 4,
        "ga_offspring": 2,
        "generation": {"budget": 3, "max_molecules": 6, "population": 3, "random_steps": 16},
    }
    files = [prepared / f"{name}.csv" for name in ("molecules", "progress", "vocabulary")]
    generate(
        *(prepared / name for name in ("library.npz", "labels.npz", "models.safetensors")),
        prepared / "scores.csv",
        prepared / "prior.safetensors",
        [],
        *files,
        dataset="perindopril",
        methods=method,
        seeds=Seeds.parse("0"),
        settings=GenerateSettings.model_validate(small),
        checkpoints=Checkpoints(prepared / "checkpoints", "test"),
    )
    molecules, progress, vocabulary = (pd.read_csv(file) for file in files)
    assert set(molecules["method"]) == {method}
    assert molecules["call"].max() <= 3
    assert (len(progress) > 0) == logs
    assert (len(vocabulary) > 0) == has_vocabulary
    assert list(progress.columns[:3]) == list(vocabulary.columns[:3])
