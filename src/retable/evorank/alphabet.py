"""The twenty amino acids, always in the order ACDEFGHIKLMNPQRSTVWY, and their codes 0..19."""

import numpy as np

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
GAP = -1
# Frequencies in protein databases, for pseudocounts; renormalised.
BACKGROUND = np.array(
    [
        *(0.0825, 0.0138, 0.0546, 0.0672, 0.0386, 0.0707, 0.0227, 0.0591, 0.0580, 0.0965),
        *(0.0241, 0.0406, 0.0473, 0.0393, 0.0553, 0.0663, 0.0535, 0.0686, 0.0110, 0.0292),
    ]
)
BACKGROUND = BACKGROUND / BACKGROUND.sum()
_STANDARD = (
    *("ALA", "CYS", "ASP", "GLU", "PHE", "GLY", "HIS", "ILE", "LYS", "LEU"),
    *("MET", "ASN", "PRO", "GLN", "ARG", "SER", "THR", "VAL", "TRP", "TYR"),
)
# Names of residues in structures: the standard ones, and other states and forms of them.
RESIDUES = {
    **dict(zip(_STANDARD, AMINO_ACIDS, strict=True)),
    **{"MSE": "M", "HID": "H", "HIE": "H", "HIP": "H", "CYX": "C", "ASH": "D", "GLH": "E"},
    "LYN": "K",
}
_TABLE = np.full(256, GAP, dtype=np.int8)
_TABLE[[ord(letter) for letter in AMINO_ACIDS]] = np.arange(20)


def encode(sequence: str) -> np.ndarray:
    """Codes (L,) int8 of upper-case letters; whatever is none of the twenty is a gap, -1."""
    return _TABLE[np.frombuffer(sequence.encode("ascii", "replace"), dtype=np.uint8)]


def decode(codes: np.ndarray, gap: str = "-") -> str:
    """Letters of codes; `gap` for -1."""
    return "".join((AMINO_ACIDS + gap)[code] for code in np.asarray(codes))
