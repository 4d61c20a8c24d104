"""Worlds that react to the deployed model, and what a learner may see of them.

A learner sees an `Environment`: samples of the models it deploys, the loss, and the parametric
family p_φ (how to estimate φ from samples, and the Kullback-Leibler divergence). The map φ(θ), its
inverse, the risks and their optimum are `Known` to the evaluation only; `Blind` takes them away.
"""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import lambertw, rel_entr

from retable.performative import checks
from retable.performative.sets import Box, CappedSimplex

Array = NDArray[np.float64]


class Environment(Protocol):
    """What a learner sees of the world."""

    d_theta: int
    d_phi: int
    theta_set: Any
    phi_set: Any

    def sample(self, theta: Array, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """n samples (n, ...) of D(θ), the distribution that the model theta (d_Θ,) induces."""
        ...

    def loss(self, z: NDArray[Any], theta: Array) -> Array:
        """ℓ(z; θ) of each sample (n,)."""
        ...

    def estimate(self, z: NDArray[Any]) -> Array:
        """An estimate (d_Φ,) of the family's parameter from samples, inside its boundary."""
        ...

    def kl(self, phi: Array, q: Array) -> float:
        """KL(p_φ || p_q), in nats."""
        ...


class Known(Protocol):
    """What only the evaluation knows. Arrays may carry leading axes (..., d)."""

    optimal_theta: Array
    optimal_phi: Array
    optimal_risk: float

    def distribution_map(self, theta: Array) -> Array:
        """φ(θ), the parameter (..., d_Φ) of the distribution that θ induces."""
        ...

    def inverse_map(self, phi: Array) -> Array:
        """The model θ (..., d_Θ) that induces φ."""
        ...

    def risk(self, theta: Array) -> Array:
        """PR(θ) = E[ℓ(z; θ)], z ~ D(θ), the performative risk (...)."""
        ...

    def risk_phi(self, phi: Array) -> Array:
        """PR†(φ) = PR(θ) for a θ with φ(θ) = φ, the reparametrised risk (...)."""
        ...

    def risk_phi_gradient(self, phi: Array) -> Array:
        """The gradient of PR† (..., d_Φ)."""
        ...

    def risk_hessian(self, theta: Array) -> Array:
        """The Hessian of PR (..., d_Θ, d_Θ)."""
        ...

    def risk_phi_hessian(self, phi: Array) -> Array:
        """The Hessian of PR† (..., d_Φ, d_Φ)."""
        ...


class Differentiable(Protocol):
    """What repeated gradient descent needs besides an `Environment`."""

    def loss_gradient(self, z: NDArray[Any], theta: Array) -> Array:
        """∇_θ ℓ(z; θ) at fixed samples (n, d_Θ): the reaction of the data is left out."""
        ...


class BernoulliSquare:
    """Independent bits whose means are the squares of the model; for d = 1 the paper's toy.

    z in {0, 1}^d, φ_i(θ) = θ_i², ℓ(z; θ) = -(1/d) Σ (z_i - θ_i)² (the sign is the paper's: squared
    error is maximised), Θ = [.05, .95]^d, Φ = [.0025, .9025]^d. PR(θ) = (1/d) Σ (2θ_i³ - 2θ_i²)
    is not convex where a θ_i < 1/3; PR†(φ) = (1/d) Σ (2φ_i^(3/2) - 2φ_i) is convex. KL to φ(θ) is
    convex in θ. ValueError for d < 1.
    """

    def __init__(self, d: int) -> None:
        checks.at_least_one(d=d)
        self.d_theta = self.d_phi = int(d)
        self.theta_set = Box(0.05, 0.95, self.d_theta)
        self.phi_set = Box(0.05**2, 0.95**2, self.d_phi)
        self.optimal_theta = np.full(d, 2 / 3)
        self.optimal_phi = np.full(d, 4 / 9)
        self.optimal_risk = -8 / 27

    def sample(self, theta: Array, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """n samples (n, d), each bit drawn for itself. ValueError unless all |θ_i| <= 1."""
        phi = self.distribution_map(checks.vector("theta", theta, self.d_theta))
        if not phi.max() <= 1:
            raise ValueError(f"theta must lie in [-1, 1]^{self.d_theta}, found {theta!r}")
        return rng.random((n, self.d_phi)) < phi

    def loss(self, z: NDArray[np.bool_], theta: Array) -> Array:
        """-(1/d) Σ (z_i - θ_i)² of each sample (n,), in [-1, 0]."""
        error = self._bits(z) - checks.vector("theta", theta, self.d_theta)
        return np.einsum("ni,ni->n", error, error) / -self.d_theta

    def loss_gradient(self, z: NDArray[np.bool_], theta: Array) -> Array:
        """(2/d) (z - θ) of each sample (n, d)."""
        error = self._bits(z) - checks.vector("theta", theta, self.d_theta)
        return error * (2 / self.d_theta)

    def estimate(self, z: NDArray[np.bool_]) -> Array:
        """(k_i + ½) / (n + 1), k_i the ones in coordinate i: never 0 or 1."""
        return (self._bits(z).sum(axis=0) + 0.5) / (len(z) + 1)

    def kl(self, phi: Array, q: Array) -> float:
        """Σ φ_i log(φ_i/q_i) + (1 - φ_i) log((1 - φ_i)/(1 - q_i)).

        ValueError when φ is no probability or q lies on or beyond the boundary, where the
        divergence is infinite.
        """
        phi, q = checks.vector("phi", phi, self.d_phi), checks.vector("q", q, self.d_phi)
        return _divergence(np.concatenate((phi, 1 - phi)), np.concatenate((q, 1 - q)))

    def distribution_map(self, theta: Array) -> Array:
        """φ_i = θ_i²."""
        return checks.points("theta", theta, self.d_theta) ** 2

    def inverse_map(self, phi: Array) -> Array:
        """θ_i = √φ_i. Here and below ValueError unless all φ_i lie in (0, 1]."""
        return np.sqrt(self._means(phi))

    def risk(self, theta: Array) -> Array:
        """(1/d) Σ (2θ_i³ - 2θ_i²)."""
        theta = checks.points("theta", theta, self.d_theta)
        # θ²(θ - 1) with one temporary: a long log has millions of models.
        return np.einsum("...i,...i,...i->...", theta, theta, theta - 1) * (2 / self.d_theta)

    def risk_phi(self, phi: Array) -> Array:
        """(1/d) Σ (2φ_i^(3/2) - 2φ_i)."""
        phi = self._means(phi)
        return np.mean(2 * phi**1.5 - 2 * phi, axis=-1)

    def risk_phi_gradient(self, phi: Array) -> Array:
        """(1/d) (3√φ_i - 2)."""
        return (3 * np.sqrt(self._means(phi)) - 2) / self.d_phi

    def risk_hessian(self, theta: Array) -> Array:
        """diag((12θ_i - 4)/d)."""
        return _diagonal((12 * checks.points("theta", theta, self.d_theta) - 4) / self.d_theta)

    def risk_phi_hessian(self, phi: Array) -> Array:
        """diag(1.5 φ_i^(-1/2)/d), positive definite."""
        return _diagonal(1.5 / (self.d_phi * np.sqrt(self._means(phi))))

    def _bits(self, z: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if z.ndim != 2 or z.shape[1] != self.d_phi or len(z) == 0:
            raise ValueError(f"z must have shape (n, {self.d_phi}), n >= 1, found {z.shape}")
        return z

    def _means(self, phi: ArrayLike) -> Array:
        phi = checks.points("phi", phi, self.d_phi)
        if not np.all((phi > 0) & (phi <= 1)):
            raise ValueError(f"phi must lie in (0, 1]^{self.d_phi}, found {phi.tolist()}")
        return phi


class LogitPricing:
    """Prices of d products to which customers react by a multinomial logit choice.

    A customer buys product i with probability φ_i(θ) = e^{a_i - bθ_i}/(1 + Σ_j e^{a_j - bθ_j}), or
    nothing; z in {0, ..., d} is what was bought, 0 for nothing; ℓ = -θ_z, the revenue with a minus
    sign (0 for z = 0). a (d,): utilities at price 0; b > 0: sensitivity, per unit of price;
    Θ = [0, theta_max]^d with theta_max = 12/b by default; Φ = {φ_i >= phi_min, Σφ_i <= phi_max}.
    The risk is not convex in prices; in shares it is, and KL(φ || φ(θ)), a log-sum-exp, is convex
    in θ. A share that only a negative price would induce, Σφ above Σφ(0) say, is no target that a
    model can reach: choose phi_max <= Σφ_i(0). ValueError for b <= 0, an empty Φ, limits outside
    (0, 1), or a that is no finite vector.
    """

    def __init__(
        self,
        a: ArrayLike,
        b: float,
        theta_max: float | None = None,
        phi_min: float = 0.005,
        phi_max: float = 0.95,
    ) -> None:
        self.a = np.array(a, dtype=np.float64)
        if self.a.ndim != 1 or self.a.size == 0 or not np.all(np.isfinite(self.a)):
            raise ValueError(f"a must be a finite vector (d,) with d >= 1, found {self.a.tolist()}")
        checks.positive(b=b)
        self.b = float(b)
        theta_max = 12 / self.b if theta_max is None else float(theta_max)
        checks.positive(theta_max=theta_max)
        d = self.a.size
        if not (phi_min > 0 and d * phi_min <= phi_max < 1):
            raise ValueError(
                f"need 0 < d*phi_min <= phi_max < 1, "
                f"found d={d}, phi_min={phi_min}, phi_max={phi_max}"
            )
        self.d_theta = self.d_phi = d
        self.theta_set = Box(0.0, theta_max, d)
        self.phi_set = CappedSimplex(d, phi_min, phi_max)

    @classmethod
    def from_counts(
        cls,
        bought: ArrayLike,
        not_bought: float,
        *,
        b: float = 1.0,
        theta_max: float | None = None,
        phi_min: float = 0.005,
        phi_max: float = 0.95,
    ) -> "LogitPricing":
        """Utilities from real counts at price 0: a_i = log(bought_i / not_bought).

        bought (d,): customers (fractions allowed) who took product i; not_bought: who took none.
        ValueError for counts that are not finite and > 0.
        """
        bought = np.array(bought, dtype=np.float64)
        if bought.ndim != 1 or not len(bought) or not np.all((bought > 0) & np.isfinite(bought)):
            raise ValueError(
                f"bought must be a vector of finite counts > 0, found {bought.tolist()}"
            )
        checks.positive(not_bought=not_bought)
        a = np.log(bought / not_bought)
        return cls(a, b, theta_max=theta_max, phi_min=phi_min, phi_max=phi_max)

    def sample(self, theta: Array, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """What each of n customers bought (n,), 0 for nothing. ValueError unless θ is finite."""
        phi = self.distribution_map(checks.vector("theta", theta, self.d_theta))
        # Customer u buys the outcome in whose part of [0, 1) it falls, "nothing" first; leaving
        # out the last border keeps a sum of shares that rounds below 1 harmless.
        phi_0 = 1 - phi.sum()
        if not math.isfinite(phi_0):
            raise ValueError(f"theta must be finite, found {theta!r}")
        borders = np.cumsum(np.concatenate(([phi_0], phi[:-1])))
        return np.searchsorted(borders, rng.random(n), side="right")

    def loss(self, z: NDArray[np.int64], theta: Array) -> Array:
        """Minus the revenue of each customer (n,)."""
        theta = checks.vector("theta", theta, self.d_theta)
        return -np.concatenate(([0.0], theta))[self._purchases(z)]

    def loss_gradient(self, z: NDArray[np.int64], theta: Array) -> Array:
        """-1 in the coordinate that was bought (n, d): each sale alone asks for a higher price."""
        checks.vector("theta", theta, self.d_theta)
        return -(self._purchases(z)[:, None] == np.arange(1, self.d_theta + 1)).astype(np.float64)

    def estimate(self, z: NDArray[np.int64]) -> Array:
        """(k_i + ½) / (n + (d+1)/2) for the d products: all d + 1 shares stay above 0."""
        counts = np.bincount(self._purchases(z), minlength=self.d_phi + 1)[1:]
        return (counts + 0.5) / (len(z) + (self.d_phi + 1) / 2)

    def kl(self, phi: Array, q: Array) -> float:
        """Σ_{i=0..d} φ_i log(φ_i / q_i), the outcome "nothing" included.

        ValueError when φ is no probability or q lies on or beyond the boundary, where the
        divergence is infinite.
        """
        phi, q = checks.vector("phi", phi, self.d_phi), checks.vector("q", q, self.d_phi)
        return _divergence(np.append(phi, 1 - phi.sum()), np.append(q, 1 - q.sum()))

    def distribution_map(self, theta: Array) -> Array:
        """φ_i = e^{a_i - bθ_i}/(1 + Σ_j e^{a_j - bθ_j})."""
        utility = self.a - self.b * checks.points("theta", theta, self.d_theta)
        # Divided by e^{max(0, utilities)} nothing overflows.
        shift = np.maximum(utility.max(axis=-1, keepdims=True), 0.0)
        weight = np.exp(utility - shift)
        return weight / (np.exp(-shift) + weight.sum(axis=-1, keepdims=True))

    def inverse_map(self, phi: Array) -> Array:
        """θ_i = (a_i - log(φ_i/φ_0))/b; outside Θ where no admissible price induces φ."""
        phi, phi_0 = self._shares(phi)
        return (self.a - np.log(phi / phi_0)) / self.b

    def risk(self, theta: Array) -> Array:
        """-Σ φ_i(θ) θ_i, minus the expected revenue per customer."""
        theta = checks.points("theta", theta, self.d_theta)
        return -np.sum(self.distribution_map(theta) * theta, axis=-1)

    def risk_phi(self, phi: Array) -> Array:
        """-(1/b) Σ φ_i (a_i - log φ_i + log φ_0)."""
        return -np.sum(np.asarray(phi) * self.inverse_map(phi), axis=-1)

    def risk_phi_gradient(self, phi: Array) -> Array:
        """-(1/b) [a_i - log φ_i - 1 + log φ_0 - (1 - φ_0)/φ_0]."""
        phi, phi_0 = self._shares(phi)
        return -(self.a - np.log(phi / phi_0) - 1 - (1 - phi_0) / phi_0) / self.b

    def risk_hessian(self, theta: Array) -> Array:
        """The Hessian of PR, from R = Σφ_iθ_i and m_i = 1 - b(θ_i - R).

        ∂R/∂θ_i = φ_i m_i; ∂²R/∂θ_i∂θ_j = bφ_iφ_j(m_i + m_j) - δ_ij bφ_i(1 + m_i); PR = -R.
        """
        theta = checks.points("theta", theta, self.d_theta)
        phi = self.distribution_map(theta)
        revenue = np.sum(phi * theta, axis=-1, keepdims=True)
        m = 1 - self.b * (theta - revenue)
        outer = phi[..., :, None] * phi[..., None, :] * (m[..., :, None] + m[..., None, :])
        return self.b * (_diagonal(phi * (1 + m)) - outer)

    def risk_phi_hessian(self, phi: Array) -> Array:
        """(1/b) [diag(1/φ_i) + ((1 + φ_0)/φ_0²) 11ᵀ], positive definite."""
        phi, phi_0 = self._shares(phi)
        return (_diagonal(1 / phi) + ((1 + phi_0) / phi_0**2)[..., None]) / self.b

    @property
    def optimal_theta(self) -> Array:
        """The best prices (d,), all equal: (1 + w)/b, w = W(Σ e^{a_i - 1}), W Lambert's function.

        ValueError when they lie outside Θ, where this closed form is not the optimum.
        """
        theta = np.full(self.d_theta, (1 + self._w) / self.b)
        return checks.point("optimal_theta", theta, self.theta_set, self.d_theta)

    @property
    def optimal_phi(self) -> Array:
        """The shares (d,) at the best prices: e^{a_i - 1 - w}/(1 + w)."""
        return self.distribution_map(self.optimal_theta)

    @property
    def optimal_risk(self) -> float:
        """-w/b."""
        return float(self.risk(self.optimal_theta))

    @property
    def _w(self) -> float:
        return float(lambertw(np.exp(self.a - 1).sum()).real)

    def _shares(self, phi: Array) -> tuple[Array, Array]:
        """φ and φ_0 (..., 1); ValueError when a share of the d + 1 is not above 0."""
        phi = checks.points("phi", phi, self.d_phi)
        phi_0 = 1 - phi.sum(axis=-1, keepdims=True)
        if not (np.all(phi > 0) and np.all(phi_0 > 0)):
            raise ValueError(
                f"phi: distribution parameter on the boundary, all d + 1 shares must be > 0, "
                f"found {phi.tolist()}"
            )
        return phi, phi_0

    def _purchases(self, z: NDArray[np.int64]) -> NDArray[np.int64]:
        if z.ndim != 1 or len(z) == 0:
            raise ValueError(f"z must have shape (n,), n >= 1, found {z.shape}")
        if not (z.min() >= 0 and z.max() <= self.d_phi):
            raise ValueError(f"z must lie in 0..{self.d_phi}, found {z.min()} to {z.max()}")
        return z


class Blind:
    """The part of an environment that a learner may see; it counts what is drawn.

    n_samples and n_deployments: all samples and calls of `sample` so far. Names outside
    `Environment` raise AttributeError.
    """

    def __init__(self, env: Environment) -> None:
        self.d_theta, self.d_phi = env.d_theta, env.d_phi
        self.theta_set, self.phi_set = env.theta_set, env.phi_set
        self.loss, self.estimate, self.kl = env.loss, env.estimate, env.kl
        self.n_samples = 0
        self.n_deployments = 0
        self.__draw = env.sample

    def sample(self, theta: Array, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """n samples of D(θ), counted."""
        self.n_samples += n
        self.n_deployments += 1
        return self.__draw(theta, n, rng)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a learner cannot see {name!r}: it is no part of Environment")


def _divergence(p: Array, q: Array) -> float:
    """Σ p log(p/q) over all outcomes' probabilities."""
    if not q.min() > 0.0:
        raise ValueError(
            f"q: distribution parameter on the boundary, all outcomes need a probability > 0, "
            f"else KL is infinite; found {q.tolist()}"
        )
    value = float(rel_entr(p, q).sum())
    if not math.isfinite(value):
        # rel_entr is infinite for a negative probability and NaN for NaN.
        raise ValueError(f"phi holds no probabilities: {p.tolist()}")
    return value


def _diagonal(values: Array) -> Array:
    return values[..., None] * np.eye(values.shape[-1])
