"""The step that measures orders, against direct calls."""

import pytest
import torch

from retable.adambias import (
    adam_trajectory,
    bilinear,
    global_error,
    log_cosh_batches,
    minibatch_flow,
    minibatch_trajectory,
    modified_flow,
)
from retable.adambias.config import ToyCase, ToyOrder
from retable.adambias.steps.order import toy
from retable.common.metrics import read_metrics

CASES = {
    "adam_b0.6_r0.7_e0.2_outside": {
        **{"problem": "bilinear", "beta": 0.6, "rho": 0.7, "eps": 0.2, "eps_placement": "outside"},
    },
    "rmsprop_b0_r0.7_e0.2": {
        **{"problem": "bilinear", "beta": 0.0, "rho": 0.7, "eps": 0.2, "bias_correction": False},
    },
    "adam_b0.6_r0.7_e0.2_minibatch": {
        **{"problem": "batches", "beta": 0.6, "rho": 0.7, "eps": 0.2},
    },
}


def _vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_errors_of_both_flows_at_every_step_size(tmp_path):
    cases = [ToyCase(**case, time=0.1, steps=(2, 4, 5)) for case in CASES.values()]
    toy(tmp_path / "rows.csv", settings=ToyOrder(start=(2.8, 3.5), cases=cases))
    rows = read_metrics(tmp_path / "rows.csv").set_index(["method", "metric", "x"])["value"]
    assert len(rows) == 3 * 2 * 3
    batches = (log_cosh_batches(), [0, 1, 2, 3, 0], _vector(1.0, -2.0, 0.5))
    calls = {
        "adam_b0.6_r0.7_e0.2_outside": (
            adam_trajectory,
            modified_flow,
            (bilinear(), _vector(2.8, 3.5)),
        ),
        "rmsprop_b0_r0.7_e0.2": (
            minibatch_trajectory,
            minibatch_flow,
            ([bilinear()], [0] * 5, _vector(2.8, 3.5)),
        ),
        "adam_b0.6_r0.7_e0.2_minibatch": (minibatch_trajectory, minibatch_flow, batches),
    }
    for method, (iterates, flow, arguments) in calls.items():
        options = {key: value for key, value in CASES[method].items() if key != "problem"}
        for steps in (2, 4, 5):
            options |= {"h": 0.1 / steps, "steps": steps}
            path = iterates(*arguments, **options)
            for order, metric in ((1, "error_plain"), (2, "error_corrected")):
                expected = global_error(path, flow(*arguments, order=order, substeps=1, **options))
                assert rows[method, metric, 0.1 / steps] == pytest.approx(expected, rel=1e-6)


def test_one_substep_follows_the_flow_closely_enough():
    # The distance from the iterates is what is measured: the integration must not show in it.
    case = {"problem": "bilinear", "beta": 0.9, "rho": 0.5, "eps": 0.01}
    options = {"h": 0.01, "steps": 50, **{key: case[key] for key in ("beta", "rho", "eps")}}
    start = _vector(2.8, 3.5)
    path = adam_trajectory(bilinear(), start, **options)
    errors = [
        global_error(path, modified_flow(bilinear(), start, substeps=count, **options))
        for count in (1, 4)
    ]
    assert ToyCase(**case, time=0.5, steps=(50, 100, 200)).substeps == 1
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)
