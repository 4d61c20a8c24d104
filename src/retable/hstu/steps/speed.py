"""What is timed: a layer against a Transformer's, one pass against many, M-FALCON (figure 5)."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from retable.common.metrics import write_metrics
from retable.hstu.config import SpeedSettings
from retable.hstu.data import Batch
from retable.hstu.inference import History, m_falcon
from retable.hstu.layers import HSTULayer, SASRecLayer
from retable.hstu.lengths import expected_cost, short_length
from retable.hstu.losses import sampled_softmax
from retable.hstu.models import HSTU, GRRanker, GRRankerConfig, HSTUConfig

Times = dict[str, float]
N_ITEMS = 1682
USERS = 8


def speed(times: Path, *, settings: SpeedSettings) -> None:
    """Write ratios of times of things that ran side by side in alternation, one row a repeat.

    Metrics "cpu" (processor time, of one thread) and "wall". The column seed counts repeats.
    """
    rows = []
    for clock, repeats in layers(settings).items():
        rows += [
            _row(f"n={n}", method, repeat, clock, value)
            for repeat, ratios in enumerate(repeats)
            for (n, method), value in ratios.items()
        ]
    for dataset, method, found in (
        (
            f"n={settings.generative_length}",
            "impression-level / generative",
            generative(settings),
        ),
        (
            f"m={settings.candidates}, n={settings.history_tokens}",
            "one by one / M-FALCON",
            candidates(settings),
        ),
    ):
        rows += [
            _row(dataset, method, repeat, clock, value)
            for clock, values in found.items()
            for repeat, value in enumerate(values)
        ]
    write_metrics(rows, times)


def _row(dataset: str, method: str, repeat: int, clock: str, value: float) -> dict:
    return {
        "experiment": "speed",
        "dataset": dataset,
        "method": method,
        "seed": repeat,
        "metric": f"{clock} time ratio",
        "value": value,
    }


def alternate(tasks: Mapping, repeats: int) -> dict[str, list[dict]]:
    """Run all tasks once to warm up, then `repeats` times in turn; seconds by clock and repeat."""
    for task in tasks.values():
        task()
    out: dict[str, list[dict]] = {"cpu": [], "wall": []}
    for _ in range(repeats):
        taken: dict[str, dict] = {"cpu": {}, "wall": {}}
        for key, task in tasks.items():
            cpu, wall = time.process_time(), time.perf_counter()
            task()
            taken["wall"][key] = time.perf_counter() - wall
            taken["cpu"][key] = time.process_time() - cpu
        for clock, seconds in taken.items():
            out[clock].append(seconds)
    return out


def layers(settings: SpeedSettings) -> dict[str, list[dict]]:
    """Transformer over HSTU, forward and backward, for a user of n events at each length n.

    Without Stochastic Length on either side, with it on HSTU's, and on both. With it a user costs
    p T(n) + (1 - p) T(L): the expectation, as an average over few draws would be luck.
    """
    tasks: dict[tuple[str, int], Callable[[], None]] = {}
    for n in settings.lengths:
        for length in {n, short_length(n, settings.alpha)}:
            torch.manual_seed(0)
            width = settings.d_model // settings.n_heads
            hstu = HSTULayer(settings.d_model, settings.n_heads, width, width, 0.0, n)
            transformer = SASRecLayer(settings.d_model, settings.n_heads, 4 * settings.d_model, 0.0)
            x = torch.randn(1, length, settings.d_model, requires_grad=True)
            tasks["hstu", length] = _backward(hstu, x, block_size=settings.block_size)
            tasks["transformer", length] = _backward(transformer, x)
    return {
        clock: [_layer_ratios(seconds, settings) for seconds in repeats]
        for clock, repeats in alternate(tasks, settings.repeats).items()
    }


def _backward(layer: torch.nn.Module, x: torch.Tensor, **options: int) -> Callable[[], None]:
    def task() -> None:
        layer.zero_grad()
        x.grad = None
        layer(x, **options).sum().backward()

    return task


def _layer_ratios(
    seconds: dict[tuple[str, int], float], settings: SpeedSettings
) -> dict[tuple[int, str], float]:
    ratios = {}
    for n in settings.lengths:
        whole = {kind: seconds[kind, n] for kind in ("hstu", "transformer")}
        cut = {
            kind: expected_cost(n, settings.alpha, lambda length, kind=kind: seconds[kind, length])
            for kind in whole
        }
        ratios[n, "transformer / hstu"] = whole["transformer"] / whole["hstu"]
        ratios[n, "transformer / hstu with SL"] = whole["transformer"] / cut["hstu"]
        ratios[n, "transformer with SL / hstu with SL"] = cut["transformer"] / cut["hstu"]
    return ratios


def generative(settings: SpeedSettings) -> dict[str, list[float]]:
    """Training on n targets by n prefixes over training on them by one causal pass."""
    torch.manual_seed(0)
    n = settings.generative_length
    model = HSTU(HSTUConfig(N_ITEMS, n, 50, 2, 1, 50, 50, dropout=0.0))
    ids = torch.randint(1, N_ITEMS + 1, (USERS, n + 1))
    times = torch.randint(0, 10**5, (USERS, n + 1)).cumsum(1)
    whole = Batch(ids[:, :-1], times[:, :-1], ids[:, 1:], times[:, 1:], torch.full((USERS,), n))
    # Prefix i of a user keeps slots 0..i and predicts from slot i alone.
    keep = torch.ones(n, n, dtype=torch.long).tril()
    prefixes = Batch(
        *((x.unsqueeze(1) * keep).flatten(0, 1) for x in (whole.ids, whole.timestamps)),
        whole.target_ids.reshape(-1, 1),
        (whole.target_timestamps.unsqueeze(1) * keep).flatten(0, 1),
        torch.arange(1, n + 1).repeat(USERS),
    )

    def impression_level() -> None:
        states, items = model(prefixes.ids, prefixes.timestamps, prefixes.target_timestamps)
        last = states[torch.arange(len(states)), prefixes.lengths - 1]
        _learn(last, prefixes.target_ids.flatten(), items)

    def one_pass() -> None:
        states, items = model(whole.ids, whole.timestamps, whole.target_timestamps)
        _learn(states.flatten(0, 1), whole.target_ids.flatten(), items)

    def _learn(states, targets, items) -> None:
        model.zero_grad()
        sampled_softmax(states, targets - 1, items, 128).backward()

    taken = alternate({"prefixes": impression_level, "pass": one_pass}, settings.repeats)
    return {
        clock: [seconds["prefixes"] / seconds["pass"] for seconds in repeats]
        for clock, repeats in taken.items()
    }


@torch.no_grad()
def candidates(settings: SpeedSettings) -> dict[str, list[float]]:
    """Scoring m candidates by m passes over scoring them by M-FALCON."""
    torch.manual_seed(0)
    events = settings.history_tokens // 2
    model = GRRanker(GRRankerConfig(N_ITEMS, 5, events, 32, 2, 1, 32, 32)).eval()
    history = History(
        torch.randint(1, N_ITEMS + 1, (events,)),
        torch.randint(1, 6, (events,)),
        torch.randint(0, 10**5, (events,)).cumsum(0),
        10**9,
    )
    wanted = torch.randperm(N_ITEMS)[: settings.candidates] + 1
    tasks = {
        "single": lambda: score_one_by_one(model, history, wanted),
        "m-falcon": lambda: m_falcon(model, history, wanted, settings.microbatch),
    }
    taken = alternate(tasks, settings.repeats)
    return {
        clock: [seconds["single"] / seconds["m-falcon"] for seconds in repeats]
        for clock, repeats in taken.items()
    }


def score_one_by_one(model: GRRanker, history: History, candidates: torch.Tensor) -> torch.Tensor:
    """Logit of each candidate from a full pass over history and candidate."""
    unknown = torch.zeros(1, dtype=torch.long)
    actions = torch.cat([history.actions, unknown]).unsqueeze(0)
    request = unknown + history.request_time
    times = torch.cat([history.timestamps, request]).unsqueeze(0)
    return torch.stack(
        [
            model(torch.cat([history.ids, c.view(1)]).unsqueeze(0), actions, times)[0, -1]
            for c in candidates
        ]
    )
