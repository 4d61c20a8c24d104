"""Assembly of molecules from fragments: the environment and soft actor-critic (section 3.2).

A molecule is an RDKit molecule whose dummy atoms are its attachment points, counted in the order of
their atom indices. An action (i, fragment, j) joins point i of the molecule to point j of the
fragment by a single bond.
"""

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator
from torch import Tensor, nn

from retable.geam.actor_critic import (
    ATOM_FEATURES,
    FINGERPRINT_BITS,
    MAX_POINTS,
    Critics,
    FragmentBatch,
    GraphBatch,
    Policy,
    draw,
    entropy,
)
from retable.geam.config import SACConfig
from retable.geam.replay import Action, Decision, Graph, ReplayBuffer, Transition
from retable.geam.resume import numpy_state, set_numpy_state
from retable.geam.vocabulary import Vocabulary

logger = logging.getLogger("retable")

START = "c1([*:1])c([*:2])ccc([*:3])c1"
STEP_REWARD = 0.05
GROWTH_REWARD = 0.005

_SYMBOLS = {symbol: i for i, symbol in enumerate(["C", "N", "O", "S", "P", "F", "I", "Cl", "Br"])}
_MIN_SPREAD = 1e-6


def attachment_points(mol: Chem.Mol) -> list[int]:
    """The indices of the dummy atoms, in ascending order."""
    return [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetAtomicNum() == 0]


@lru_cache(maxsize=100_000)
def parse_fragment(fragment: str) -> Chem.Mol:
    """Read a fragment's SMILES.

    Raises:
        ValueError: no valid SMILES, or no attachment point (`*`) in it.
    """
    mol = Chem.MolFromSmiles(fragment)
    if mol is None:
        raise ValueError(f"fragment {fragment!r} is no valid SMILES")
    if not attachment_points(mol):
        raise ValueError(f"fragment {fragment!r} has no attachment point (*)")
    return mol


def _point(points: Sequence[int], position: int, owner: str) -> int:
    if not 0 <= position < len(points):
        raise ValueError(
            f"attachment point {position} of {owner}: it has {len(points)}, counted from 0"
        )
    return points[position]


def attach(mol: Chem.Mol, i: int, fragment: Chem.Mol | str, j: int) -> Chem.Mol:
    """Join point `i` of the molecule to point `j` of the fragment; both dummy atoms vanish.

    The neighbours of the two dummies get a single bond. The other attachment points stay, those
    of the molecule before those of the fragment. Neither argument is changed.

    Raises:
        ValueError: a point that does not exist, or a fragment without any.
    """
    piece = parse_fragment(fragment) if isinstance(fragment, str) else fragment
    first = _point(attachment_points(mol), i, "the molecule")
    name = fragment if isinstance(fragment, str) else "the fragment"
    second = _point(attachment_points(piece), j, name) + mol.GetNumAtoms()
    joined = Chem.RWMol(Chem.CombineMols(mol, piece))
    ends = [joined.GetAtomWithIdx(dummy).GetNeighbors()[0].GetIdx() for dummy in (first, second)]
    joined.AddBond(*ends, Chem.BondType.SINGLE)
    joined.RemoveAtom(second)
    joined.RemoveAtom(first)
    result = joined.GetMol()
    Chem.SanitizeMol(result)
    return result


def cap(mol: Chem.Mol) -> Chem.Mol:
    """The molecule without its attachment points: hydrogen fills their places."""
    capped = Chem.RWMol(mol)
    for index in attachment_points(mol):
        dummy = capped.GetAtomWithIdx(index)
        dummy.SetAtomicNum(1)
        dummy.SetAtomMapNum(0)
        for bond in dummy.GetBonds():
            bond.SetBondType(Chem.BondType.SINGLE)
    result = Chem.RemoveHs(capped, sanitize=False)
    Chem.SanitizeMol(result)
    return result


def observe_graph(mol: Chem.Mol) -> Graph:
    """The graph of a molecule with attachment points.

    Raises:
        ValueError: more than 40 attachment points.
    """
    rows = []
    points = []
    for index, atom in enumerate(mol.GetAtoms()):
        if atom.GetAtomicNum() == 0:
            points.append(index)
        implicit = atom.GetValence(Chem.ValenceType.IMPLICIT)
        rows.append(
            (
                _SYMBOLS.get(atom.GetSymbol(), 9),
                10 + min(atom.GetDegree(), 5),
                16 + min(atom.GetTotalNumHs(), 4),
                21 + min(implicit, 5),
                27 if atom.GetIsAromatic() else 21 + min(implicit, 5),
            )
        )
    if len(points) > MAX_POINTS:
        raise ValueError(
            f"{Chem.MolToSmiles(mol)} has {len(points)} attachment points; at most {MAX_POINTS}"
        )
    x = np.zeros((len(rows), ATOM_FEATURES), np.uint8)
    np.put_along_axis(x, np.array(rows), 1, axis=1)
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
    pairs = np.array(ends, np.int16).reshape(-1, 2)
    edge_index = np.concatenate([pairs, pairs[:, ::-1]]).T.copy()
    return Graph(x, edge_index, np.array(points, np.int16))


def batch_graphs(graphs: Sequence[Graph]) -> GraphBatch:
    """Lay graphs side by side."""
    sizes = np.array([len(graph.x) for graph in graphs])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    edges = [graph.edge_index.astype(np.int64) + s for graph, s in zip(graphs, starts, strict=True)]
    counts = np.array([len(graph.points) for graph in graphs])
    mask = np.arange(MAX_POINTS) < counts[:, None]
    points = np.zeros(mask.shape, np.int64)
    points[mask] = np.concatenate([graph.points for graph in graphs]) + np.repeat(starts, counts)
    return GraphBatch(
        x=torch.from_numpy(np.concatenate([graph.x for graph in graphs])).float(),
        edge_index=torch.from_numpy(np.concatenate(edges, axis=1)),
        graph=torch.from_numpy(np.repeat(np.arange(len(graphs)), sizes)),
        points=torch.from_numpy(points),
        mask=torch.from_numpy(mask),
    )


class AssemblyEnv:
    """The Markov decision process of assembly.

    An episode starts from benzene with three attachment points and ends when no attachment point
    is left or the number of atoms, dummies included, exceeds `max_atoms` (the paper writes 40, the
    official code has 30). The vocabulary is read at each step: it may grow during an episode.

    The step reward is 0.05, and 0.005 more if the number of atoms grew; the property of the final
    molecule is added by the caller, who owns the oracle.

    Attributes:
        path: the episode's actions so far, each with the fragment's SMILES in the place of its
            position: what `repeat` needs.
    """

    def __init__(self, vocabulary: Vocabulary, max_atoms: int = 40):
        if max_atoms < 1:
            raise ValueError(f"max_atoms is {max_atoms}; it must be at least 1")
        self.vocabulary = vocabulary
        self.max_atoms = max_atoms
        self.reset()

    def reset(self) -> Chem.Mol:
        """Begin an episode and return its first molecule."""
        self.mol = Chem.MolFromSmiles(START)
        self.done = False
        self.path: list[tuple[int, str, int]] = []
        return self.mol

    @property
    def length(self) -> int:
        """The number of steps of the episode."""
        return len(self.path)

    def repeat(self, path: Iterable[tuple[int, str, int]]) -> Chem.Mol:
        """Begin an episode with these actions and return its molecule."""
        self.reset()
        for i, fragment, j in path:
            self._attach(i, fragment, j)
        return self.mol

    def _attach(self, i: int, fragment: str, j: int) -> None:
        self.mol = attach(self.mol, i, fragment, j)
        self.path.append((i, fragment, j))
        self.done = self.mol.GetNumAtoms() > self.max_atoms or not attachment_points(self.mol)

    def valid_actions(self) -> tuple[int, np.ndarray]:
        """The number of attachment points of the molecule, and (S,) those of each fragment."""
        counts = [len(attachment_points(parse_fragment(f))) for f in self.vocabulary.fragments]
        return len(attachment_points(self.mol)), np.array(counts, np.int64)

    def step(self, action: Action) -> tuple[Chem.Mol, float, bool]:
        """Attach point j of a fragment to point i: `action` = (i, position of the fragment, j).

        Returns:
            The molecule, the step's reward, and whether the episode is over.

        Raises:
            ValueError: the episode is over, or no such point or fragment.
        """
        if self.done:
            raise ValueError("the episode is over; call reset() first")
        i, fragment, j = action
        fragments = self.vocabulary.fragments
        if not 0 <= fragment < len(fragments):
            raise ValueError(f"fragment {fragment}: the vocabulary has {len(fragments)}")
        before = self.mol.GetNumAtoms()
        self._attach(i, fragments[fragment], j)
        grew = self.mol.GetNumAtoms() > before
        return self.mol, STEP_REWARD + GROWTH_REWARD * grew, self.done

    def final_molecule(self) -> Chem.Mol:
        """The molecule with hydrogen in place of the attachment points that are left."""
        return cap(self.mol)


class FragmentLibrary:
    """All fragments that were ever in the vocabulary, with what the networks need of them.

    A fragment keeps its number for good, so that stored actions stay valid while the vocabulary
    changes. Fingerprint: Morgan, radius 2, 1024 bits, of the fragment without its dummy atoms.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._graphs: list[Graph] = []
        self._bits: list[np.ndarray] = []
        self._generator = rdFingerprintGenerator.GetMorganGenerator(2, fpSize=FINGERPRINT_BITS)

    @property
    def fragments(self) -> list[str]:
        """All fragments in the order of their numbers."""
        return list(self._numbers)

    def numbers(self, fragments: Iterable[str]) -> np.ndarray:
        """The numbers (S,) of fragments; new ones are added."""
        found = []
        for fragment in fragments:
            if fragment not in self._numbers:
                mol = parse_fragment(fragment)
                self._numbers[fragment] = len(self._graphs)
                self._graphs.append(observe_graph(mol))
                on = self._generator.GetFingerprint(cap(mol)).GetOnBits()
                self._bits.append(np.array(on, np.int64))
            found.append(self._numbers[fragment])
        return np.array(found, np.int64)

    def bags(self, numbers: np.ndarray) -> tuple[Tensor, Tensor]:
        """The set bits of these fragments and where each one's begin."""
        chosen = [self._bits[number] for number in numbers]
        ends = np.cumsum([len(bits) for bits in chosen])
        offsets = np.concatenate([[0], ends[:-1]])
        return torch.from_numpy(np.concatenate(chosen)), torch.from_numpy(offsets)

    def batch(self, numbers: np.ndarray) -> FragmentBatch:
        """These fragments as one batch."""
        graphs = batch_graphs([self._graphs[number] for number in numbers])
        return FragmentBatch(graphs, *self.bags(numbers))


class RandomAgent:
    """Uniform over the molecule's points, the fragments, and the fragment's points."""

    def __init__(self, vocabulary: Vocabulary, seed: int):
        self._rng = np.random.default_rng(seed)
        self.set_vocabulary(vocabulary)

    def state_dict(self) -> dict[str, Any]:
        """The state of its generator."""
        return {"rng": numpy_state(self._rng)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        set_numpy_state(self._rng, state["rng"])

    def set_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Choose among these fragments from now on."""
        self._counts = [len(attachment_points(parse_fragment(f))) for f in vocabulary.fragments]

    def act(self, states: Sequence[Graph]) -> list[Action]:
        """One action (i, fragment, j) a state."""
        actions = []
        for state in states:
            i = int(self._rng.integers(len(state.points)))
            fragment = int(self._rng.integers(len(self._counts)))
            actions.append((i, fragment, int(self._rng.integers(self._counts[fragment]))))
        return actions


class SACAgent:
    """Soft actor-critic over assembly actions.

    The critics' loss is the squared error to r + gamma (1 - done) V(s'), with V the target
    critics' min(Q1, Q2) under the current policy; the actor's is
    E[alpha sum_a pi log pi - V(s)]. In both the attachment point is drawn (straight-through
    gradient) and the fragment is summed out exactly: V = sum_f pi2(f) min(Q1, Q2)(f). The sum of
    pi log pi over the three factors is taken factor by factor: H(pi1) + H(pi2) + sum_f pi2(f)
    H(pi3(f)). The embedding is trained with the critics alone.

    Against the official code: the target is a true polyak average (embedding included; there it
    is overwritten by the online weights before each average), and the buffer holds the fragment
    that was attached in random steps too (there the one that the policy would have drawn).

    With `stabilise` (our addition; needed at some hundred updates instead of many thousands): layer
    norm in the embedding, a first policy that is uniform, and properties that are standardised by
    what the random phase saw (`standardise`).

    Args:
        vocabulary: the fragments to choose from; `set_vocabulary` after each change.
        seed: of the weights, the draws and the samples from the buffer.
    """

    def __init__(self, config: SACConfig, vocabulary: Vocabulary, seed: int):
        self.config = config
        self._generator = torch.Generator().manual_seed(seed)
        self._rng = np.random.default_rng(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.critics = Critics(config.width, normalise=config.stabilise)
            self.policy = Policy(config.width, uniform_start=config.stabilise)
        self.target = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = torch.tensor(float(np.log(config.alpha)), requires_grad=True)
        decay = {"lr": config.lr, "weight_decay": config.weight_decay}
        self._policy_optimizer = torch.optim.Adam(self.policy.parameters(), **decay)
        self._critic_optimizer = torch.optim.Adam(self.critics.parameters(), **decay)
        self._alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=config.alpha_lr, eps=1e-4)
        self._schedules: list[torch.optim.lr_scheduler.ReduceLROnPlateau] = []
        if config.plateau_patience is not None:
            self._schedules = [
                torch.optim.lr_scheduler.ReduceLROnPlateau(
                    optimizer, factor=0.1, patience=config.plateau_patience
                )
                for optimizer in (self._critic_optimizer, self._policy_optimizer)
            ]
        self.buffer = ReplayBuffer(config.buffer)
        self.library = FragmentLibrary()
        self._mean, self._spread = 0.0, 1.0
        self.updates = 0
        self.set_vocabulary(vocabulary)

    @property
    def alpha(self) -> float:
        """The weight of the entropy."""
        return float(self.log_alpha.detach().exp())

    def set_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Choose among these fragments from now on; no parameter depends on their number."""
        self._numbers = self.library.numbers(vocabulary.fragments)
        self._fragments = self.library.batch(self._numbers)
        self._tables: tuple[Tensor, Tensor] | None = None

    def _pi3(self) -> Tensor:
        """pi3 (S, 40) of the whole vocabulary, with gradients for the policy alone."""
        with torch.no_grad():
            atoms, whole = self.critics.embedding(self._fragments.graphs)
        return self.policy.fragment_points(self._fragments.graphs, atoms, whole)

    def _cached_tables(self) -> tuple[Tensor, Tensor]:
        """The fragments' part of pi2 and pi3, made once a state of parameters and vocabulary."""
        if self._tables is None:
            with torch.no_grad():
                self._tables = self.policy.bag(self._fragments), self._pi3()
        return self._tables

    @torch.no_grad()
    def act(
        self, states: Sequence[Graph], actions: Sequence[Action] | None = None
    ) -> tuple[list[Decision], Tensor]:
        """Draw one action a state; or, where `actions` are given, say what the policy thinks.

        Returns:
            One decision a state, and (B,) the policy's entropy (of the three factors) there; it is
            NaN for given actions.
        """
        batch = batch_graphs(states)
        bag, pi3 = self._cached_tables()
        pi1, z1 = self.policy.points(batch, *self.critics.embedding(batch))
        rows = torch.arange(len(states))
        if actions is None:
            first = draw(pi1, self._generator, self.config.sampling)
            pi2 = self.policy.fragments(bag, torch.einsum("bp,bpm->bm", first, z1))
            fragment = draw(pi2, self._generator, self.config.sampling).argmax(-1)
            last = draw(pi3[fragment], self._generator, self.config.sampling).argmax(-1)
            chosen = torch.stack([first.argmax(-1), fragment, last], dim=1)
            uncertainty = entropy(pi1) + entropy(pi2) + pi2 @ entropy(pi3)
        else:
            chosen = torch.tensor(actions)
            uncertainty = torch.full((len(states),), torch.nan)
        pi1_rows, pi3_rows = pi1[rows].numpy(), pi3[chosen[:, 1]].numpy()
        decisions = [
            Decision((int(i), int(f), int(j)), int(self._numbers[f]), pi1_rows[b], pi3_rows[b])
            for b, (i, f, j) in enumerate(chosen.tolist())
        ]
        return decisions, uncertainty

    def observe(self, transition: Transition) -> None:
        """Put a transition into the replay buffer."""
        self.buffer.add(transition)

    def standardise(self, y: Sequence[float]) -> None:
        """Standardise properties by the mean and the standard deviation of these (below 1e-6: 1).

        Rewards are standardised when they are sampled, so that stored transitions follow.
        """
        self._mean, spread = float(np.mean(y)), float(np.std(y))
        self._spread = spread if spread >= _MIN_SPREAD else 1.0

    def update(self, actor: bool = True, train_alpha: bool = False) -> dict[str, float]:
        """One step of the critics and, if asked, of the actor and of alpha.

        Returns:
            `critic_loss`, and with `actor` also `actor_loss` and `entropy`.
        """
        items = self.buffer.sample(self.config.batch, self._rng)
        states = batch_graphs([item.state for item in items])
        result = {"critic_loss": self._update_critics(items, states)}
        if actor:
            result |= self._update_actor(states, train_alpha)
        self._polyak()
        self._tables = None
        self.updates += 1
        losses = (result["critic_loss"], result.get("actor_loss"))
        for schedule, value in zip(self._schedules, losses, strict=False):
            if value is not None:
                schedule.step(value)
        return result

    def _rewards(self, items: Sequence[Transition]) -> Tensor:
        step = np.array([item.reward for item in items])
        y = np.array([item.y for item in items])
        done = np.array([item.next_state is None for item in items])
        return torch.from_numpy(step + done * (y - self._mean) / self._spread).float()

    @torch.no_grad()
    def _targets(self, items: Sequence[Transition]) -> Tensor:
        targets = self._rewards(items)
        alive = [k for k, item in enumerate(items) if item.next_state is not None]
        if not alive:
            return targets
        batch = batch_graphs([items[k].next_state for k in alive])
        bag, pi3 = self._cached_tables()
        pi1, z1 = self.policy.points(batch, *self.critics.embedding(batch))
        first = draw(pi1, self._generator, self.config.sampling)
        pi2 = self.policy.fragments(bag, torch.einsum("bp,bpm->bm", first, z1))
        whole = self.target.embedding(batch)[1]
        value = (pi2 * self.target.smaller(whole, pi1, self._fragments, pi3)).sum(-1)
        if self.config.entropy_in_target:
            value = value + self.alpha * (entropy(pi1) + entropy(pi2) + pi2 @ entropy(pi3))
        targets[alive] += self.config.gamma * value
        return targets

    def _update_critics(self, items: Sequence[Transition], states: GraphBatch) -> float:
        targets = self._targets(items)
        pi1 = torch.from_numpy(np.stack([item.decision.pi1 for item in items]))
        pi3 = torch.from_numpy(np.stack([item.decision.pi3 for item in items]))
        bags = self.library.bags(np.array([item.decision.fragment for item in items]))
        whole = self.critics.embedding(states)[1]
        q1 = self.critics.q1(whole, pi1, *bags, pi3)
        q2 = self.critics.q2(whole.detach(), pi1, *bags, pi3)
        loss = ((q1 - targets) ** 2).mean() + ((q2 - targets) ** 2).mean()
        self._descend(loss, self.critics, self._critic_optimizer)
        return loss.item()

    def _update_actor(self, states: GraphBatch, train_alpha: bool) -> dict[str, float]:
        with torch.no_grad():
            atoms, whole = self.critics.embedding(states)
        pi1, z1 = self.policy.points(states, atoms, whole)
        pi3 = self._pi3()
        first = draw(pi1, self._generator, self.config.sampling)
        bag = self.policy.bag(self._fragments)
        pi2 = self.policy.fragments(bag, torch.einsum("bp,bpm->bm", first, z1))
        self.critics.requires_grad_(False)
        value = (pi2 * self.critics.smaller(whole, pi1, self._fragments, pi3)).sum(-1)
        uncertainty = entropy(pi1) + entropy(pi2) + pi2 @ entropy(pi3)
        loss = -(self.alpha * uncertainty + value).mean()
        self._descend(loss, self.policy, self._policy_optimizer)
        self.critics.requires_grad_(True)
        if train_alpha:
            self._update_alpha(uncertainty.detach())
        return {"actor_loss": loss.item(), "entropy": uncertainty.detach().mean().item()}

    def _update_alpha(self, uncertainty: Tensor) -> None:
        """A step on -(log alpha)(sum pi log pi + target entropy); alpha stays within its bounds."""
        loss = self.log_alpha * (uncertainty - self.config.target_entropy).mean()
        self._alpha_optimizer.zero_grad()
        loss.backward()
        self._alpha_optimizer.step()
        with torch.no_grad():
            bounds = np.log([self.config.alpha_min, self.config.alpha_max])
            self.log_alpha.clamp_(*bounds.tolist())

    def _descend(self, loss: Tensor, module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), self.config.grad_norm)
        optimizer.step()

    @torch.no_grad()
    def _polyak(self) -> None:
        followers, leaders = list(self.target.parameters()), list(self.critics.parameters())
        torch._foreach_lerp_(followers, leaders, 1 - self.config.polyak)

    def state_dict(self) -> dict[str, Any]:
        """All that later actions and updates depend on, but for the vocabulary.

        The weights of policy, critics and target and log alpha; optimisers and schedules;
        generators; the replay buffer and the fragments that its numbers stand for.
        """
        return {
            "policy": self.policy.state_dict(),
            "critics": self.critics.state_dict(),
            "target": self.target.state_dict(),
            "log_alpha": self.log_alpha.detach().clone(),
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers()],
            "schedules": [schedule.state_dict() for schedule in self._schedules],
            "generator": self._generator.get_state(),
            "rng": numpy_state(self._rng),
            "buffer": self.buffer.state_dict(),
            "fragments": self.library.fragments,
            "standard": (self._mean, self._spread),
            "updates": self.updates,
        }

    def load_state_dict(self, state: Mapping[str, Any], vocabulary: Vocabulary) -> None:
        """Go on from what `state_dict` gave, with the vocabulary of that moment."""
        self.policy.load_state_dict(state["policy"])
        self.critics.load_state_dict(state["critics"])
        self.target.load_state_dict(state["target"])
        with torch.no_grad():
            self.log_alpha.copy_(state["log_alpha"])
        for optimizer, found in zip(self._optimizers(), state["optimizers"], strict=True):
            optimizer.load_state_dict(found)
        for schedule, found in zip(self._schedules, state["schedules"], strict=True):
            schedule.load_state_dict(found)
        self._generator.set_state(state["generator"])
        set_numpy_state(self._rng, state["rng"])
        self.buffer.load_state_dict(state["buffer"])
        self.library = FragmentLibrary()
        self.library.numbers(state["fragments"])
        self._mean, self._spread = state["standard"]
        self.updates = state["updates"]
        self.set_vocabulary(vocabulary)

    def _optimizers(self) -> tuple[torch.optim.Optimizer, ...]:
        return self._policy_optimizer, self._critic_optimizer, self._alpha_optimizer
