"""The replay buffer: what the agent has seen, and the same as plain tensors for a checkpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from retable.geam.actor_critic import ATOM_FEATURES, MAX_POINTS

Action = tuple[int, int, int]


@dataclass(frozen=True)
class Graph:
    """What the networks see of a molecule or fragment.

    Attributes:
        x: (n, 28) uint8: symbol C N O S P F I Cl Br * (another element counts as *), degree 0..5,
            total hydrogens 0..4, implicit valence 0..5 (above: the last), aromatic.
        edge_index: (2, 2 x bonds) int16.
        points: (p,) int16, the dummy atoms.
    """

    x: np.ndarray
    edge_index: np.ndarray
    points: np.ndarray


@dataclass(frozen=True)
class Decision:
    """An action and the policy's probabilities when it was taken.

    Attributes:
        action: (i, position of the fragment in the vocabulary, j).
        fragment: the fragment's number in the agent's library.
        pi1, pi3: (40,) float32, zero on padding; pi3 is that of the chosen fragment.
    """

    action: Action
    fragment: int
    pi1: np.ndarray
    pi3: np.ndarray


@dataclass(frozen=True)
class Transition:
    """One step of an episode, as the replay buffer holds it.

    Attributes:
        state: the graph before the step.
        decision: the action taken, and the policy's probability vectors.
        reward: the step's reward, without the property.
        next_state: the graph after the step; None where the episode ended.
        y: the property of the final molecule; 0 before the end.
    """

    state: Graph
    decision: Decision
    reward: float
    next_state: Graph | None
    y: float = 0.0


class ReplayBuffer:
    """The last `size` transitions, oldest overwritten first."""

    def __init__(self, size: int):
        self._size = size
        self._items: list[Transition] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Transition) -> None:
        """Put a transition in."""
        if len(self._items) < self._size:
            self._items.append(item)
        else:
            self._items[self._next] = item
        self._next = (self._next + 1) % self._size

    def sample(self, count: int, rng: np.random.Generator) -> list[Transition]:
        """Draw transitions with replacement."""
        return [self._items[k] for k in rng.integers(len(self._items), size=count)]

    def state_dict(self) -> dict[str, Any]:
        """The transitions as tensors."""
        return {"next": self._next, "items": pack_transitions(self._items)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self._next, self._items = state["next"], unpack_transitions(state["items"])


def pack_transitions(items: Sequence[Transition]) -> dict[str, Tensor]:
    """Transitions as tensors.

    The graph after a step is the one before the next step: each is kept once, its features as bits.
    """
    graphs: dict[int, Graph] = {}
    for item in items:
        for graph in (item.state, item.next_state):
            if graph is not None:
                graphs.setdefault(id(graph), graph)
    number = {key: k for k, key in enumerate(graphs)}
    table = list(graphs.values())
    none = np.zeros((0, MAX_POINTS), np.float32)
    columns = {
        "state": np.array([number[id(t.state)] for t in items], np.int32),
        "after": np.array(
            [-1 if t.next_state is None else number[id(t.next_state)] for t in items], np.int32
        ),
        "action": np.array([t.decision.action for t in items], np.int32).reshape(-1, 3),
        "fragment": np.array([t.decision.fragment for t in items], np.int32),
        "pi1": np.stack([t.decision.pi1 for t in items]) if items else none,
        "pi3": np.stack([t.decision.pi3 for t in items]) if items else none,
        "reward": np.array([t.reward for t in items], np.float64),
        "y": np.array([t.y for t in items], np.float64),
        "atoms": np.array([len(graph.x) for graph in table], np.int32),
        "edges": np.array([graph.edge_index.shape[1] for graph in table], np.int32),
        "points": np.array([len(graph.points) for graph in table], np.int32),
        "x": np.packbits(_joined([graph.x for graph in table], (0, ATOM_FEATURES)), axis=1),
        "edge_index": _joined([graph.edge_index.T for graph in table], (0, 2)).astype(np.int16),
        "point": _joined([graph.points for graph in table], (0,)).astype(np.int16),
    }
    return {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in columns.items()}


def _joined(arrays: list[np.ndarray], empty: tuple[int, ...]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.zeros(empty, np.uint8)


def unpack_transitions(state: Mapping[str, Tensor]) -> list[Transition]:
    """The transitions that `pack_transitions` laid into tensors."""
    a = {name: tensor.numpy() for name, tensor in state.items()}
    if not len(a["state"]):
        return []
    x = np.unpackbits(a["x"], axis=1, count=ATOM_FEATURES)
    parts = zip(
        np.split(x, np.cumsum(a["atoms"])[:-1]),
        np.split(a["edge_index"], np.cumsum(a["edges"])[:-1]),
        np.split(a["point"], np.cumsum(a["points"])[:-1]),
        strict=True,
    )
    graphs = [Graph(x, np.ascontiguousarray(edges.T), points) for x, edges, points in parts]
    rows = zip(
        a["state"].tolist(), a["after"].tolist(), a["action"].tolist(), a["fragment"].tolist(),
        a["pi1"], a["pi3"], a["reward"].tolist(), a["y"].tolist(), strict=True,
    )  # fmt: skip
    return [
        Transition(
            graphs[before],
            Decision((i, f, j), fragment, pi1, pi3),
            reward,
            graphs[after] if after >= 0 else None,
            y,
        )
        for before, after, (i, f, j), fragment, pi1, pi3, reward, y in rows
    ]
