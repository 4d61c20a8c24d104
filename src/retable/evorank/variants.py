"""Measured mutants placed on environments of atoms: how files hold them, how they are scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retable.common.data.arrays import load_arrays, save_arrays


@dataclass(frozen=True)
class Variants:
    """V mutants of some assays, S substitutions in all.

    Attributes:
        assays: names; sequences: of the proteins that were tested.
        mutants: V names; scores: (V,), higher = fitter; assay: (V,) the number of each one's assay.
        variant: (S,) number of the mutant; position: (S,) row among the environments; wild, letter:
            (S,) codes of the old and the new amino acid.
    """

    assays: tuple[str, ...]
    sequences: tuple[str, ...]
    mutants: tuple[str, ...]
    scores: np.ndarray
    assay: np.ndarray
    variant: np.ndarray
    position: np.ndarray
    wild: np.ndarray
    letter: np.ndarray

    def predicted(self, scores: np.ndarray) -> np.ndarray:
        """Scores of the mutants (V,) from those of substitutions at the positions (N, 20): sums."""
        single = np.asarray(scores, dtype=np.float64)[self.position, self.letter]
        return np.bincount(self.variant, weights=single, minlength=len(self.scores))

    def predicted_by_letters(self, matrix: np.ndarray) -> np.ndarray:
        """Scores of the mutants (V,) from a substitution matrix (20, 20): sums."""
        single = np.asarray(matrix, dtype=np.float64)[self.wild, self.letter]
        return np.bincount(self.variant, weights=single, minlength=len(self.scores))


def save_variants(path: Path, variants: Variants) -> None:
    """Write them as plain arrays."""
    texts = {
        name: np.frombuffer("\n".join(getattr(variants, name)).encode(), dtype=np.uint8)
        for name in ("assays", "sequences", "mutants")
    }
    numbers = {
        name: getattr(variants, name)
        for name in ("scores", "assay", "variant", "position", "wild", "letter")
    }
    save_arrays(path, texts | numbers)


def load_variants(path: Path) -> Variants:
    """Read what `save_variants` wrote."""
    arrays = load_arrays(path)
    texts: dict[str, Sequence[str]] = {
        name: tuple(arrays.pop(name).tobytes().decode().split("\n"))
        for name in ("assays", "sequences", "mutants")
    }
    return Variants(**texts, **arrays)
