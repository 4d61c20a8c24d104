"""Spectral embeddings, and power iteration on the centred co-occurrence matrix."""

from typing import Literal

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.graphs import check_adjacency
from retable.deepwalk.theory import centred_matvec, centred_rmatvec

Kind = Literal["adjacency", "normalized", "regularized"]


def spectral_embedding(adjacency, kind: Kind = "adjacency", dim: int = 1) -> np.ndarray:
    """Eigenvectors 2..dim+1, by descending eigenvalue, of a matrix of the graph; (n, dim).

    kind: "adjacency" A; "normalized" D^-1/2 A D^-1/2, whose order is that of the normalised
    Laplacian; "regularized" the same for A + tau/n and D + tau, tau the mean degree (Amini et al.
    2013), which keeps small components and leaves from leading. Raises ValueError for another kind
    or dim outside 1..n-2.
    """
    matrix = check_adjacency(adjacency)
    n = matrix.shape[0]
    if not 1 <= dim <= n - 2:
        raise ValueError(f"dim must lie in 1..n - 2 = 1..{n - 2}, got {dim}")
    degree = matrix.sum(axis=1)
    if kind == "adjacency":
        operator = matrix
    elif kind == "normalized":
        scale = np.divide(1, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
        operator = sparse.diags_array(scale) @ matrix @ sparse.diags_array(scale)
    elif kind == "regularized":
        tau = degree.mean()
        scale = 1 / np.sqrt(degree + tau)

        def regularized(v: np.ndarray) -> np.ndarray:
            scaled = scale * v.reshape(-1)
            return scale * (matrix @ scaled + tau * scaled.mean())

        operator = LinearOperator((n, n), matvec=regularized, dtype=np.float64)
    else:
        raise ValueError(f"kind must be 'adjacency', 'normalized' or 'regularized', got {kind!r}")
    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(operator, k=dim + 1, which="LA", v0=start, tol=1e-8)
    return vectors[:, np.argsort(-values, kind="stable")[1:]]


def linear_embedding(
    cooc: Cooccurrence, dim: int = 1, *, max_iter: int = 1000, tol: float = 1e-8, seed: int
) -> np.ndarray:
    """Leading left singular vectors of M = C - c 1^T/n by power iteration; (n, dim), orthonormal.

    What DeepWalk does while its vectors are short. Stops when no entry of the subspace's overlap
    with the last one differs from 1 by more than tol, or after max_iter iterations.
    """
    if not 1 <= dim <= cooc.n:
        raise ValueError(f"dim must lie in 1..n = 1..{cooc.n}, got {dim}")
    x = np.linalg.qr(np.random.default_rng(seed).standard_normal((cooc.n, dim)))[0]
    for _ in range(max_iter):
        y = np.linalg.qr(centred_rmatvec(cooc, x))[0]
        last, x = x, np.linalg.qr(centred_matvec(cooc, y))[0]
        if np.linalg.svd(last.T @ x, compute_uv=False).min() > 1 - tol:
            break
    return x
