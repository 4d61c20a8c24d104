"""The normalised co-occurrence matrix C, never formed where the graph is large."""

from typing import Self

import numpy as np
from scipy import sparse

from retable.deepwalk.graphs import check_adjacency, short_indices

# A matrix with at least this share of its entries filled is multiplied faster as a dense one.
_FILLED = 0.5


class Cooccurrence:
    """How often two nodes meet within `window` steps of a long random walk, in all n on average.

    The limit of long walks is C = sum_{r=1..w} D P^r with P = D^-1 A, scaled so that all entries
    sum to n. Since D P^r = A (D^-1 A)^(r-1), C is symmetric and C v costs w sparse products.

    adjacency: see `check_adjacency`; window: w >= 1. Attributes: n; row_mass (n,) = C 1;
    isolated (n,) bool, rows without mass; raw_mass, the sum of all entries before scaling.
    """

    def __init__(self, adjacency, window: int):
        if not window >= 1:
            raise ValueError(f"window must be at least 1, got {window}")
        matrix = check_adjacency(adjacency)
        degree = matrix.sum(axis=1)
        self._matrix = matrix
        self._window = window
        self._inverse_degree = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
        # Every D P^r has the row sums of A, so all w terms have the same.
        self._set_mass(window * degree)

    @classmethod
    def from_matrix(cls, matrix) -> Self:
        """Wrap a matrix of counts (sparse or dense, symmetric, not negative), scaled to mass n."""
        counts = sparse.csr_array(matrix, dtype=np.float64)
        if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
            raise ValueError(f"matrix must be square, got shape {counts.shape}")
        if counts.shape[0] < 2:
            raise ValueError(f"matrix must have at least 2 rows, got {counts.shape[0]}")
        if not np.isfinite(counts.data).all():
            raise ValueError("matrix must be finite, got NaN or infinite counts")
        if counts.data.size == 0 or counts.data.max() == 0:
            raise ValueError("matrix must have a positive count, got none")
        if counts.data.min() < 0:
            raise ValueError(f"matrix must not be negative, got a count of {counts.data.min():g}")
        if abs(counts - counts.T).max() > 1e-9 * counts.data.max():
            raise ValueError("matrix must be symmetric, got one that differs from its transpose")
        self = cls.__new__(cls)
        filled = counts.nnz >= _FILLED * counts.shape[0] ** 2
        self._matrix = counts.toarray() if filled else short_indices(counts)
        self._window = 1
        self._inverse_degree = None
        self._set_mass(counts.sum(axis=1))
        return self

    def _set_mass(self, row_sums: np.ndarray) -> None:
        self.n = row_sums.size
        self.raw_mass = float(row_sums.sum())
        self._scale = self.n / self.raw_mass
        self.row_mass = row_sums * self._scale
        self.isolated = row_sums == 0

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """C v; v (n,) or (n, k). `window` sparse products, or one if C was given as a matrix."""
        if v.shape[0] != self.n:
            raise ValueError(f"v must be ({self.n},) or ({self.n}, k), got {v.shape}")
        total = product = self._matrix @ v
        for _ in range(self._window - 1):
            scaled = (self._inverse_degree * product.T).T
            product = self._matrix @ scaled
            total = total + product
        return self._scale * total

    def toarray(self) -> np.ndarray:
        """C as a dense (n, n) array, for small graphs."""
        return self.matvec(np.eye(self.n))
