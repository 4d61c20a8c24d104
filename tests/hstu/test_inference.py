import pytest
import torch

from retable.hstu.inference import History, encode_with_cache, m_falcon
from retable.hstu.models import GRRanker, GRRankerConfig

from .conftest import N_ITEMS, build


@pytest.mark.parametrize("name", ["hstu", "hstu-softmax"])
@pytest.mark.parametrize("bias", ["position+time", "position", None])
@pytest.mark.parametrize("steps", [[9], [4, 5], [1] * 9])
def test_cache_equals_full_recompute(name, bias, steps, tokens):
    model = build(name, bias=bias)
    expected = model.encode(*tokens)
    cache, start, parts = None, 0, []
    for step in steps:
        new = [x[:, start : start + step] for x in tokens]
        out, cache = encode_with_cache(model, *new, cache=cache)
        parts.append(out)
        start += step
        assert len(cache) == start
    torch.testing.assert_close(torch.cat(parts, 1), expected, atol=1e-5, rtol=0)


def test_cache_without_times(tokens):
    model = build("hstu", bias=None)
    _, cache = encode_with_cache(model, tokens[0][:, :4])
    out, _ = encode_with_cache(model, tokens[0][:, 4:], cache=cache)
    torch.testing.assert_close(out, model.encode(tokens[0])[:, 4:], atol=1e-5, rtol=0)


def test_cache_bad_input(tokens):
    model = build("hstu")
    _, cache = encode_with_cache(model, *tokens)
    with pytest.raises(ValueError, match=r"9 cached \+ 9 new slots, more than max_len = 12"):
        encode_with_cache(model, *tokens, cache=cache)
    with pytest.raises(ValueError, match="must not precede the cached ones"):
        encode_with_cache(model, *(x[:, :1] for x in tokens), cache=cache)
    with pytest.raises(ValueError, match="ids holds padding"):
        encode_with_cache(model, tokens[0] * (torch.arange(9) < 8), *tokens[1:])
    with pytest.raises(ValueError, match="training mode"):
        encode_with_cache(model.train(), *tokens)


@pytest.fixture(scope="module")
def ranker():
    torch.manual_seed(0)
    model = GRRanker(GRRankerConfig(N_ITEMS, 5, 9, 16, 2, 2, 6, 5)).eval()
    with torch.no_grad():
        for bias in model.stack.biases:
            for weight in bias.parameters():
                weight.normal_()
        for layer in model.stack.layers:
            layer.w1.normal_(std=0.3)
    return model


@pytest.fixture
def history(tokens):
    ids, times, _ = tokens
    actions = torch.randint(1, 6, (9,), generator=torch.Generator().manual_seed(1))
    return History(ids[0], actions, times[0], int(times[0, -1]) + 5000)


@pytest.mark.parametrize("microbatch", [1, 4, 11, 64])
@pytest.mark.parametrize("length", [1, 9])
def test_m_falcon_equals_separate_forwards(ranker, history, microbatch, length):
    candidates = torch.randperm(N_ITEMS, generator=torch.Generator().manual_seed(2))[:11] + 1
    past = History(
        history.ids[:length],
        history.actions[:length],
        history.timestamps[:length],
        history.request_time,
    )
    scores = m_falcon(ranker, past, candidates, microbatch)
    one = torch.ones(1, dtype=torch.long)
    expected = torch.stack(
        [
            ranker(
                torch.cat([past.ids, one * c]).unsqueeze(0),
                torch.cat([past.actions, one * 0]).unsqueeze(0),
                torch.cat([past.timestamps, one * past.request_time]).unsqueeze(0),
            )[0, -1]
            for c in candidates
        ]
    )
    torch.testing.assert_close(scores, expected, atol=1e-5, rtol=0)
    assert expected.std() > 1e-3  # the comparison would be void if all candidates scored the same


def test_candidates_do_not_see_each_other(ranker, history):
    candidates = torch.arange(1, 9)
    scores = m_falcon(ranker, history, candidates, 8)
    order = torch.tensor([5, 2, 7, 0, 1, 3, 6, 4])
    torch.testing.assert_close(m_falcon(ranker, history, candidates[order], 8), scores[order])
    torch.testing.assert_close(m_falcon(ranker, history, candidates[:3], 8), scores[:3])
    twice = m_falcon(ranker, history, torch.cat([candidates, candidates]), 16)
    torch.testing.assert_close(twice, scores.repeat(2))


def test_m_falcon_bad_input(ranker, history):
    def call(candidates=(1, 2), microbatch=2, **changes):
        fields = {name: getattr(history, name) for name in history.__dataclass_fields__}
        past = History(**{**fields, **changes})
        return m_falcon(ranker, past, torch.tensor(candidates, dtype=torch.long), microbatch)

    with pytest.raises(ValueError, match="candidates must be a non-empty 1-d tensor"):
        call(candidates=[])
    with pytest.raises(ValueError, match="microbatch must be at least 1, got 0"):
        call(microbatch=0)
    with pytest.raises(ValueError, match=r"ids must lie in 0\.\.30, got 31"):
        call(candidates=[31])
    with pytest.raises(ValueError, match=r"candidates must lie in 1\.\.n_items, got 0"):
        call(candidates=[3, 0])
    with pytest.raises(ValueError, match=r"history must hold 1\.\.max_events = 9 events, got 10"):
        call(ids=torch.ones(10, dtype=torch.long))
    with pytest.raises(ValueError, match="request_time must not precede the last event"):
        call(request_time=0)
    with pytest.raises(ValueError, match="history holds padding or an unknown action"):
        call(actions=torch.zeros(9, dtype=torch.long))
    with pytest.raises(ValueError, match=r"actions must lie in 0\.\.5, got 6"):
        call(actions=torch.full((9,), 6))
    ranker.train()
    with pytest.raises(ValueError, match="training mode"):
        call()
    ranker.eval()
