"""Kernel matrices and histograms of a data set."""

from pathlib import Path

from retable.common.data.arrays import load_arrays, save_arrays
from retable.gemax.config import KernelSettings
from retable.gemax.data import GraphSet
from retable.gemax.kernels import graphlet_kernel, histograms, wl_kernel


def kernels(graphs: Path, matrices: Path, *, settings: KernelSettings) -> None:
    """Write `wl` and `graphlet`, (G, G) each, as asked for, and `histogram` (G, f + 2)."""
    data = GraphSet.of_arrays(load_arrays(graphs))
    found = {"histogram": histograms(data)}
    if "wl" in settings.methods:
        found["wl"] = wl_kernel(data, settings.iterations)
    if "graphlet" in settings.methods:
        found["graphlet"] = graphlet_kernel(
            data, settings.graphlet_sizes, settings.graphlet_samples
        )
    save_arrays(matrices, found)
