"""Real structures for the tests, from the shared data set, and helpers that write such files."""

from functools import cache

from retable.common.data.bundles import unpack_files
from retable.common.data.proteins import PROTEIN_ASSAYS
from retable.evorank.atoms import parse_atoms


@cache
def bundle():
    return unpack_files(PROTEIN_ASSAYS.get())


@cache
def structure(name, chain=None):
    return parse_atoms(bundle()[f"{name}.pdb"], ".pdb", name, chain)


def lines_of(name, drop=lambda line: False, change=lambda line: line):
    """The atom lines of a file, some left out and others changed, as bytes."""
    text = bundle()[f"{name}.pdb"].decode()
    kept = [
        change(line)
        for line in text.splitlines()
        if line.startswith(("ATOM", "HETATM", "TER")) and not drop(line)
    ]
    return "\n".join([*kept, "END", ""]).encode()
