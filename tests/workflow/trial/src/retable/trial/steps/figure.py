"""The figure."""

from pathlib import Path

from retable.trial.config import FigureSettings

from retable.common.figures import figure_style, save_figure
from retable.common.metrics import read_metrics


def figure(rows: Path, png: Path, pdf: Path, *, settings: FigureSettings) -> None:
    """Draw one mark a method and seed."""
    import matplotlib.pyplot as plt

    frame = read_metrics(rows)
    with figure_style():
        drawn, ax = plt.subplots(figsize=(settings.width, 3))
        ax.plot(frame["method"], frame["value"], "o")
        ax.set_ylabel("accuracy")
        save_figure(drawn, png, pdf)
