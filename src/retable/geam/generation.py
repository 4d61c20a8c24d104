"""Generation: assembly, modification and the dynamic vocabulary in one loop (section 3.4).

The ablations are settings of the same loop: `dynamic=False` (GEAM-static), `modification=False`
(GEAM-w/o M), `assembly="none"` (GEAM-w/o A), `assembly="random"` (random actions).
"""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from rdkit.Chem import Mol

from retable.geam.assembly import (
    AssemblyEnv,
    Decision,
    Graph,
    RandomAgent,
    SACAgent,
    Transition,
    observe_graph,
    parse_fragment,
)
from retable.geam.config import GenerationConfig
from retable.geam.fgib import FGIB, score_fragments
from retable.geam.fragments import fragment_molecule
from retable.geam.modification import Population, canonical, reproduce, seeded_random
from retable.geam.oracles import CountingOracle
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

    @property
    def exploring(self) -> bool:
        """Whether the random phase lasts."""
        return self.steps < self._config.random_steps

    def set_vocabulary(self) -> None:
        """The vocabulary has changed."""
        self._random.set_vocabulary(self._vocabulary)
        if self.agent is not None:
            self.agent.set_vocabulary(self._vocabulary)

    def _decide(self) -> tuple[list[tuple[int, int, int]], list[Decision] | None, str]:
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

    def learn(self) -> None:
        """The updates that are due."""
        sac = self._config.sac
        if self.agent is None or not len(self.agent.buffer):
            return
        if sac.stabilise and not self.exploring and not self._warmed:
            self._warmed = True
            for _ in range(sac.critic_updates):
                self.agent.update(actor=False)
        if self.steps < sac.update_after:
            return
        self._due += len(self._envs)
        train_alpha = (
            sac.alpha_steps is not None and sac.alpha_steps[0] <= self.steps < sac.alpha_steps[1]
        )
        while self._due >= sac.update_every:
            self._due -= sac.update_every
            for _ in range(sac.updates):
                critics_only = sac.stabilise and self.exploring
                self.agent.update(actor=not critics_only, train_alpha=train_alpha)


class _Run:
    """One run of the loop."""

    def __init__(
        self,
        oracle: Callable[[Mol], float],
        vocabulary: Vocabulary,
        fgib: FGIB | None,
        config: GenerationConfig,
        seed: int,
        start: Mapping[str, float],
    ):
        limit = 4 * config.budget if config.max_molecules is None else config.max_molecules
        self.record = Record(oracle, config.budget, limit)
        self._config = config
        self._fgib = fgib
        self._vocabulary = Vocabulary(dict(vocabulary.scores), config.vocabulary_limit)
        self._initial = frozenset(self._vocabulary.fragments)
        self._population = Population(config.population)
        self._population.add(start.items())
        self._rng = seeded_random(seed, 1)
        self._assembly = None
        if config.assembly != "none":
            self._assembly = _Assembly(self._vocabulary, config, seed)
        self._random_phase: list[float] = []
        self.history = [(0, tuple(self._vocabulary.fragments))]
        self.progress: list[dict[str, float | int | str]] = []

    def run(self) -> None:
        if self._assembly is None:
            self._modify_alone()
            return
        while not self.record.full:
            was_exploring = self._assembly.exploring
            self._assembly.step()
            ends_phase = was_exploring and not self._assembly.exploring
            block = self._assembly.steps // self._config.oracle_every
            crossed = block > (self._assembly.steps - self._config.episodes) // (
                self._config.oracle_every
            )
            if crossed or ends_phase:
                self._score_batch(was_exploring)
            if not self.record.full:
                self._assembly.learn()

    def _modify_alone(self) -> None:
        failures = 0
        while not self.record.full:
            offspring = self._modify(self._config.episodes * self._config.offspring)
            failures = 0 if offspring else failures + 1
            if failures == _OFFSPRING_FAILURES:
                logger.warning("no parents have valid offspring any more: the run ends early")
                return
            self._update_vocabulary(offspring)
            self._note("modification", 0, [], [])

    def _score_batch(self, exploring: bool) -> None:
        """The oracle on the molecules assembled since the last batch, then on their offspring."""
        assembly = self._assembly
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
        if exploring:
            self._random_phase += [y for _, y in scored]
            if assembly.agent is not None and self._config.sac.stabilise and self._random_phase:
                assembly.agent.standardise(self._random_phase)
        elif self._config.modification and len(self._population) >= 2:
            self._update_vocabulary(self._modify(len(scored) * self._config.offspring))
        phase = "random" if exploring or assembly.agent is None else "sac"
        lengths = [episode.length for episode in finished]
        self._note(phase, assembly.steps, [y for _, y in scored], lengths)

    def _modify(self, count: int) -> list[tuple[str, float]]:
        """So many offspring of the population, scored; they join it together."""
        offspring: list[tuple[str, float]] = []
        for _ in range(count):
            if self.record.full:
                break
            child = reproduce(self._population, self._config.mutation_rate, self._rng)
            if child is not None:
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

    Raises:
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
    run = _Run(oracle, vocabulary, fgib, config, seed, start or {})
    run.run()
    return GenerationResult(run.record.table(), run.history, pd.DataFrame(run.progress))
