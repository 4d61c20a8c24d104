"""Generation: assembly, modification and the dynamic vocabulary in one loop (section 3.4).

The ablations are settings of the same loop: `dynamic=False` (GEAM-static), `modification=False`
(GEAM-w/o M), `assembly="none"` (GEAM-w/o A), `assembly="random"` (random actions).
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from rdkit.Chem import Mol

from retable.common.checkpoints import Checkpoints
from retable.geam.assembly import (
    AssemblyEnv,
    RandomAgent,
    SACAgent,
    observe_graph,
    parse_fragment,
)
from retable.geam.config import GenerationConfig
from retable.geam.fgib import FGIB, score_fragments
from retable.geam.fragments import fragment_molecule
from retable.geam.modification import Population, canonical, reproduce, seeded_random
from retable.geam.oracles import CountingOracle
from retable.geam.replay import (
    Action,
    Decision,
    Graph,
    Transition,
    pack_transitions,
    unpack_transitions,
)
from retable.geam.resume import Keeper, python_random, python_state
from retable.geam.vocabulary import Vocabulary

logger = logging.getLogger("retable")
_OFFSPRING_FAILURES = 50


@dataclass
class GenerationResult:
    """What a run of any method generated.

    Attributes:
        table: one row a generated molecule in order, repeats included: `smiles` (canonical),
            `score`, `source` (`random`, `sac`, `ga`, ...), `call` (number of the distinct oracle
            call that scored it, from 1).
        vocabulary_history: (calls so far, fragments), at the start and after each change.
        progress: one row a batch of oracle calls, what a reader of the log wants to see.
    """

    table: pd.DataFrame
    vocabulary_history: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    progress: pd.DataFrame = field(default_factory=pd.DataFrame)


class Record:
    """The rows of a run, and its end: at `budget` distinct calls or `max_molecules` rows."""

    def __init__(self, oracle: Callable[[Mol], float], budget: int, max_molecules: int):
        self._oracle = CountingOracle(oracle, budget)
        self._budget = budget
        self._max_molecules = max_molecules
        self._call: dict[str, int] = {}
        self._rows: list[tuple[str, float, str, int]] = []

    @property
    def calls(self) -> int:
        """Distinct oracle calls so far."""
        return self._oracle.calls

    @property
    def full(self) -> bool:
        """Whether the run is over."""
        return self.calls >= self._budget or len(self._rows) >= self._max_molecules

    def ahead(self, smiles: Iterable[str]) -> Iterable[None]:
        """Let the oracle work on molecules that will be scored next, up to the end of the run.

        Nothing else changes; `score` finds the values.
        """
        new: dict[str, None] = {}
        for rows, text in enumerate(smiles, start=len(self._rows)):
            if self.calls + len(new) >= self._budget or rows >= self._max_molecules:
                break
            if text not in self._call:
                new[text] = None
        return self._oracle.ahead(new)

    def score(self, smiles: str, source: str) -> float:
        """Score a molecule (canonical SMILES) and add its row.

        Returns:
            The score; NaN where the oracle failed, which the table shows as 0.

        Raises:
            ValueError: a score outside [0, 1], with the SMILES.
        """
        score = float(self._oracle(smiles))
        if not math.isnan(score) and not 0 <= score <= 1:
            raise ValueError(f"oracle gave {score} for {smiles!r}; it must lie in [0, 1]")
        call = self._call.setdefault(smiles, self.calls)
        self._rows.append((smiles, 0.0 if math.isnan(score) else score, source, call))
        return score

    def table(self) -> pd.DataFrame:
        """All rows so far."""
        table = pd.DataFrame(self._rows, columns=["smiles", "score", "source", "call"])
        return table.astype({"score": float, "call": int})

    def state_dict(self) -> dict[str, Any]:
        """The rows and what the oracle is known to say."""
        return {"rows": self._rows, "oracle": self._oracle.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self._rows = list(state["rows"])
        self._oracle.load_state_dict(state["oracle"])
        self._call = {}
        for smiles, _, _, call in self._rows:
            self._call.setdefault(smiles, call)


@dataclass
class _Finished:
    """A finished episode: its molecule, and the last transition if an agent learns from it."""

    smiles: str
    source: str
    length: int
    transition: Transition | None


class _Assembly:
    """Parallel episodes, stepped together so that the policy runs once for all of them."""

    def __init__(self, vocabulary: Vocabulary, config: GenerationConfig, seed: int):
        self._config = config
        self._vocabulary = vocabulary
        self._random = RandomAgent(vocabulary, seed)
        self.agent = SACAgent(config.sac, vocabulary, seed) if config.assembly == "sac" else None
        self._envs = [AssemblyEnv(vocabulary, config.max_atoms) for _ in range(config.episodes)]
        self._states: list[Graph] = [observe_graph(env.mol) for env in self._envs]
        self.steps = 0
        self.finished: list[_Finished] = []
        self.entropies: list[float] = []
        self.fragment_atoms: list[int] = []
        self._due = 0
        self._warmed = False
        self._critic_updates = 0  # that are still to be made now, of the critics alone
        self._updates = 0  # that are still to be made now

    @property
    def exploring(self) -> bool:
        """Whether the random phase lasts."""
        return self.steps < self._config.random_steps

    def set_vocabulary(self) -> None:
        """The vocabulary has changed."""
        self._random.set_vocabulary(self._vocabulary)
        if self.agent is not None:
            self.agent.set_vocabulary(self._vocabulary)

    def _decide(self) -> tuple[list[Action], list[Decision] | None, str]:
        if self.agent is None:
            return self._random.act(self._states), None, "random"
        if self.exploring:
            actions = self._random.act(self._states)
            return actions, self.agent.act(self._states, actions)[0], "random"
        decisions, uncertainty = self.agent.act(self._states)
        self.entropies += uncertainty.tolist()
        return [decision.action for decision in decisions], decisions, "sac"

    def step(self) -> None:
        """One step of all episodes."""
        actions, decisions, source = self._decide()
        for k, (env, action) in enumerate(zip(self._envs, actions, strict=True)):
            piece = parse_fragment(self._vocabulary.fragments[action[1]])
            self.fragment_atoms.append(piece.GetNumHeavyAtoms())
            mol, reward, done = env.step(action)
            after = None if done else observe_graph(mol)
            transition = None
            if decisions is not None:
                transition = Transition(self._states[k], decisions[k], reward, after)
            if done:
                smiles = canonical(env.final_molecule())
                self.finished.append(_Finished(smiles, source, env.length, transition))
                after = observe_graph(env.reset())
            elif transition is not None and self.agent is not None:
                self.agent.observe(transition)
            self._states[k] = after
        self.steps += len(self._envs)

    def plan_updates(self) -> None:
        """Set down which updates are due; `update` makes one of them."""
        sac = self._config.sac
        if self.agent is None or not len(self.agent.buffer):
            return
        if sac.stabilise and not self.exploring and not self._warmed:
            self._warmed = True
            self._critic_updates = sac.critic_updates
        if self.steps < sac.update_after:
            return
        self._due += len(self._envs)
        self._updates += self._due // sac.update_every * sac.updates
        self._due %= sac.update_every

    def update(self) -> bool:
        """Make one of the updates that are due; False where none is left."""
        if self._critic_updates:
            self._critic_updates -= 1
            self.agent.update(actor=False)
            return True
        if not self._updates:
            return False
        self._updates -= 1
        sac = self._config.sac
        train_alpha = (
            sac.alpha_steps is not None and sac.alpha_steps[0] <= self.steps < sac.alpha_steps[1]
        )
        critics_only = sac.stabilise and self.exploring
        self.agent.update(actor=not critics_only, train_alpha=train_alpha)
        return True

    def state_dict(self) -> dict[str, Any]:
        """The agents, the episodes' actions, what is finished, counters."""
        last = [e.transition for e in self.finished if e.transition is not None]
        return {
            "random": self._random.state_dict(),
            "agent": None if self.agent is None else self.agent.state_dict(),
            "paths": [list(env.path) for env in self._envs],
            "steps": self.steps,
            "finished": [
                (e.smiles, e.source, e.length, e.transition is not None) for e in self.finished
            ],
            "transitions": pack_transitions(last),
            "entropies": list(self.entropies),
            "fragment_atoms": list(self.fragment_atoms),
            "due": (self._due, self._warmed, self._critic_updates, self._updates),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave; the vocabulary is that of the moment."""
        self._random.set_vocabulary(self._vocabulary)
        self._random.load_state_dict(state["random"])
        if self.agent is not None:
            self.agent.load_state_dict(state["agent"], self._vocabulary)
        pairs = zip(self._envs, state["paths"], strict=True)
        self._states = [observe_graph(env.repeat(path)) for env, path in pairs]
        self.steps = state["steps"]
        last = iter(unpack_transitions(state["transitions"]))
        self.finished = [
            _Finished(smiles, source, length, next(last) if learns else None)
            for smiles, source, length, learns in state["finished"]
        ]
        self.entropies = list(state["entropies"])
        self.fragment_atoms = list(state["fragment_atoms"])
        self._due, self._warmed, self._critic_updates, self._updates = state["due"]


@dataclass
class _Batch:
    """What is known of the molecules assembled since the last batch, until it is noted."""

    exploring: bool = False
    y: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)


class _Run:
    """One run of the loop: stages that follow each other, with the state kept in between."""

    def __init__(
        self,
        oracle: Callable[[Mol], float],
        vocabulary: Vocabulary,
        fgib: FGIB | None,
        config: GenerationConfig,
        seed: int,
        start: Mapping[str, float],
        keep: Keeper,
    ):
        limit = 4 * config.budget if config.max_molecules is None else config.max_molecules
        self.record = Record(oracle, config.budget, limit)
        self._config = config
        self._fgib = fgib
        self._keep = keep
        self._vocabulary = Vocabulary(dict(vocabulary.scores), config.vocabulary_limit)
        self._initial = frozenset(self._vocabulary.fragments)
        self._population = Population(config.population)
        self._population.add(start.items())
        self._rng = seeded_random(seed, 1)
        self._assembly = None
        self._stage = "breed"
        if config.assembly != "none":
            self._assembly = _Assembly(self._vocabulary, config, seed)
            self._stage = "assemble"
        self._batch = _Batch()
        self._failures = 0
        self._random_phase: list[float] = []
        self.history = [(0, tuple(self._vocabulary.fragments))]
        self.progress: list[dict[str, float | int | str]] = []

    def run(self) -> None:
        """All stages up to the end: of the budget, of the rows, or of valid offspring."""
        stages: dict[str, Callable[[], str]] = {
            "assemble": self._assemble,
            "score": self._score,
            "modify": self._modify,
            "learn": self._learn,
            "breed": self._breed,
        }
        while self._stage != "end":
            self._stage = stages[self._stage]()
            self._keep(self.state_dict)

    def _assemble(self) -> str:
        """One step of all episodes."""
        if self.record.full:
            return "end"
        assembly = self._assembly
        self._batch = _Batch(exploring=assembly.exploring)
        assembly.step()
        ends_phase = self._batch.exploring and not assembly.exploring
        every = self._config.oracle_every
        crossed = assembly.steps // every > (assembly.steps - self._config.episodes) // every
        if crossed or ends_phase:
            return "score"
        assembly.plan_updates()
        return "learn"

    def _score(self) -> str:
        """The oracle on the molecules assembled since the last batch."""
        assembly = self._assembly
        self._evaluate([episode.smiles for episode in assembly.finished])
        finished, assembly.finished = assembly.finished, []
        scored: list[tuple[str, float]] = []
        for episode in finished:
            if self.record.full:
                break
            y = self.record.score(episode.smiles, episode.source)
            known = 0.0 if math.isnan(y) else y
            scored.append((episode.smiles, known))
            if episode.transition is not None and not math.isnan(y):
                last = episode.transition
                assembly.agent.observe(
                    Transition(last.state, last.decision, last.reward, last.next_state, y)
                )
        self._population.add(scored)
        self._batch.y = [y for _, y in scored]
        self._batch.lengths = [episode.length for episode in finished]
        if self._batch.exploring:
            self._random_phase += self._batch.y
            if assembly.agent is not None and self._config.sac.stabilise and self._random_phase:
                assembly.agent.standardise(self._random_phase)
        return "modify"

    def _modify(self) -> str:
        """Offspring of the best molecules so far, as many as were assembled and a factor."""
        assembly, batch = self._assembly, self._batch
        if not batch.exploring and self._config.modification and len(self._population) >= 2:
            self._update_vocabulary(self._offspring(len(batch.y) * self._config.offspring))
        phase = "random" if batch.exploring or assembly.agent is None else "sac"
        self._note(phase, assembly.steps, batch.y, batch.lengths)
        if not self.record.full:
            assembly.plan_updates()
        return "learn"

    def _learn(self) -> str:
        """One of the updates that are due."""
        return "learn" if self._assembly.update() else "assemble"

    def _breed(self) -> str:
        """Offspring without any assembly."""
        if self.record.full:
            return "end"
        offspring = self._offspring(self._config.episodes * self._config.offspring)
        self._failures = 0 if offspring else self._failures + 1
        if self._failures == _OFFSPRING_FAILURES:
            logger.warning("no parents have valid offspring any more: the run ends early")
            return "end"
        self._note("modification", 0, [], [])
        return "breed"

    def _evaluate(self, smiles: Sequence[str]) -> None:
        self._keep.evaluate(self.record.ahead(smiles), self.state_dict)

    def _offspring(self, count: int) -> list[tuple[str, float]]:
        """So many offspring of the population, scored; they join it together."""
        if self.record.full:
            return []
        # While the oracle works the generator stays what it was before: so it may be saved.
        rng = python_random(python_state(self._rng))
        rate = self._config.mutation_rate
        drawn = (reproduce(self._population, rate, rng) for _ in range(count))
        children = [child for child in drawn if child is not None]
        self._evaluate(children)
        self._rng = rng
        offspring: list[tuple[str, float]] = []
        for child in children:
            if self.record.full:
                break
            y = self.record.score(child, "ga")
            offspring.append((child, 0.0 if math.isnan(y) else y))
        self._population.add(offspring)
        return offspring

    def _update_vocabulary(self, offspring: list[tuple[str, float]]) -> None:
        """The best fragments of the offspring join the vocabulary (equation 8 over this batch)."""
        if not self._config.dynamic or not offspring or self._assembly is None:
            return
        cut = [(fragment_molecule(smiles), y) for smiles, y in offspring]
        kept = [(graph, y) for graph, y in cut if graph is not None]
        if not kept:
            return
        graphs, y = [graph for graph, _ in kept], np.array([y for _, y in kept])
        before = tuple(self._vocabulary.fragments)
        scores = score_fragments(self._fgib, graphs, y, how="fgib")
        self._vocabulary.update(scores, self._config.max_update)
        after = tuple(self._vocabulary.fragments)
        if after != before:
            self._assembly.set_vocabulary()
            self.history.append((self.record.calls, after))

    def _note(self, phase: str, steps: int, y: list[float], lengths: list[int]) -> None:
        assembly = self._assembly
        fragments = self._vocabulary.fragments
        row: dict[str, float | int | str] = {
            "calls": self.record.calls,
            "steps": steps,
            "phase": phase,
            "mean_score_assembled": _mean(y),
            "entropy": _mean(assembly.entropies) if assembly is not None else math.nan,
            "episode_length": _mean(lengths),
            "fragment_atoms": _mean(assembly.fragment_atoms) if assembly is not None else math.nan,
            "vocabulary": len(fragments),
            "new_fragments": sum(f not in self._initial for f in fragments)
            / max(1, len(fragments)),
        }
        if assembly is not None:
            assembly.entropies, assembly.fragment_atoms = [], []
        self.progress.append(row)
        logger.info(
            "call %(calls)d (%(phase)s): mean score of assembled %(mean_score_assembled).3f, "
            "entropy %(entropy).2f, steps an episode %(episode_length).1f, atoms a fragment "
            "%(fragment_atoms).1f, %(vocabulary)d fragments, %(new_fragments).2f of them new",
            row,
        )

    def outcome(self) -> dict[str, Any]:
        """What the result is made of."""
        return {
            "stage": self._stage,
            "record": self.record.state_dict(),
            "history": _pack_history(self.history),
            "progress": self.progress,
        }

    def state_dict(self) -> dict[str, Any]:
        """All that the rest of the run depends on."""
        return self.outcome() | {
            "vocabulary": {name: float(score) for name, score in self._vocabulary.scores.items()},
            "population": (self._population.smiles, self._population.scores),
            "rng": python_state(self._rng),
            "batch": (self._batch.exploring, self._batch.y, self._batch.lengths),
            "failures": self._failures,
            "random_phase": self._random_phase,
            "assembly": None if self._assembly is None else self._assembly.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave; of an ended run `outcome` is enough."""
        self._stage = state["stage"]
        self.record.load_state_dict(state["record"])
        self.history = _unpack_history(state["history"])
        self.progress = list(state["progress"])
        if self._stage == "end":
            return
        self._vocabulary.replace(state["vocabulary"])
        self._population = Population(self._config.population)
        self._population.add(zip(*state["population"], strict=True))
        self._rng = python_random(state["rng"])
        self._batch = _Batch(*state["batch"])
        self._failures = state["failures"]
        self._random_phase = list(state["random_phase"])
        if self._assembly is not None:
            self._assembly.load_state_dict(state["assembly"])


def _pack_history(history: list[tuple[int, tuple[str, ...]]]) -> dict[str, Any]:
    """Vocabularies as numbers: most of their fragments are in the one before."""
    number: dict[str, int] = {}
    rows = [[number.setdefault(f, len(number)) for f in fragments] for _, fragments in history]
    return {
        "calls": [calls for calls, _ in history],
        "fragments": list(number),
        "rows": [torch.tensor(row, dtype=torch.int32) for row in rows],
    }


def _unpack_history(state: Mapping[str, Any]) -> list[tuple[int, tuple[str, ...]]]:
    names = state["fragments"]
    rows = [tuple(names[k] for k in row.tolist()) for row in state["rows"]]
    return list(zip(state["calls"], rows, strict=True))


def _mean(values: list[float] | list[int]) -> float:
    return float(np.mean(values)) if values else math.nan


def run_geam(
    oracle: Callable[[Mol], float],
    vocabulary: Vocabulary,
    fgib: FGIB | None,
    config: GenerationConfig,
    seed: int,
    *,
    start: Mapping[str, float] | None = None,
    checkpoints: Checkpoints | None = None,
    name: str = "geam",
) -> GenerationResult:
    """Generate molecules with GEAM or one of its ablations.

    Assembly runs in parallel episodes, `config.random_steps` steps of it with random actions. Every
    `config.oracle_every` steps the finished molecules are scored; then the genetic algorithm makes
    `config.offspring` offspring an episode from the best molecules so far, they are scored, and
    with `config.dynamic` their best fragments (scored by the bottleneck) join the vocabulary.

    The run ends at `config.budget` distinct calls of the oracle, or at `config.max_molecules` rows,
    so that a collapsed policy cannot run for ever.

    Args:
        oracle: property in [0, 1] of a molecule; NaN says that it failed: the row's score is 0, and
            the agent does not learn from it (0 itself is a property like any other).
        vocabulary: the first fragments; it is not changed.
        fgib: scores the fragments of offspring; may be None where nothing is dynamic.
        seed: of everything random. Runs that share a seed share their random phase.
        start: canonical SMILES and scores of the first population (GEAM-w/o A needs one).
        checkpoints: where the state is kept while the run lasts; a run that was killed at any
            moment and started again gives the same result. None keeps nothing.
        name: tells apart the runs of one job.

    Raises:
        SystemExit: 143 after SIGTERM, with the state in a checkpoint.
        ValueError: empty vocabulary; `dynamic` without a bottleneck; no assembly and no `start`;
            an oracle's value outside [0, 1].
    """
    if config.assembly != "none" and not len(vocabulary.fragments):
        raise ValueError("the vocabulary is empty: nothing to assemble from")
    updates = config.dynamic and config.modification and config.assembly != "none"
    if updates and fgib is None:
        raise ValueError("fgib is None; a dynamic vocabulary needs the bottleneck")
    if config.assembly == "none" and len(start or {}) < 2:
        raise ValueError("assembly is 'none'; it needs a start population of two at least")
    with Keeper(checkpoints, name) as keep:
        run = _Run(oracle, vocabulary, fgib, config, seed, start or {}, keep)
        found = keep.load()
        if found is not None:
            run.load_state_dict(found)
        if found is None or found["stage"] != "end":
            run.run()
            # A later run of the same job may be killed: this one is not made again.
            keep.save(run.outcome)
    return GenerationResult(run.record.table(), run.history, pd.DataFrame(run.progress))
