"""The vocabulary: the best fragments so far, bounded in size."""

from collections.abc import Mapping


class Vocabulary:
    """Fragments with their scores, best first; at most `size_limit` of them.

    Ties are broken by the fragment's SMILES, so that the order depends on the content alone.

    Raises:
        ValueError: `size_limit` below 1, or a score that is NaN.
    """

    def __init__(self, scores: Mapping[str, float], size_limit: int):
        if size_limit < 1:
            raise ValueError(f"size_limit is {size_limit}; it must be at least 1")
        self.size_limit = size_limit
        self._keep(scores)

    def _keep(self, scores: Mapping[str, float]) -> None:
        for fragment, score in scores.items():
            if score != score:
                raise ValueError(f"score of fragment {fragment!r} is NaN")
        ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
        self._scores = dict(ranked[: self.size_limit])
        self._fragments = tuple(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    @property
    def fragments(self) -> tuple[str, ...]:
        """The fragments, best first."""
        return self._fragments

    @property
    def scores(self) -> dict[str, float]:
        """A copy of the scores, best first."""
        return dict(self._scores)

    def replace(self, scores: Mapping[str, float]) -> None:
        """Take these fragments instead, the best `size_limit` of them."""
        self._keep(scores)

    def update(self, new: Mapping[str, float], max_update: int) -> int:
        """Offer fragments: the best `max_update` of `new` join unless they are known already.

        Then the best `size_limit` of all are kept.

        Returns:
            How many of the new ones are in the vocabulary now.
        """
        best = sorted(new.items(), key=lambda pair: (-pair[1], pair[0]))[:max_update]
        added = {fragment: score for fragment, score in best if fragment not in self._scores}
        self._keep(self._scores | added)
        return sum(fragment in self._scores for fragment in added)
