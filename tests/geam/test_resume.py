"""Runs that are killed at any point and started again give the same result."""

import math
import os
import signal

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Crippen

from retable.common.checkpoints import Checkpoints
from retable.geam.assembly import AssemblyEnv
from retable.geam.baselines import graph_ga, random_library, reinvent, train_prior
from retable.geam.config import GenerationConfig, SACConfig
from retable.geam.fgib import FGIB
from retable.geam.generation import run_geam
from retable.geam.oracles import CountingOracle, OracleStopped
from retable.geam.replay import (
    Decision,
    Graph,
    ReplayBuffer,
    Transition,
    pack_transitions,
    unpack_transitions,
)
from retable.geam.resume import EXIT_TERMINATED, Keeper
from retable.geam.vocabulary import Vocabulary

FRAGMENTS = [
    "CC(=O)[*:1]",
    "O([*:1])[*:1]",
    "N([*:1])[*:1]",
    "c1cc([*:1])ccc1[*:1]",
    "C1CCN([*:1])CC1",
    "c1cn([*:1])cc1[*:1]",
    "OC(C[*:1])C[*:1]",
    "CC(C)C[*:1]",
    "O=C([*:1])C[*:1]",
    "FC(F)(F)[*:1]",
]
VOCABULARY = Vocabulary({fragment: 0.2 - 0.01 * k for k, fragment in enumerate(FRAGMENTS)}, 12)
MOLECULES = [
    "CC(=O)Nc1ccc(OCC(O)CN2CCCCC2)cc1",
    "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F",
    "COc1ccccc1OCC(O)CN1CCN(CC(=O)Nc2c(C)cccc2C)CC1",
    "CCOC(=O)C(CCC)NC(C)C(=O)N1C(C(=O)O)CC2CCCCC21",
    "CC(C)Cc1ccc(C(C)C(=O)O)cc1C(=O)NCC",
    "Clc1ccccc1C1C(C(=O)OC)=C(C)NC(COCCN)=C1C(=O)OCC",
]
STABLE = SACConfig(width=8, batch=16, critic_updates=5, update_after=64)
PAPER_LIKE = SACConfig(
    width=8, batch=16, critic_updates=0, update_after=64, update_every=32, updates=7,
    stabilise=False, alpha=1.0, alpha_steps=(80, 200), plateau_patience=2, buffer=90,
)  # fmt: skip


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the run's memory is left."""


class Mortal(Checkpoints):
    """Some chances to save are taken; at the n-th the run dies, before or after it is written.

    Attributes:
        stage: what the newest checkpoint of this attempt says of the run's stage.
    """

    def __init__(self, folder, lives, *, before=False):
        super().__init__(folder, "test")
        self.lives, self.before = lives, before
        self.stage = None
        self._chances = 0

    def due(self):
        self._chances += 1
        return self._chances % 7 in (0, 2, 5)

    def save(self, state, name="state"):
        self.lives -= 1
        if self.lives == 0 and self.before:
            raise Killed
        super().save(state, name)
        self.stage = state.get("stage")
        if self.lives == 0:
            raise Killed


def oracle(mol):
    return math.exp(-((Crippen.MolLogP(mol) - 2) ** 2) / 4)


def again_and_again(run, folder, lives):
    """The result of a run that dies after so many saves, until it ends; the stages of its deaths.

    The number of saves changes from attempt to attempt.
    """
    stages = []
    while True:
        deaths = len(stages)
        checkpoints = Mortal(folder, lives + deaths % 3, before=deaths % 4 == 3)
        try:
            return run(checkpoints), stages
        except Killed:
            stages.append(checkpoints.stage)
        assert deaths < 500


def assert_same(one, other):
    assert one.table.equals(other.table)
    assert one.vocabulary_history == other.vocabulary_history
    assert one.progress.equals(other.progress)


@pytest.fixture(scope="module")
def fgib():
    torch.manual_seed(0)
    return FGIB().eval()


def geam(fgib, sac, **changes):
    settings = {
        "budget": 60, "population": 20, "vocabulary_limit": 14, "random_steps": 96,
        "oracle_every": 32, "max_atoms": 30, "sac": sac,
    }  # fmt: skip
    config = GenerationConfig(**(settings | changes))
    start = {Chem.CanonSmiles(smiles): oracle(Chem.MolFromSmiles(smiles)) for smiles in MOLECULES}

    def run(checkpoints=None, oracle=oracle):
        return run_geam(
            oracle, VOCABULARY, fgib, config, 0, checkpoints=checkpoints,
            start=start if config.assembly == "none" else None,
        )  # fmt: skip

    return run


@pytest.mark.parametrize(
    ("sac", "changes", "lives"),
    [
        (STABLE, {}, 3),
        (PAPER_LIKE, {"offspring": 2}, 3),
        (STABLE, {"assembly": "random"}, 3),
        (STABLE, {"assembly": "none"}, 3),
    ],
)
def test_geam_killed_again_and_again(fgib, tmp_path, sac, changes, lives):
    run = geam(fgib, sac, **changes)
    whole = run()
    found, stages = again_and_again(run, tmp_path, lives)
    assert len(stages) >= 4
    if changes.get("assembly") is None:
        assert set(stages) >= {"assemble", "score", "modify", "learn"}
    assert_same(found, whole)
    # A complete run is not made again.
    assert_same(run(Checkpoints(tmp_path, "test"), lambda mol: pytest.fail("called")), whole)


def test_baselines_killed_again_and_again(tmp_path):
    chains = [prefix + "C" * n + end for n in range(1, 6) for prefix in "CON" for end in "CON"]
    prior = train_prior(chains, embedding=8, width=24, epochs=20, lr=1e-2, batch=16, seed=0)
    options = {"budget": 40, "seed": 0}
    runs = {
        "graph_ga": lambda c: graph_ga(
            oracle, MOLECULES, population=6, offspring=10, checkpoints=c, **options
        ),
        "reinvent": lambda c: reinvent(oracle, prior, batch=8, lr=5e-3, checkpoints=c, **options),
        "random_library": lambda c: random_library(
            oracle, [*MOLECULES, *chains], checkpoints=c, **options
        ),
    }
    for name, run in runs.items():
        found, stages = again_and_again(run, tmp_path / name, 3)
        assert len(stages) >= 3, name
        assert_same(found, run(None))


@pytest.mark.parametrize("call", [5, 40, 58])
def test_sigterm_leaves_a_checkpoint(fgib, tmp_path, call):
    run = geam(fgib, STABLE)
    seen = []

    def interrupted(mol):
        seen.append(mol)
        if len(seen) == call:
            os.kill(os.getpid(), signal.SIGTERM)
        return oracle(mol)

    earlier = signal.getsignal(signal.SIGTERM)
    try:
        # Far too long for a periodic checkpoint: what is left comes of the signal.
        with pytest.raises(SystemExit) as stop:
            run(Checkpoints(tmp_path, "test", seconds=1e6), interrupted)
        # A second request does not cut the end short.
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, earlier)
    assert stop.value.code == EXIT_TERMINATED == 143
    assert len(seen) == call
    assert_same(run(Checkpoints(tmp_path, "test"), interrupted), run())
    assert signal.getsignal(signal.SIGTERM) == earlier
    assert len(seen) == 60  # no molecule was scored twice


def test_an_oracle_that_is_ended_with_the_job_leaves_a_checkpoint(tmp_path):
    checkpoints = Checkpoints(tmp_path, "test", seconds=1e6)

    def ended():
        yield
        raise OracleStopped("the docking engine was ended by signal 15")

    with pytest.raises(OracleStopped), Keeper(checkpoints, "run") as keep:
        keep.evaluate(ended(), lambda: {"x": 1})
    assert checkpoints.load("run") is None
    earlier = signal.getsignal(signal.SIGTERM)
    try:
        with Keeper(checkpoints, "run") as keep:
            os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(SystemExit):
                keep.evaluate(ended(), lambda: {"x": 1})
    finally:
        signal.signal(signal.SIGTERM, earlier)
    assert checkpoints.load("run") == {"x": 1}


def test_transitions_survive_packing():
    rng = np.random.default_rng(0)

    def graph():
        n = int(rng.integers(1, 9))
        x = rng.integers(0, 2, (n, 28)).astype(np.uint8)
        edges = rng.integers(0, n, (2, 2 * int(rng.integers(0, 4)))).astype(np.int16)
        return Graph(x, edges, np.arange(int(rng.integers(0, 3)), dtype=np.int16))

    graphs = [graph() for _ in range(6)]
    items = [
        Transition(
            graphs[k],
            Decision((k, k + 1, k + 2), k + 3, *rng.random((2, 40)).astype(np.float32)),
            0.05 * k,
            graphs[k + 1] if k % 2 else None,
            rng.random(),
        )
        for k in range(5)
    ]
    again = unpack_transitions(pack_transitions(items))
    assert again[1].next_state is again[2].state  # kept once
    for one, other in zip(items, again, strict=True):
        assert (one.decision.action, one.decision.fragment) == (
            other.decision.action, other.decision.fragment,
        )  # fmt: skip
        assert (one.reward, one.y) == (other.reward, other.y)
        for a, b in ((one.state, other.state), (one.next_state, other.next_state)):
            assert (a is None) == (b is None)
            if a is not None:
                for field in ("x", "edge_index", "points"):
                    found = getattr(b, field)
                    np.testing.assert_array_equal(getattr(a, field), found)
                    assert getattr(a, field).dtype == found.dtype
        np.testing.assert_array_equal(one.decision.pi1, other.decision.pi1)
        np.testing.assert_array_equal(one.decision.pi3, other.decision.pi3)
    assert unpack_transitions(pack_transitions([])) == []


def test_a_buffer_that_has_wrapped_goes_on_overwriting_the_oldest():
    empty = Graph(np.zeros((1, 28), np.uint8), np.zeros((2, 0), np.int16), np.zeros(0, np.int16))
    decision = Decision((0, 0, 0), 0, np.zeros(40, np.float32), np.zeros(40, np.float32))

    def item(k):
        return Transition(empty, decision, float(k), None)

    one, other = ReplayBuffer(3), ReplayBuffer(3)
    for k in range(5):
        one.add(item(k))
    other.load_state_dict(one.state_dict())
    for buffer in (one, other):
        buffer.add(item(5))
    rewards = [
        [t.reward for t in buffer.sample(20, np.random.default_rng(0))] for buffer in (one, other)
    ]
    assert rewards[0] == rewards[1]
    assert set(rewards[0]) == {3.0, 4.0, 5.0}


def test_an_episode_is_repeated_atom_by_atom():
    env, other = AssemblyEnv(VOCABULARY, 40), AssemblyEnv(VOCABULARY, 40)
    for action in ((0, 3, 1), (1, 6, 0), (2, 8, 0)):
        env.step(action)
    mol = other.repeat(env.path)
    assert Chem.MolToMolBlock(mol) == Chem.MolToMolBlock(env.mol)
    assert (other.length, other.done) == (3, env.done)


def test_values_that_are_there_ahead_cost_no_second_evaluation():
    seen = []

    def counted(mol):
        seen.append(Chem.MolToSmiles(mol))
        return 0.5

    count = CountingOracle(counted, 2)
    assert len(list(count.ahead(["CCO", "OCC", "CCC"]))) == 2
    assert (seen, count.calls) == (["CCO", "CCC"], 0)
    count("CCC")
    again = CountingOracle(counted, 2)
    again.load_state_dict(count.state_dict())
    assert again.calls == 1
    assert again("OCC") == 0.5
    assert again.order == {"CCC": 0.5, "CCO": 0.5}
    assert len(seen) == 2
