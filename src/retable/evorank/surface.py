"""Solvent-accessible surface by Shrake and Rupley, and what of it appears without one residue.

The atoms around a residue are buried by it: their surface in the whole structure tells its size.
What the network may see is the surface of the structure without the masked residue. One pass gives
it for every residue: a point that atoms of one residue alone cover is free without that one.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PROBE = 1.4  # Angstrom, of water
_PAIRS = 50_000  # looked at at once


def sphere_points(count: int) -> np.ndarray:
    """Points spread evenly over the unit sphere along a golden spiral: (count, 3)."""
    z = 1 - (2 * np.arange(count) + 1) / count
    angle = np.arange(count) * np.pi * (3 - np.sqrt(5))
    radius = np.sqrt(1 - z**2)
    return np.stack([np.cos(angle) * radius, np.sin(angle) * radius, z], axis=1)


def point_areas(radii: np.ndarray, points: int) -> np.ndarray:
    """Surface that one point stands for, in square Angstrom: (M,) of van der Waals radii (M,)."""
    return 4 * np.pi * (np.asarray(radii) + PROBE) ** 2 / points


def exposed_points(
    xyz: np.ndarray, radii: np.ndarray, groups: np.ndarray, points: int = 100
) -> tuple[np.ndarray, "csr_array"]:
    """Points of each atom's sphere that no atom covers, and those that only one group covers.

    Args:
        xyz: (M, 3) in Angstrom; radii: (M,) van der Waals; groups: (M,) residue of each atom, >= 0.
        points: on each sphere.

    Returns:
        exposed (M,) int64, and freed (M, groups) sparse: the points that become free when the atoms
        of a group are taken away.
    """
    from scipy.sparse import csr_array
    from scipy.spatial import cKDTree

    xyz, groups = np.asarray(xyz, dtype=np.float64), np.asarray(groups, dtype=np.int64)
    reach = np.asarray(radii, dtype=np.float64) + PROBE
    count, kinds = len(xyz), int(groups.max()) + 1
    pairs = cKDTree(xyz).query_pairs(2 * reach.max(), output_type="ndarray")
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    away = xyz[pairs[:, 1]] - xyz[pairs[:, 0]]
    squares = (away**2).sum(1)
    touching = squares < (reach[pairs[:, 0]] + reach[pairs[:, 1]]) ** 2
    order = np.flatnonzero(touching)
    order = order[np.argsort(pairs[order, 0], kind="stable")]
    first, second = pairs[order].T
    away, squares = away[order], squares[order]
    sphere = sphere_points(points).T
    # A point s of atom i lies in j where s . (x_j - x_i) >= (d^2 + r_i^2 - r_j^2) / (2 r_i).
    least = (squares + reach[first] ** 2 - reach[second] ** 2) / (2 * reach[first])

    exposed = np.full(count, points, dtype=np.int64)
    rows, columns, values = [], [], []
    owners, starts = np.unique(first, return_index=True)
    ends = np.append(starts[1:], len(first))
    block = 0
    while block < len(owners):
        # Whole atoms, so many that their pairs fill a block.
        stop = max(block + 1, int(np.searchsorted(ends, starts[block] + _PAIRS, side="right")))
        part = slice(starts[block], ends[stop - 1])
        covered = away[part] @ sphere >= least[part, None]
        of = groups[second[part], None]
        begins = starts[block:stop] - starts[block]
        largest = np.maximum.reduceat(np.where(covered, of, -1), begins, axis=0)
        smallest = np.minimum.reduceat(np.where(covered, of, kinds), begins, axis=0)
        atoms = owners[block:stop]
        exposed[atoms] = (largest < 0).sum(1)
        place, _ = np.nonzero(smallest == largest)
        found, number = np.unique(
            atoms[place] * kinds + largest[smallest == largest], return_counts=True
        )
        rows.append(found // kinds)
        columns.append(found % kinds)
        values.append(number)
        block = stop
    freed = csr_array((count, kinds), dtype=np.int64)
    if rows:
        cells = (np.concatenate(rows), np.concatenate(columns))
        freed = csr_array((np.concatenate(values), cells), shape=(count, kinds))
    return exposed, freed
