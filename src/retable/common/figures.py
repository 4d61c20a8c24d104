"""One style for all figures; files whose bytes depend on the figure alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by readers with any colour vision, and in print.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")
SEQUENTIAL = "cividis"
DIVERGING = "RdBu_r"

_STYLE: dict[str, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "retable",
    "image.cmap": SEQUENTIAL,
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw within the shared style: `with figure_style(): fig, axes = plt.subplots(...)`."""
    import matplotlib as mpl
    from cycler import cycler

    mpl.use("Agg")
    with mpl.rc_context(_STYLE | {"axes.prop_cycle": cycler(color=COLORS)}):
        yield


def label_panels(axes: "list[Axes]") -> None:
    """Write (a), (b), ... in front of the panels' titles."""
    for letter, ax in zip("abcdefghijklmnop", axes, strict=False):
        ax.set_title(f"({letter}) {ax.get_title()}")


def save_figure(figure: "Figure", png: Path, pdf: Path) -> None:
    """Write the figure as PNG and as vector PDF, without the time of writing, and close it."""
    import matplotlib.pyplot as plt

    figure.savefig(png, format="png", metadata={"Software": None})
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None, "Producer": None})
    plt.close(figure)
