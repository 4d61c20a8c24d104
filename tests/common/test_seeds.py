"""Seeds as wildcards."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retable.common.seeds import PATTERN, Seeds, group_seeds


def test_one_seed_or_a_range() -> None:
    assert Seeds.parse("3") == (3,)
    assert Seeds.parse("0-4") == (0, 1, 2, 3, 4)
    assert str(Seeds.parse("10-12")) == "10-12"
    assert str(Seeds.parse("0")) == "0"


@pytest.mark.parametrize("text", ["", "a", "-1", "1-", "1-2-3", "1,2", " 1", "1\n", "0x1", "1.5"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither a seed \(3\) nor a range \(0-4\)"):
        Seeds.parse(text)


@pytest.mark.parametrize("text", ["3-3", "4-2"])
def test_a_range_must_rise(text: str) -> None:
    with pytest.raises(ValueError, match=f"the range '{text}' must rise"):
        Seeds.parse(text)


SEEDS = st.lists(st.integers(0, 60), min_size=1, max_size=30)


@given(first=st.integers(0, 10**6), more=st.integers(0, 50))
def test_text_and_seeds_are_inverse(first: int, more: int) -> None:
    seeds = Seeds(range(first, first + more + 1))
    assert Seeds.parse(str(seeds)) == seeds
    assert re.fullmatch(PATTERN, str(seeds))


@given(seeds=SEEDS, per_job=st.integers(1, 12))
def test_groups_hold_every_seed_once(seeds: list[int], per_job: int) -> None:
    groups = [Seeds.parse(text) for text in group_seeds(seeds, per_job)]
    assert [seed for group in groups for seed in group] == sorted(set(seeds))
    assert all(len(group) <= per_job for group in groups)


@given(seeds=SEEDS, per_job=st.integers(1, 12), new=st.integers(0, 80))
def test_a_later_seed_touches_one_group(seeds: list[int], per_job: int, new: int) -> None:
    """A seed after all others leaves every job as it was but the last one."""
    new += max(seeds) + 1
    before, after = group_seeds(seeds, per_job), group_seeds([*seeds, new], per_job)
    assert after[: len(before) - 1] == before[:-1]
    assert len(after) - len(before) in (0, 1)


@given(count=st.integers(1, 40), per_job=st.integers(1, 12))
def test_a_run_of_seeds_needs_few_jobs(count: int, per_job: int) -> None:
    assert len(group_seeds(range(count), per_job)) == -(-count // per_job)


def test_no_group_of_none() -> None:
    with pytest.raises(ValueError, match="seeds_per_job must be >= 1, got 0"):
        group_seeds([1, 2], 0)
