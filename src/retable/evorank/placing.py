"""Placing the positions of one sequence on another: an assay or an alignment on a structure."""

from collections.abc import Mapping

from retable.evorank.dms import local_alignment

MOST_DISAGREEMENT = 0.30


def place_sequence(sequence: str, other: str) -> tuple[dict[int, int], float]:
    """Positions (from 0) of a sequence on another, where the letters of a local alignment agree.

    Returns:
        position -> position, empty where more than 30 % of the aligned ones disagree; and the share
        that disagrees.
    """
    pairs = [(i, j) for i, j in local_alignment(sequence, other) if sequence[i] != "X"]
    if not pairs:
        return {}, 1.0
    agreeing = {i: j for i, j in pairs if sequence[i] == other[j]}
    share = 1 - len(agreeing) / len(pairs)
    return (agreeing if share <= MOST_DISAGREEMENT else {}), share


def alike(sequence: str, others: Mapping[str, str], identity: float, aligned: int) -> str:
    """The first of some named sequences of which a share `identity` is equal, over many residues.

    Identity is counted over a BLOSUM62 local alignment of at least `aligned` residues. Empty where
    there is none.
    """
    for name, other in others.items():
        pairs = list(local_alignment(sequence, other))
        equal = sum(sequence[i] == other[j] for i, j in pairs)
        if len(pairs) >= aligned and equal >= identity * len(pairs):
            return name
    return ""
