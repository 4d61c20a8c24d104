"""Federated data in which a client's feature is the negative noise of other clients.

Constructed for this library from the paper's abstract and from how the authors' code builds feature
noise on images (each client's images minus a multiple of another client's image); constants and
the layout of the patches in the paper may differ.
"""

import numpy as np


class FeatureNoiseModel:
    """K = n_major + n_minor clients with one feature each; minor features are noise to majors.

    The features v_1..v_K are the first K coordinate axes of R^dim. A sample of client i has a label
    y uniform on ±1 and the patches x_1..x_P, P = n_minor + 2:

    - the signal patch α y v_i;
    - one patch for each minor client b: -γ y v_b if i is major, zero if i is minor;
    - the noise patch ξ ~ N(0, σ²I), its first K coordinates set to 0, with σ = ν/√dim and
      ν = (κn)^{1/3} α: a client's n samples are memorised κ times as fast as a signal of
      strength α is learnt, because the cubic network gains ν³/n per sample.

    Clients 0..n_major-1 are major, the others minor. Client i's test data follow the same law.

    Parameters: `alpha` > `gamma` > 0 are signal strengths, `kappa` > 0 has no unit, `n` is the
    number of training samples of a client, `dim` ≥ K + nK leaves room for near-orthogonal noise.
    Raises ValueError for values outside these ranges.
    """

    def __init__(
        self,
        n_major: int,
        n_minor: int,
        alpha: float,
        gamma: float,
        kappa: float,
        n: int,
        dim: int,
    ) -> None:
        for name, value in (("alpha", alpha), ("gamma", gamma), ("kappa", kappa)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}; it must be positive")
        if gamma >= alpha:
            raise ValueError(f"gamma is {gamma}; it must be below alpha = {alpha}")
        for name, value in (("n_major", n_major), ("n_minor", n_minor), ("n", n)):
            if not value >= 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")
        n_clients = n_major + n_minor
        least = n_clients + n * n_clients
        if not dim >= least:
            raise ValueError(f"dim is {dim}; it must be at least K + n K = {least}")
        self.n_major = n_major
        self.n_minor = n_minor
        self.n_clients = n_clients
        self.n_patches = n_minor + 2
        self.alpha = alpha
        self.gamma = gamma
        self.kappa = kappa
        self.n = n
        self.dim = dim

    @property
    def features(self) -> np.ndarray:
        """The orthonormal features v_1..v_K, float32 (K, dim)."""
        return np.eye(self.n_clients, self.dim, dtype=np.float32)

    @property
    def noise_norm(self) -> float:
        """ν = (κn)^{1/3} α, the typical norm of a noise patch."""
        return float(np.cbrt(self.kappa * self.n) * self.alpha)

    def in_degree(self, k: int) -> int:
        """How many clients carry feature `k` as negative noise: n_major if minor, else 0."""
        self._check_client(k)
        return self.n_major if k >= self.n_major else 0

    def sample(
        self, client: int, n: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """`n` samples of one client: patches float32 (n, P, dim) and labels float32 (n,) of ±1."""
        self._check_client(client)
        x, y = self._draw(np.array([client]), n, rng)
        return x[0], y[0]

    def clients(
        self, rng: np.random.Generator, n: int | None = None
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """One data set (x, y) for each client in turn, of `n` samples (the model's n if None)."""
        x, y = self._draw(np.arange(self.n_clients), self.n if n is None else n, rng)
        return list(zip(x, y, strict=True))

    def _draw(
        self, clients: np.ndarray, n: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        if n < 1:
            raise ValueError(f"n is {n}; it must be at least 1")
        y = rng.integers(0, 2, size=(len(clients), n)).astype(np.float32) * 2 - 1
        x = np.zeros((len(clients), n, self.n_patches, self.dim), dtype=np.float32)
        rows = np.arange(len(clients))
        # Integer arrays on both sides of the slice would move the sample axis; spell it out.
        x[rows[:, None], np.arange(n), 0, clients[:, None]] = self.alpha * y
        minor = np.arange(self.n_minor)
        major = rows[clients < self.n_major]
        x[
            major[:, None, None],
            np.arange(n)[:, None],
            1 + minor,
            self.n_major + minor,
        ] = -self.gamma * y[major][:, :, None]
        sigma = self.noise_norm / np.sqrt(self.dim)
        noise = rng.standard_normal((len(clients), n, self.dim - self.n_clients), dtype=np.float32)
        x[:, :, -1, self.n_clients :] = np.float32(sigma) * noise
        return x, y

    def _check_client(self, client: int) -> None:
        if not 0 <= client < self.n_clients:
            raise ValueError(f"client is {client}; it must be in 0..{self.n_clients - 1}")


def cubic_alignment(x: np.ndarray, y: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Mean over samples of Σ_p (y⟨x_p, v_k⟩)³ for each feature k, float64 (K,).

    `x` (n, P, dim), `y` (n,) of ±1, `features` (K, dim). Half of three times this number is the
    early growth rate of a filter's projection on v_k (divided by its square) under the client's
    own loss: positive if the client teaches the feature, negative if it is feature noise to it.
    """
    projections = np.einsum("npd,kd->npk", x, features, dtype=np.float64)
    return ((y[:, None, None] * projections) ** 3).sum(1).mean(0)
