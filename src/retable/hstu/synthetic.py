"""The synthetic non-stationary stream: a Dirichlet process over categories (section 4.1.1).

The published recipe leaves details open. Chosen here: a record has 1..5 categories (uniform),
distinct and uniform, with a Dirichlet(1, .., 1) prior over them; a category none of whose items is
available yet offers its lowest id. Categories that own no item are never picked.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

# Records are drawn in blocks so that (block, C) temporaries stay small at a million records.
BLOCK = 16384
# Of the stream, the share that comes last and serves as test set.
TEST_SHARE = 0.1


@dataclass(frozen=True)
class _Hidden:
    """What the oracle knows of every record: its categories, its prior, its concentration."""

    categories: Int[np.ndarray, "R K"]
    prior: Float[np.ndarray, "R K"]
    alpha: Float[np.ndarray, "R"]


class DirichletStream:
    """A stream of R records of n items: the vocabulary grows, and the rich get richer.

    Items 1..V belong to C categories at random. Record r has a concentration a ~ U(alpha), up to
    max_categories categories and a prior over them. At step j the category comes with probability
    a / (a + j) from the prior, else from the counts of steps 0..j-1; then a uniform item of that
    category among ids 1..available(r), which grow from initial_fraction * V to V along the stream.
    Everything follows from seed. The last tenth of the records is the test set.
    """

    def __init__(
        self,
        n_items: int,
        n_categories: int,
        n_records: int,
        length: int,
        alpha: tuple[float, float],
        max_categories: int = 5,
        initial_fraction: float = 0.4,
        seed: int = 0,
    ) -> None:
        for name, value in (
            ("n_items", n_items),
            ("n_categories", n_categories),
            ("n_records", n_records),
            ("length", length),
            ("max_categories", max_categories),
        ):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if not 0 < alpha[0] <= alpha[1]:
            raise ValueError(f"alpha must be (low, high) with 0 < low <= high, got {alpha}")
        if not 0 < initial_fraction <= 1:
            raise ValueError(f"initial_fraction must lie in (0, 1], got {initial_fraction}")
        self.n_items, self.n_records, self.length = n_items, n_records, length
        self.initial_fraction = initial_fraction
        rng = np.random.default_rng(seed)
        self.item_category = rng.integers(n_categories, size=n_items)
        owned = np.bincount(self.item_category, minlength=n_categories)
        # Item ids grouped by category, ascending inside each; group c starts at _start[c].
        self._by_category = np.argsort(self.item_category, kind="stable")
        self._start = np.concatenate([[0], owned.cumsum()[:-1]])
        populated = np.flatnonzero(owned)
        if len(populated) < max_categories:
            raise ValueError(
                f"max_categories = {max_categories} exceeds the {len(populated)} categories that "
                f"own an item"
            )
        blocks = [
            self._draw(rng, np.arange(start, min(start + BLOCK, n_records)), populated, alpha,
                       max_categories)
            for start in range(0, n_records, BLOCK)
        ]  # fmt: skip
        records, categories, prior, concentration = (
            np.concatenate(parts) for parts in zip(*blocks, strict=True)
        )
        self.records = records
        self._hidden = _Hidden(categories, prior, concentration)

    def available(self, r: int) -> int:
        """Largest item id on offer at record r: floor((f0 + (1 - f0) r / R) V), at least 1."""
        return int(self._available(np.asarray(r)))

    def _available(self, r: Int[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
        share = self.initial_fraction + (1 - self.initial_fraction) * r / self.n_records
        return np.maximum(1, np.floor(share * self.n_items)).astype(np.int64)

    @property
    def first_test_record(self) -> int:
        """Index of the first record of the test set; the ones before are for training."""
        return self.n_records - max(1, round(TEST_SHARE * self.n_records))

    def _on_offer(
        self, categories: Int[np.ndarray, "R K"], r: Int[np.ndarray, "R"]
    ) -> Int[np.ndarray, "R K"]:
        """How many items each category offers at its record, at least one."""
        # Items grouped by category with ids ascending are sorted by (category, id): one search.
        key = self.item_category[self._by_category] * (self.n_items + 1) + self._by_category + 1
        wanted = categories * (self.n_items + 1) + self._available(r)[:, None]
        return np.maximum(1, np.searchsorted(key, wanted, side="right") - self._start[categories])

    def _draw(self, rng, r, populated, alpha, max_categories):
        size = len(r)
        rows = np.arange(size)
        n_own = rng.integers(1, max_categories + 1, size=size)
        order = rng.random((size, len(populated))).argpartition(max_categories - 1, axis=1)
        # argpartition leaves the first places in no uniform order, and n_own keeps a prefix.
        first = rng.permuted(order[:, :max_categories], axis=1)
        categories = populated[first]
        mass = rng.standard_exponential((size, max_categories))
        mass *= np.arange(max_categories) < n_own[:, None]
        prior = mass / mass.sum(1, keepdims=True)
        concentration = rng.uniform(*alpha, size=size)
        offer = self._on_offer(categories, r)
        counts = np.zeros((size, max_categories))
        records = np.empty((size, self.length), np.int64)
        for j in range(self.length):  # each step depends on the counts of those before
            weights = concentration[:, None] * prior + counts
            edges = weights.cumsum(1)
            choice = (rng.random(size) * edges[:, -1])[:, None] >= edges
            # Rounding may put the draw on the last edge; own categories come first.
            slot = np.minimum(choice.sum(1), n_own - 1)
            counts[rows, slot] += 1
            place = rng.integers(offer[rows, slot])
            records[:, j] = self._by_category[self._start[categories[rows, slot]] + place] + 1
        return records, categories, prior, concentration

    def oracle_probs(self, r: int, j: int) -> Float[np.ndarray, "V"]:
        """Probability of every item at slot j of record r, given slots 0..j-1 and all hidden state.

        Knows the record's categories, prior and concentration: no predictor can do better.
        """
        if not 0 <= r < self.n_records:
            raise ValueError(f"r must lie in 0..{self.n_records - 1}, got {r}")
        if not 0 <= j < self.length:
            raise ValueError(f"j must lie in 0..{self.length - 1}, got {j}")
        categories = self._hidden.categories[r]
        past = self.item_category[self.records[r, :j] - 1]
        counts = (past == categories[:, None]).sum(1)
        mass = self._hidden.alpha[r] * self._hidden.prior[r] + counts
        offer = self._on_offer(categories[None], np.array([r]))[0]
        probs = np.zeros(self.n_items)
        for category, share, n_offer in zip(
            categories, mass / (self._hidden.alpha[r] + j), offer, strict=True
        ):
            start = self._start[category]
            probs[self._by_category[start : start + n_offer]] = share / n_offer
        return probs

    def oracle_hit_rate(self, k: int) -> float:
        """HR@k of the Bayes-optimal predictor over the test slots of `oracle_test`.

        Items of one category are equally likely: where they straddle rank k, the expected share
        of orderings that hit is counted.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        hits = [
            np.clip((k - ahead) / offer, 0, 1).ravel() for _, ahead, offer in self._oracle_blocks()
        ]
        return float(np.concatenate(hits).mean())

    def oracle_ndcg(self, k: int) -> float:
        """NDCG@k of the Bayes-optimal predictor, ties averaged as in `oracle_hit_rate`."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        # gains[i] = sum over ranks 1..i of 1 / log2(rank + 1), flat after rank k.
        gains = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(k) + 2))])
        parts = [
            ((gains[np.minimum(ahead + offer, k)] - gains[np.minimum(ahead, k)]) / offer).ravel()
            for _, ahead, offer in self._oracle_blocks()
        ]
        return float(np.concatenate(parts).mean())

    def oracle_loss(self) -> float:
        """Mean of -ln p(item) in nats of the Bayes-optimal predictor over the same slots."""
        return float(
            -np.concatenate([np.log(p).ravel() for p, _, _ in self._oracle_blocks()]).mean()
        )

    @property
    def test_slots(self) -> Bool[np.ndarray, "n"]:
        """Slots whose items are test targets: the second half of a test record."""
        return np.arange(self.length) >= self.length // 2

    def _oracle_blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For test targets: probability, items strictly more likely, items equally likely."""
        for start in range(self.first_test_record, self.n_records, BLOCK):
            r = np.arange(start, min(start + BLOCK, self.n_records))
            categories = self._hidden.categories[r]
            own = self.item_category[self.records[r] - 1][:, :, None] == categories[:, None]
            before = own.cumsum(1) - own
            mass = self._hidden.alpha[r, None, None] * self._hidden.prior[r, None] + before
            mass /= (self._hidden.alpha[r, None] + np.arange(self.length))[:, :, None]
            offer = self._on_offer(categories, r)[:, None]
            each = (mass / offer)[:, self.test_slots]
            own = own[:, self.test_slots]
            p = (each * own).sum(2)
            ahead = ((each > p[:, :, None]) * offer).sum(2)
            yield p, ahead, (own * offer).sum(2)
