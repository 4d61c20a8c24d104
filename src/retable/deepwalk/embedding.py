"""DeepWalk as an exact optimisation problem: objective, gradient descent, linearised dynamics."""

from collections.abc import Callable
from typing import Literal, Self

import numpy as np

from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.descent import ConvergenceError, check_descent, descend
from retable.deepwalk.metrics import alignment
from retable.deepwalk.softmax import chebyshev_sums, exact_sums
from retable.deepwalk.theory import centred_matvec, centred_rmatvec

Softmax = Literal["auto", "exact", "chebyshev"]

# Up to this length of x the softmax is linear to within a few per cent.
LINEAR_RMS = 0.1
# Up to this many nodes, all n^2 exponentials cost less than an interpolation.
_SMALL = 128


def loss_and_grad(
    x: np.ndarray, y: np.ndarray, cooc: Cooccurrence, softmax: Softmax = "exact"
) -> tuple[float, np.ndarray, np.ndarray]:
    """The skip-gram loss with full softmax and its gradients.

    L(X, Y) = - sum_ij C_ij log Q_ij,  Q_ij = exp(x_i . y_j) / sum_l exp(x_i . y_l),
    dL/dX = (diag(c) Q - C) Y,  dL/dY = (diag(c) Q - C)^T X.

    x, y: (n, k). softmax: "exact" sums over all pairs in blocks, O(n^2 k); "chebyshev" (k = 1
    only) interpolates, O(n), and raises ConvergenceError where |x||y| is too large to resolve;
    "auto" interpolates for k = 1 and more than 128 nodes where that resolves the sums, and is
    exact otherwise.
    """
    if x.shape != y.shape or x.ndim != 2 or x.shape[0] != cooc.n:
        raise ValueError(f"x and y must be ({cooc.n}, k) alike, got {x.shape} and {y.shape}")
    _check_softmax(softmax, x.shape[1])
    k = x.shape[1]
    sums = None
    if softmax == "chebyshev" or (softmax == "auto" and k == 1 and cooc.n > _SMALL):
        sums = chebyshev_sums(x, y, cooc.row_mass)
        if sums is None and softmax == "chebyshev":
            raise ConvergenceError(
                "the embedding is too long for interpolated softmax sums: max |x| = "
                f"{np.abs(x).max():.3g}, max |y| = {np.abs(y).max():.3g}"
            )
    if sums is None:
        sums = exact_sums(x, y, cooc.row_mass)
    # C is symmetric. One vector at a time: scipy's product with a block of two takes longer.
    pulled_x, pulled_y = cooc.matvec(x), cooc.matvec(y)
    loss = float(cooc.row_mass @ sums.log_z - np.sum(x * pulled_y))
    grad_x = cooc.row_mass[:, None] * sums.expected_context - pulled_y
    return loss, grad_x, sums.expected_source - pulled_x


def linear_dynamics(
    cooc: Cooccurrence, x0: np.ndarray, y0: np.ndarray, step: float, n_iter: int
) -> tuple[np.ndarray, np.ndarray]:
    """n_iter steps x += step M y, y += step M^T x of the dynamics linearised at 0.

    M = C - c 1^T/n; x0, y0: (n,) or (n, k); returns x and y of the same shape.
    """
    x, y = np.array(x0, dtype=np.float64), np.array(y0, dtype=np.float64)
    for _ in range(n_iter):
        x, y = x + step * centred_matvec(cooc, y), y + step * centred_rmatvec(cooc, x)
    return x, y


class DeepWalk:
    """DeepWalk by gradient descent from a small random start, on the whole objective.

    dim: k, the length of the vectors; init, init_scale: start N(0, init_scale^2) ("normal") or
    uniform in [-init_scale, init_scale] ("uniform"); step: eta, for C of mass n; max_iter, tol:
    stop when the root mean square of both gradients is below tol (see `descend`); softmax: see
    `loss_and_grad`; phase1_only: stop at the end of the linear phase, rms(x) >= 0.1; seed: of the
    start.

    After `fit`: embedding_ X and context_ Y (n, k); history_, one entry per point visited (loss,
    grad_rms, grad_rms_x, grad_rms_y, x_rms, y_rms, step; alignment if communities were given);
    converged_; n_iter_; isolated_ (n,) bool, nodes without mass, whose vector is their start.

    Raises ValueError for settings out of range. A start of length 0 is refused: there both
    gradients vanish, so descent would stay.
    """

    def __init__(
        self,
        dim: int = 1,
        init_scale: float = 1e-3,
        step: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-6,
        softmax: Softmax = "auto",
        *,
        seed: int,
        init: Literal["normal", "uniform"] = "normal",
        phase1_only: bool = False,
    ):
        if not dim >= 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        check_descent(init_scale=init_scale, step=step, max_iter=max_iter, tol=tol)
        if init not in ("normal", "uniform"):
            raise ValueError(f"init must be 'normal' or 'uniform', got {init!r}")
        _check_softmax(softmax, dim)
        self.dim = dim
        self.init_scale = init_scale
        self.step = step
        self.max_iter = max_iter
        self.tol = tol
        self.softmax = softmax
        self.seed = seed
        self.init = init
        self.phase1_only = phase1_only

    def start(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The random start X, Y; (n, dim) each."""
        rng = np.random.default_rng(self.seed)
        draw = (
            rng.standard_normal if self.init == "normal" else lambda size: rng.uniform(-1, 1, size)
        )
        x, y = self.init_scale * draw((2, n, self.dim))
        return x, y

    def fit(
        self,
        cooc: Cooccurrence,
        labels: np.ndarray | None = None,
        watch: Callable[[int, np.ndarray, np.ndarray], None] | None = None,
    ) -> Self:
        """Embed the nodes of `cooc`.

        labels: two known communities (-1: unknown), only to record `alignment`; needs dim = 1.
        watch(t, x, y) sees every point. Raises ConvergenceError if a value is not finite.
        """
        if self.dim > cooc.n:
            raise ValueError(f"dim must be at most n = {cooc.n}, got {self.dim}")
        if labels is not None and self.dim != 1:
            raise ValueError(f"labels need dim = 1 to record the alignment, got {self.dim}")

        def observe(t: int, x: np.ndarray, y: np.ndarray) -> dict[str, float]:
            if watch is not None:
                watch(t, x, y)
            return {} if labels is None else {"alignment": alignment(x, labels)}

        x, y = self.start(cooc.n)
        result = descend(
            lambda x, y: loss_and_grad(x, y, cooc, self.softmax),
            x,
            y,
            step=self.step,
            max_iter=self.max_iter,
            tol=self.tol,
            stop_at_rms=LINEAR_RMS if self.phase1_only else None,
            watch=observe,
        )
        self.embedding_, self.context_ = result.x, result.y
        self.history_ = result.history
        self.converged_, self.n_iter_ = result.converged, result.n_iter
        self.isolated_ = cooc.isolated
        return self

    def labels(self, k: int = 2) -> np.ndarray:
        """Communities 0..k-1 of the nodes, -1 for isolated ones; (n,) int64.

        The sign of x for two communities in one dimension, otherwise k-means on X (10 starts).
        """
        return np.where(self.isolated_, -1, cluster(self.embedding_, k, seed=self.seed))


def cluster(embedding: np.ndarray, k: int, *, seed: int, by_sign: bool | None = None) -> np.ndarray:
    """Labels 0..k-1 of embedded nodes; (n,) int64.

    By the sign if there is one dimension and k = 2 (or as `by_sign` says), else by k-means with
    10 starts.
    """
    if not 1 <= k <= embedding.shape[0]:
        raise ValueError(f"k must lie in 1..n = 1..{embedding.shape[0]}, got {k}")
    if by_sign is None:
        by_sign = k == 2 and embedding.shape[1] == 1
    if by_sign:
        return (embedding[:, 0] > 0).astype(np.int64)
    from sklearn.cluster import KMeans

    means = KMeans(n_clusters=k, n_init=10, random_state=seed).fit(embedding)
    return means.labels_.astype(np.int64)


def _check_softmax(softmax: str, dim: int) -> None:
    if softmax not in ("auto", "exact", "chebyshev"):
        raise ValueError(f"softmax must be 'auto', 'exact' or 'chebyshev', got {softmax!r}")
    if softmax == "chebyshev" and dim != 1:
        raise ValueError(f"softmax 'chebyshev' needs dim = 1, got {dim}")
