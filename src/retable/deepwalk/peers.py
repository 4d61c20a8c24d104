"""DeepWalk as others compute it: negative sampling on the same counts, and gensim on the walks."""

from typing import Literal, Self

import numpy as np
from scipy.special import expit, log_expit

from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.descent import check_descent, descend
from retable.deepwalk.walks import check_walks

Output = Literal["hierarchical", "negative"]


class NegativeSampling:
    """Skip-gram with negative sampling (SGNS) in expectation, by the descent of `DeepWalk`.

    L = - sum_ij [C_ij log sigma(x_i . y_j) + (b/n) c_i c_j log sigma(-x_i . y_j)] with C of mass n
    and b negative samples per pair. O(n^2) time and memory: for small graphs. Parameters and
    results as for `DeepWalk`. In one dimension the vectors first learn the constant log(1/b) that
    the softmax is blind to; two dimensions leave one for the communities.
    """

    def __init__(
        self,
        dim: int = 2,
        negatives: int = 5,
        init_scale: float = 1e-3,
        step: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-6,
        *,
        seed: int,
    ):
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        if negatives < 1:
            raise ValueError(f"negatives must be at least 1, got {negatives}")
        check_descent(init_scale=init_scale, step=step, max_iter=max_iter, tol=tol)
        self.dim = dim
        self.negatives = negatives
        self.init_scale = init_scale
        self.step = step
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed

    def fit(self, cooc: Cooccurrence) -> Self:
        """Embed the nodes of `cooc`."""
        if self.dim > cooc.n:
            raise ValueError(f"dim must be at most n = {cooc.n}, got {self.dim}")
        counts = cooc.toarray()
        noise = self.negatives / cooc.n * np.outer(cooc.row_mass, cooc.row_mass)
        rng = np.random.default_rng(self.seed)
        x, y = self.init_scale * rng.standard_normal((2, cooc.n, self.dim))
        result = descend(
            lambda x, y: negative_sampling_loss_and_grad(x, y, counts, noise),
            x,
            y,
            step=self.step,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self.embedding_, self.context_ = result.x, result.y
        self.history_ = result.history
        self.converged_, self.n_iter_ = result.converged, result.n_iter
        self.isolated_ = cooc.isolated
        return self


def negative_sampling_loss_and_grad(
    x: np.ndarray, y: np.ndarray, counts: np.ndarray, noise: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """The SGNS loss and its gradients; x, y (n, k), counts and noise (n, n).

    dL/d(x_i . y_j) = noise_ij sigma_ij - counts_ij (1 - sigma_ij).
    """
    product = x @ y.T
    # log sigma(-p) = log sigma(p) - p: one logarithm serves both sums.
    positive = log_expit(product)
    loss = -float(np.vdot(counts, positive) + np.vdot(noise, positive - product))
    slope = (noise + counts) * expit(product) - counts
    return loss, slope @ y, slope.T @ x


def word2vec(
    walks: np.ndarray,
    n: int,
    dim: int,
    *,
    window: int = 5,
    output: Output = "hierarchical",
    epochs: int = 5,
    seed: int,
) -> np.ndarray:
    """gensim's skip-gram word2vec with the walks as sentences; (n, dim) float64.

    The usual DeepWalk. output: "hierarchical" softmax (as in the original DeepWalk) or "negative"
    sampling with 5 samples. Nodes that no walk visits get the zero vector. One worker, so that a
    seed fixes the result. Raises ValueError for walks without a step or with nodes outside 0..n-1,
    another output, and dim, window or epochs below 1.
    """
    if output not in ("hierarchical", "negative"):
        raise ValueError(f"output must be 'hierarchical' or 'negative', got {output!r}")
    # gensim would wait for ever for a worker that a window of 0 has killed.
    for name, value in (("dim", dim), ("window", window), ("epochs", epochs)):
        if not value >= 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    check_walks(walks, n)
    from gensim.models import Word2Vec

    model = Word2Vec(
        sentences=[[str(node) for node in walk] for walk in walks.tolist()],
        vector_size=dim,
        window=window,
        min_count=0,
        sample=0,
        sg=1,
        hs=int(output == "hierarchical"),
        negative=0 if output == "hierarchical" else 5,
        epochs=epochs,
        workers=1,
        seed=seed,
    )
    vectors = np.zeros((n, dim))
    vectors[np.array(model.wv.index_to_key, dtype=np.int64)] = model.wv.vectors
    return vectors
