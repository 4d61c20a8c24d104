"""The figure: orders, coefficients, trajectories, norms and accuracies."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from retable.adambias.config import FigureSettings, parse_method
from retable.common.data.arrays import load_arrays
from retable.common.figures import COLORS, LINES, MARKERS, figure_style, label_panels, save_figure
from retable.common.metrics import read_metrics
from retable.common.tables import aggregate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLAIN, CORRECTED = COLORS[1], COLORS[0]
DATASETS = {"mnist14": "MNIST 14×14", "cifar16": "CIFAR-10 16×16"}


def figure(rows: Path, paths: Path, png: Path, pdf: Path, *, settings: FigureSettings) -> None:
    """Draw what `rows` and `paths` hold; panels without data say so."""
    import matplotlib.pyplot as plt

    frame = read_metrics(rows)
    arrays = load_arrays(paths)
    with figure_style():
        drawn, axes = plt.subplots(3, 3, figsize=(settings.width, settings.height))
        _orders(axes[0, 0], frame, ("bilinear", "batches"), "Toy problems")
        _orders(axes[0, 1], frame, ("mnist49",), "Network on MNIST 7×7")
        _coefficients(axes[0, 2], frame)
        for number, ax in enumerate(axes[1, :2]):
            _paths(ax, arrays, number)
        sweep = frame[(frame["experiment"] == "sweep") & frame["value"].notna()]
        table = aggregate(sweep) if len(sweep) else pd.DataFrame()
        _sweep(axes[1, 2], table, "one_norm", "mnist14", "rho")
        _sweep(axes[2, 0], table, "one_norm", "mnist14", "beta")
        _sweep(axes[2, 1], table, "one_norm", "cifar16", "beta")
        _accuracy(axes[2, 2], table)
        label_panels(list(axes.flat))
        save_figure(drawn, png, pdf)
