import pytest
import torch

from retable.hstu.data import collate
from retable.hstu.models import (
    DLRM,
    HSTU,
    DLRMConfig,
    GRRanker,
    GRRankerConfig,
    HSTUConfig,
    Popularity,
    PopularityConfig,
    SASRec,
    SASRecConfig,
)

from .conftest import MAX_LEN, MODELS, N_ITEMS, build


def parameters(model):
    return sum(p.numel() for p in model.parameters())


def test_parameter_counts():
    assert parameters(HSTU(HSTUConfig(1682, 200, 50, 2, 1, 50, 50))) == 120_306
    assert parameters(SASRec(SASRecConfig(1682, 200, 50, 2, 1, 50))) == 124_750


def test_input_initialisation():
    torch.manual_seed(0)
    for model, std in (
        (HSTU(HSTUConfig(500, 40, 64, 1, 1, 8, 8)), (2 / (40 + 64)) ** 0.5),
        (SASRec(SASRecConfig(500, 40, 64, 1, 1, 8)), 0.88 / 8),
    ):
        weight = model.item_embedding.weight
        assert weight[0].abs().max() == 0
        assert weight.abs().max() <= 0.04
        # Cutting a normal at two standard deviations leaves 0.88 of its spread.
        assert weight[1:].std().item() == pytest.approx(0.88 * 0.02, rel=0.02)
        assert model.position.std().item() == pytest.approx(std, rel=0.05)


def test_states_and_items_are_unit_vectors(model, tokens):
    out = model.encode(*tokens)
    torch.testing.assert_close(out.norm(dim=-1), torch.ones(3, 9))
    torch.testing.assert_close(model.item_vectors().norm(dim=-1), torch.ones(N_ITEMS))


@pytest.mark.parametrize("slot", [0, 4, 8])
def test_causality(model, tokens, slot):
    ids, times, targets = tokens
    before = model.encode(ids, times, targets)
    changed_ids = ids.clone()
    changed_ids[:, slot] = changed_ids[:, slot] % N_ITEMS + 1
    after = model.encode(changed_ids, times, targets)
    assert torch.equal(before[:, :slot], after[:, :slot])
    assert not torch.allclose(before[:, slot:], after[:, slot:])
    # Time enters at its own slot, and as the target time of the slot before.
    later = times.clone()
    later[:, slot:] += 10**7
    after = model.encode(ids, later, targets + 10**8)
    same = model.encode(ids, times, targets + 10**8)
    assert torch.equal(same[:, :slot], after[:, :slot])


@pytest.mark.parametrize("name", ["hstu", "hstu-softmax"])
def test_time_matters(name, tokens):
    model = build(name)
    ids, times, targets = tokens
    before = model.encode(ids, times, targets)
    moved = targets.clone()
    moved[:, 3] += 10**7
    after = model.encode(ids, times, moved)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3], after[:, 3])


@pytest.mark.parametrize("name", ["sasrec", "gru4rec"])
def test_time_is_ignored_by_the_baselines(name, tokens):
    model = build(name)
    assert torch.equal(model.encode(*tokens), model.encode(tokens[0]))


def test_padding_invariance(model, tokens):
    ids, times, targets = tokens
    short = model.encode(ids[:, :5], times[:, :5], targets[:, :5])
    mask = torch.arange(9) < 5
    padded = model.encode(ids * mask, times * mask, targets * mask)
    torch.testing.assert_close(padded[:, :5], short, atol=1e-6, rtol=0)
    assert padded[:, 5:].abs().max() == 0


def test_an_empty_row_stays_zero(model, tokens):
    ids, times, targets = tokens
    out = model.encode(ids * torch.tensor([[1], [0], [1]]), times, targets)
    assert out[1].abs().max() == 0
    assert out.isfinite().all()


def test_relabelling_items_permutes_scores(model, sequences):
    batch = collate(sequences, MAX_LEN)
    scores = model.score(batch)
    order = torch.randperm(N_ITEMS, generator=torch.Generator().manual_seed(1))
    new_id = torch.zeros(N_ITEMS + 1, dtype=torch.long)
    new_id[1 + order] = torch.arange(1, N_ITEMS + 1)
    with torch.no_grad():
        weight = model.item_embedding.weight
        weight[1:] = weight[1:][order].clone()
    moved = type(batch)(
        new_id[batch.ids],
        batch.timestamps,
        batch.target_ids,
        batch.target_timestamps,
        batch.lengths,
    )
    torch.testing.assert_close(model.score(moved), scores[:, order])


def test_score_reads_the_last_valid_slot(model, sequences):
    batch = collate(sequences, MAX_LEN)
    scores = model.score(batch)
    states = model.encode(batch.ids, batch.timestamps, batch.target_timestamps)
    for row, length in enumerate(batch.lengths.tolist()):
        torch.testing.assert_close(scores[row], model.item_vectors() @ states[row, length - 1])


def test_one_pass_equals_impression_level(model, tokens):
    ids, times, targets = tokens
    whole = model.encode(ids, times, targets)
    for n in range(1, 10):
        prefix = model.encode(ids[:, :n], times[:, :n], targets[:, :n])
        torch.testing.assert_close(prefix[:, -1], whole[:, n - 1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_against_float64_finite_differences(name, tokens):
    # Without dropout: finite differences need the same function twice.
    model = build(name, dropout=0.0).double()
    ids, times, targets = (x[:1, :5] for x in tokens)
    weights = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(0)).double()

    def loss():
        return (model.encode(ids, times, targets) * weights).sum()

    named = dict(model.named_parameters())
    grads = dict(zip(named, torch.autograd.grad(loss(), list(named.values())), strict=True))
    generator = torch.Generator().manual_seed(2)
    step = 1e-6
    for parameter_name, parameter in named.items():
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if parameter_name == "item_embedding.weight":
            direction[0] = 0  # the padding row is no parameter: its gradient is defined as 0
        with torch.no_grad():
            parameter += step * direction
            up = loss()
            parameter -= 2 * step * direction
            down = loss()
            parameter += step * direction
        slope = float((up - down) / (2 * step))
        expected = float((grads[parameter_name] * direction).sum())
        assert slope == pytest.approx(expected, rel=2e-5, abs=1e-6), parameter_name


def test_bad_tokens(model, tokens):
    ids, times, targets = tokens
    with pytest.raises(ValueError, match=r"ids must lie in 0\.\.30, got 31"):
        model.encode(ids.clone().fill_(31), times, targets)
    with pytest.raises(ValueError, match=r"ids must lie in 0\.\.30, got -1"):
        model.encode(ids.clone().fill_(-1), times, targets)
    holed = ids.clone()
    holed[1, 4] = 0
    with pytest.raises(ValueError, match="padding inside row 1: slot 4 is 0, slot 5"):
        model.encode(holed, times, targets)
    back = times.clone()
    back[2, 6] = 0
    with pytest.raises(ValueError, match=r"timestamps must not decrease.* row 2, slot 6"):
        model.encode(ids, back, targets)
    long = torch.ones(1, MAX_LEN + 3, dtype=torch.long)
    with pytest.raises(ValueError, match="ids hold 15 slots, more than max_len = 12"):
        model.encode(long, long, long)
    with pytest.raises(ValueError, match=r"target_timestamps must have the shape \(3, 9\)"):
        model.encode(ids, times, targets[:, :4])
    with pytest.raises(ValueError, match=r"ids must be integers, got dtype torch\.float32"):
        model.encode(ids.float(), times, targets)
    with pytest.raises(ValueError, match=r"ids must have shape \(B, n\)"):
        model.encode(ids[0], times[0], targets[0])


def test_times_may_be_anything_at_padding(model, tokens):
    ids, times, targets = tokens
    mask = torch.arange(9) < 5
    a = model.encode(ids * mask, times * mask, targets * mask)
    b = model.encode(ids * mask, times.where(mask, -7), targets.where(mask, -9))
    assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["hstu", "hstu-softmax"])
def test_missing_target_times(name, tokens):
    with pytest.raises(ValueError, match="target_timestamps is None"):
        build(name).encode(tokens[0], tokens[1])
    build(name, bias=None).encode(tokens[0])
    build(name, bias="position").encode(tokens[0])


def test_popularity(sequences):
    model = Popularity(PopularityConfig(4)).fit(torch.tensor([2, 2, 4, 1, 2, 4]))
    batch = collate(sequences, MAX_LEN)
    assert model.score(batch).tolist() == [[1, 3, 0, 2]] * 3
    with pytest.raises(ValueError, match=r"ids must lie in 1\.\.4, got 0"):
        model.fit(torch.tensor([0]))


@pytest.fixture
def ranker():
    torch.manual_seed(0)
    return GRRanker(GRRankerConfig(N_ITEMS, 5, 10, 16, 2, 2, 6, 5)).eval()


@pytest.fixture
def rated(tokens):
    ids, times, _ = tokens
    actions = torch.randint(1, 6, ids.shape, generator=torch.Generator().manual_seed(2))
    return ids, actions, times


def test_ranker_never_sees_the_action_that_it_predicts(ranker, rated):
    ids, actions, times = rated
    before = ranker(ids, actions, times)
    changed = actions.clone()
    changed[:, 4] = changed[:, 4] % 5 + 1
    after = ranker(ids, changed, times)
    assert torch.equal(before[:, :5], after[:, :5])
    assert (before[:, 5:] != after[:, 5:]).all()


def test_ranker_sees_the_candidate_but_no_later_item(ranker, rated):
    ids, actions, times = rated
    before = ranker(ids, actions, times)
    changed = ids.clone()
    changed[:, 4] = changed[:, 4] % N_ITEMS + 1
    after = ranker(changed, actions, times)
    assert torch.equal(before[:, :4], after[:, :4])
    assert (before[:, 4] != after[:, 4]).all()


def test_ranker_padding_and_prefixes(ranker, rated):
    ids, actions, times = rated
    whole = ranker(ids, actions, times)
    mask = torch.arange(9) < 6
    padded = ranker(ids * mask, actions * mask, times * mask)
    torch.testing.assert_close(padded[:, :6], whole[:, :6], atol=1e-6, rtol=0)
    unknown = actions.clone()
    unknown[:, -1] = 0
    torch.testing.assert_close(ranker(ids, unknown, times), whole)


def test_ranker_takes_a_full_history_and_a_candidate(ranker):
    ids = torch.ones(1, 11, dtype=torch.long)
    assert ranker(ids, ids, ids).shape == (1, 11)
    ids = torch.ones(1, 12, dtype=torch.long)
    with pytest.raises(ValueError, match="ids hold 12 slots, more than max_len = 11"):
        ranker(ids, ids, ids)


def test_ranker_bad_actions(ranker, rated):
    ids, actions, times = rated
    with pytest.raises(ValueError, match=r"actions must lie in 0\.\.5, got 6"):
        ranker(ids, torch.full_like(actions, 6), times)


def test_dlrm():
    torch.manual_seed(0)
    model = DLRM(DLRMConfig(n_users=3, n_items=6, n_features=2, d_embedding=4, hidden=(8, 5)))
    users, items = torch.tensor([1, 3]), torch.tensor([2, 6])
    features = torch.randn(2, 2)
    none = model(users, items, torch.zeros(2, 3, dtype=torch.long), features)
    some = model(users, items, torch.tensor([[1, 0, 5], [0, 0, 4]]), features)
    again = model(users, items, torch.tensor([[5, 1, 0], [4, 0, 0]]), features)
    assert none.shape == (2,)
    assert (none != some).all()
    torch.testing.assert_close(some, again)
    with pytest.raises(ValueError, match=r"users must lie in 1\.\.3, got 4"):
        model(users + 1, items, torch.zeros(2, 3, dtype=torch.long), features)
    with pytest.raises(ValueError, match=r"ids must lie in 1\.\.6, got 7"):
        model(users, items + 1, torch.zeros(2, 3, dtype=torch.long), features)
