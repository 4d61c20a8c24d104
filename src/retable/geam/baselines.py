"""Baselines with the same oracle budget: Graph GA, REINVENT, and a random library."""

import copy
import heapq
import itertools
import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from mol_ga.graph_ga.gen_candidates import graph_ga_blended_generation
from mol_ga.sample_population import uniform_quantile_sampling
from rdkit import Chem
from rdkit.Chem import Mol
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from retable.common.checkpoints import Checkpoints
from retable.common.molecules import quiet_rdkit
from retable.common.training import train
from retable.geam.generation import GenerationResult, Record
from retable.geam.modification import canonical, seeded_random, within_atom_limits
from retable.geam.resume import Keeper, python_random, python_state

logger = logging.getLogger("retable")

_TOKEN = re.compile(r"\[[^\]]+\]|Br|Cl|%\d\d|.")
_END = 0  # token 0 ends a string and pads it; it also begins one
_STALE_GENERATIONS = 20


def graph_ga(
    oracle: Callable[[Mol], float],
    start: Sequence[str],
    *,
    budget: int,
    population: int,
    offspring: int,
    seed: int,
    checkpoints: Checkpoints | None = None,
    name: str = "graph_ga",
) -> GenerationResult:
    """Graph GA (Jensen 2019) as in `mol_ga`: best `population` kept, parents from log quantiles.

    The molecules of `start` are scored first and count as calls. Offspring obey the atom limits of
    GEAM's own genetic algorithm (16 to 39 heavy atoms), since `mol_ga` dropped Graph GA's.

    Args:
        offspring: how many a generation; rows have source "ga", those of `start` "start".
        checkpoints, name: as for `run_geam`.
    """
    if not start:
        raise ValueError("start is empty; Graph GA needs molecules to begin with")
    rng = seeded_random(seed, 2)
    record = Record(oracle, budget, 4 * budget)
    pool: dict[str, float] = {}
    stale = 0
    begun = False

    def state() -> dict[str, Any]:
        return {
            "record": record.state_dict(),
            "pool": (list(pool), list(pool.values())),
            "rng": python_state(rng),
            "stale": stale,
            "begun": begun,
        }

    with Keeper(checkpoints, name) as keep:
        found = keep.load()
        if found is not None:
            record.load_state_dict(found["record"])
            pool = dict(zip(*found["pool"], strict=True))
            rng = python_random(found["rng"])
            stale, begun = found["stale"], found["begun"]
        if not begun:
            first = [canonical(smiles) for smiles in start]
            keep.evaluate(record.ahead(first), state)
            _score_all(record, first, "start", pool)
            begun = True
        while not record.full and stale < _STALE_GENERATIONS:
            best = heapq.nlargest(population, ((score, smiles) for smiles, score in pool.items()))
            # While the oracle works the state stays what it was before: so it may be saved.
            later = python_random(python_state(rng))
            with quiet_rdkit():
                samples = uniform_quantile_sampling(best, 2 * offspring, later)
                # A set of strings has another order in each process.
                children = sorted(graph_ga_blended_generation(samples, offspring, later))
                fitting = [canonical(child) for child in children if within_atom_limits(child)]
            # In a random order: the last generation is cut off where the budget ends.
            later.shuffle(fitting)
            keep.evaluate(record.ahead(fitting), state)
            rng = later
            pool = {smiles: score for score, smiles in best}
            stale = 0 if fitting else stale + 1
            _score_all(record, fitting, "ga", pool)
            keep(state)
        keep.save(state)
    return GenerationResult(record.table())


def random_library(
    oracle: Callable[[Mol], float],
    library: Sequence[str],
    *,
    budget: int,
    seed: int,
    checkpoints: Checkpoints | None = None,
    name: str = "random_library",
) -> GenerationResult:
    """`budget` molecules drawn from a library without replacement; source "library".

    `checkpoints` and `name` are as for `run_geam`.

    Raises:
        ValueError: the library has fewer molecules than the budget.
    """
    if len(library) < budget:
        raise ValueError(f"the library has {len(library)} molecules; the budget is {budget}")
    order = np.random.default_rng(seed).permutation(len(library))
    record = Record(oracle, budget, 4 * budget)
    with Keeper(checkpoints, name) as keep:
        found = keep.load()
        if found is not None:
            record.load_state_dict(found)
        drawn = [canonical(library[position]) for position in order[:budget]]
        keep.evaluate(record.ahead(drawn), record.state_dict)
        # A library may hold a molecule twice: others take its place.
        rest = (canonical(library[position]) for position in order[budget:])
        _score_all(record, itertools.chain(drawn, rest), "library", {})
        keep.save(record.state_dict)
    return GenerationResult(record.table())


def _score_all(record: Record, smiles: Iterable[str], source: str, pool: dict[str, float]) -> None:
    for text in smiles:
        if record.full:
            return
        score = record.score(text, source)
        pool[text] = 0.0 if math.isnan(score) else score


def tokenise(smiles: str) -> list[str]:
    """The tokens of a SMILES: bracket atoms, Br, Cl, ring numbers with %, single characters."""
    return _TOKEN.findall(smiles)


class SmilesLSTM(nn.Module):
    """A language model of SMILES: embedding, one LSTM layer, a linear readout.

    Args:
        tokens: the alphabet; the end of a string is added as token 0.
        embedding, width: sizes of the embedding and of the LSTM's state.
    """

    def __init__(self, tokens: Sequence[str], embedding: int = 48, width: int = 192):
        super().__init__()
        self.tokens = tuple(tokens)
        self._codes = {token: code for code, token in enumerate(self.tokens, start=1)}
        size = len(self.tokens) + 1
        self.embed = nn.Embedding(size, embedding)
        self.lstm = nn.LSTM(embedding, width, batch_first=True)
        self.readout = nn.Linear(width, size)

    def encode(self, smiles: Sequence[str]) -> Tensor:
        """Token codes (B, T) with the end of each string, padded with 0.

        Raises:
            ValueError: a token outside the alphabet, with its SMILES.
        """
        rows = []
        for text in smiles:
            unknown = [token for token in tokenise(text) if token not in self._codes]
            if unknown:
                raise ValueError(f"token {unknown[0]!r} of {text!r} is not in the alphabet")
            rows.append(torch.tensor([self._codes[token] for token in tokenise(text)] + [_END]))
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=_END)

    def decode(self, codes: Tensor) -> list[str]:
        """The strings of token codes (B, T), each up to its end."""
        texts = []
        for row in codes.tolist():
            end = row.index(_END) if _END in row else len(row)
            texts.append("".join(self.tokens[code - 1] for code in row[:end]))
        return texts

    def log_likelihood(self, codes: Tensor) -> Tensor:
        """log P (B,) in nats of each string with its end; padding does not count."""
        begun = functional.pad(codes[:, :-1], (1, 0), value=_END)
        states, _ = self.lstm(self.embed(begun))
        losses = functional.cross_entropy(
            self.readout(states).transpose(1, 2), codes, reduction="none"
        )
        ended = (codes == _END).cumsum(1)
        counts = ended - (codes == _END).long() == 0  # up to the first end, included
        return -(losses * counts).sum(1)

    @torch.no_grad()
    def sample(self, count: int, generator: torch.Generator, longest: int = 100) -> Tensor:
        """Token codes (count, T) of strings drawn from the model, at most `longest` tokens."""
        token = torch.zeros(count, 1, dtype=torch.long)
        state = None
        alive = torch.ones(count, dtype=torch.bool)
        columns = []
        for _ in range(longest):
            output, state = self.lstm(self.embed(token), state)
            probabilities = torch.softmax(self.readout(output[:, 0]), dim=-1)
            token = torch.multinomial(probabilities, 1, generator=generator)
            token[~alive] = _END
            columns.append(token[:, 0])
            alive &= token[:, 0] != _END
            if not alive.any():
                break
        return torch.stack(columns, dim=1)

    def save(self, path: Path) -> None:
        """Write weights and alphabet as safetensors."""
        save_file(self.state_dict(), path, metadata={"tokens": json.dumps(self.tokens)})

    @classmethod
    def load(cls, path: Path) -> "SmilesLSTM":
        """Read what `save` wrote."""
        with safe_open(path, framework="pt") as file:
            tokens = json.loads(file.metadata()["tokens"])
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        model = cls(tokens, weights["embed.weight"].shape[1], weights["lstm.weight_hh_l0"].shape[1])
        model.load_state_dict(weights)
        return model


def train_prior(
    smiles: Sequence[str],
    *,
    embedding: int = 48,
    width: int = 192,
    epochs: int = 3,
    lr: float = 3e-3,
    batch: int = 128,
    seed: int = 0,
    checkpoints: Checkpoints | None = None,
) -> SmilesLSTM:
    """Train the prior on SMILES by maximum likelihood (mean over strings, Adam)."""
    if not smiles:
        raise ValueError("no SMILES to train the prior on")
    alphabet = sorted({token for text in smiles for token in tokenise(text)})
    torch.manual_seed(seed)
    model = SmilesLSTM(alphabet, embedding, width)
    codes = model.encode(smiles)
    lengths = (codes != _END).sum(1) + 1

    def batches(epoch: int) -> Iterator[Tensor]:
        rng = np.random.default_rng((seed, epoch))
        order = torch.from_numpy(rng.permutation(len(codes)))
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            yield codes[rows, : int(lengths[rows].max())]

    def loss(network: SmilesLSTM, strings: Tensor) -> Tensor:
        return -network.log_likelihood(strings).mean()

    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    train(
        model, optimizer, loss, batches, epochs=epochs, clip_norm=5.0, checkpoints=checkpoints,
        name="prior",
    )  # fmt: skip
    return model


def reinvent(
    oracle: Callable[[Mol], float],
    prior: SmilesLSTM,
    *,
    budget: int,
    sigma: float = 60.0,
    batch: int = 64,
    lr: float = 5e-4,
    seed: int,
    checkpoints: Checkpoints | None = None,
    name: str = "reinvent",
) -> GenerationResult:
    """REINVENT (Olivecrona et al. 2017): the agent's log P moves to log P_prior + sigma Y.

    The loss is the mean over the batch's distinct strings of
    (log P_prior(x) + sigma Y(x) - log P_agent(x))^2, Adam with learning rate `lr`. Strings that are
    no molecules get Y = 0, cost no call and have no row (source "reinvent"); `progress` has the
    share of valid strings (`validity`) for each batch. The run ends at `budget` calls or after 16
    budget strings. `checkpoints` and `name` are as for `run_geam`.
    """
    agent = copy.deepcopy(prior)
    optimizer = torch.optim.Adam(agent.parameters(), lr=lr)
    generator = torch.Generator().manual_seed(seed)
    record = Record(oracle, budget, 4 * budget)
    progress: list[dict[str, float]] = []
    drawn = 0
    position = generator.get_state()

    def state() -> dict[str, Any]:
        return {
            "record": record.state_dict(),
            "agent": agent.state_dict(),
            "optimizer": optimizer.state_dict(),
            "generator": position,
            "progress": progress,
            "drawn": drawn,
        }

    with Keeper(checkpoints, name) as keep:
        found = keep.load()
        if found is not None:
            record.load_state_dict(found["record"])
            agent.load_state_dict(found["agent"])
            optimizer.load_state_dict(found["optimizer"])
            generator.set_state(found["generator"])
            progress, drawn = list(found["progress"]), found["drawn"]
        while not record.full and drawn < 16 * budget:
            # While the oracle works the state stays what it was before: so it may be saved.
            position = generator.get_state()
            codes = agent.sample(batch, generator)
            texts = agent.decode(codes)
            read = [_read(text) for text in texts]
            keep.evaluate(record.ahead([smiles for smiles in read if smiles is not None]), state)
            drawn += batch
            scores, valid = [], 0
            for smiles in read:
                if record.full:
                    break
                y = 0.0 if smiles is None else record.score(smiles, "reinvent")
                scores.append(0.0 if math.isnan(y) else y)
                valid += smiles is not None
            progress.append(
                {"calls": record.calls, "strings": len(scores),
                 "validity": valid / max(1, len(scores)),
                 "mean_score": float(np.mean(scores)) if scores else math.nan}
            )  # fmt: skip
            if not record.full:
                _reinforce(agent, prior, optimizer, codes, texts, sigma * torch.tensor(scores))
            position = generator.get_state()
            keep(state)
        keep.save(state)
    return GenerationResult(record.table(), progress=pd.DataFrame(progress))


def _reinforce(
    agent: SmilesLSTM,
    prior: SmilesLSTM,
    optimizer: torch.optim.Optimizer,
    codes: Tensor,
    texts: Sequence[str],
    scores: Tensor,
) -> None:
    """One step on (log P_prior(x) + sigma Y(x) - log P_agent(x))^2 of the distinct strings.

    `scores` (B,) are sigma Y of all strings.
    """
    rows = torch.tensor([texts.index(text) for text in dict.fromkeys(texts)])
    strings = codes[rows]
    with torch.no_grad():
        expected = prior.log_likelihood(strings)
    goal = expected + scores[rows]
    loss = ((goal - agent.log_likelihood(strings)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _read(text: str) -> str | None:
    """Canonical SMILES of a string; None if it is no molecule of one piece."""
    with quiet_rdkit():
        mol = Chem.MolFromSmiles(text) if text else None
        if mol is None or len(Chem.GetMolFrags(mol)) != 1:
            return None
        return canonical(mol)
