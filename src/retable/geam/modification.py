"""Modification of molecules: a genetic algorithm over the best molecules so far (section 3.3).

Crossover and mutation are those of Graph GA (Jensen 2019) as the library `mol_ga` has them.
"""

from collections.abc import Iterable
from random import Random

import numpy as np
from mol_ga.graph_ga import gen_candidates
from rdkit import Chem

from retable.common.molecules import quiet_rdkit

MIN_ATOMS = 16
MAX_ATOMS = 39
_PARENT_FLOOR = 1e-10
_TRIALS = 10


class Population:
    """The `size` best distinct molecules that were offered; earlier ones win ties."""

    def __init__(self, size: int):
        if size < 1:
            raise ValueError(f"size of the population is {size}; it must be at least 1")
        self.size = size
        self._scores: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._scores)

    @property
    def smiles(self) -> list[str]:
        """The molecules, best first."""
        return list(self._scores)

    @property
    def scores(self) -> list[float]:
        """Their scores, in the same order."""
        return list(self._scores.values())

    def add(self, scored: Iterable[tuple[str, float]]) -> None:
        """Offer molecules: canonical SMILES and score.

        Raises:
            ValueError: a score that is NaN or below 0, with its SMILES.
        """
        for smiles, score in scored:
            if not score >= 0:
                raise ValueError(f"score of {smiles!r} is {score}; it must be at least 0")
            self._scores.setdefault(smiles, score)
        # The sort is stable: among equals the earlier one stays.
        best = sorted(self._scores.items(), key=lambda pair: -pair[1])
        self._scores = dict(best[: self.size])

    def parents(self, rng: Random) -> tuple[str, str]:
        """Two molecules, with replacement, with probability proportional to score + 1e-10."""
        if not self._scores:
            raise ValueError("the population is empty: no parents")
        weights = [score + _PARENT_FLOOR for score in self._scores.values()]
        first, second = rng.choices(list(self._scores), weights=weights, k=2)
        return first, second


def within_atom_limits(smiles: str, min_atoms: int = MIN_ATOMS, max_atoms: int = MAX_ATOMS) -> bool:
    """Whether a molecule is one connected piece with so many heavy atoms (bounds included)."""
    mol = Chem.MolFromSmiles(smiles)
    if mol is None or len(Chem.GetMolFrags(mol)) != 1:
        return False
    return min_atoms <= mol.GetNumHeavyAtoms() <= max_atoms


def reproduce(
    population: Population,
    mutation_rate: float,
    rng: Random,
    min_atoms: int = MIN_ATOMS,
    max_atoms: int = MAX_ATOMS,
) -> str | None:
    """One offspring of two parents: crossover, then mutation with this rate.

    The operators keep rings sane (no allene in a ring, at most six atoms a ring, no double bond in
    a ring of three or four); the atom limits are ours. Up to ten pairs of parents are tried.

    Returns:
        Canonical SMILES, or None where all trials failed.
    """
    if not 0 <= mutation_rate <= 1:
        raise ValueError(f"mutation_rate is {mutation_rate}; it must lie in [0, 1]")
    with quiet_rdkit():
        for _ in range(_TRIALS):
            child = gen_candidates.reproduce(*population.parents(rng), mutation_rate, rng)
            if child is not None and within_atom_limits(child, min_atoms, max_atoms):
                return canonical(child)
    return None


def canonical(smiles: str | Chem.Mol) -> str:
    """Canonical SMILES of a SMILES or molecule, such that writing it again changes nothing.

    RDKit's writer may need a second pass after reading (aromaticity is perceived on the text).
    """
    mol = Chem.MolFromSmiles(smiles) if isinstance(smiles, str) else smiles
    return Chem.CanonSmiles(Chem.MolToSmiles(mol))


def seeded_random(seed: int, *key: int) -> Random:
    """A generator of the standard library, as the operators want it, from a seed and a key."""
    state = np.random.SeedSequence([seed, *key]).generate_state(2, np.uint64)
    return Random(int(state[0]) << 64 | int(state[1]))
