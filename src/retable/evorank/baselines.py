"""Scores of mutations without training: a substitution matrix, and the protein's own alignment."""

from typing import Any

import numpy as np

from retable.evorank.alphabet import AMINO_ACIDS, GAP, encode


def blosum62() -> np.ndarray:
    """The BLOSUM62 matrix in our order: (20, 20)."""
    from Bio.Align import substitution_matrices

    matrix = substitution_matrices.load("BLOSUM62")
    return np.array([[matrix[a][b] for b in AMINO_ACIDS] for a in AMINO_ACIDS])


def blosum62_scores(sequence: str) -> np.ndarray:
    """BLOSUM62 of each residue's mutations: (L, 20); ValueError for a letter that is no residue."""
    codes = encode(sequence)
    if not len(codes) or (codes == GAP).any():
        place = int((codes == GAP).argmax()) if len(codes) else 0
        raise ValueError(f"sequence: position {place} is none of {AMINO_ACIDS}")
    return blosum62()[codes]


def msa_site_scores(p: Any, wildtype: Any) -> np.ndarray:
    """log p_b - log p_y for the wild type y: (L, 20) from p (L, 20) and wildtype (L,)."""
    p, wildtype = np.asarray(p, dtype=np.float64), np.asarray(wildtype)
    if p.ndim != 2 or p.shape[1] != 20 or wildtype.shape != (len(p),):
        raise ValueError(
            f"p, wildtype: shapes {p.shape} and {wildtype.shape}, must be (L, 20) and (L,)"
        )
    if not (p > 0).all():
        raise ValueError(f"p: smallest value {p.min()}, must be > 0")
    if not ((wildtype >= 0) & (wildtype <= 19)).all():
        raise ValueError(
            f"wildtype: from {wildtype.min()} to {wildtype.max()}, must be within 0..19"
        )
    logs = np.log(p)
    return logs - logs[np.arange(len(logs)), wildtype][:, None]
