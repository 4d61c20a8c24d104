"""Figures: bytes depend on what is drawn, not on the process or the time."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from retable.common.figures import COLORS, LINES, MARKERS, figure_style, label_panels, save_figure

DRAW = """
import sys
from pathlib import Path
import numpy as np
from retable.common.figures import figure_style, label_panels, save_figure

with figure_style():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(6, 3))
    axes[0].plot(np.arange(5), np.arange(5) ** 2, label="$x^2$, method α")
    axes[0].set(title="first", xlabel="step", ylabel="loss (nats)")
    axes[0].legend()
    axes[1].imshow(np.arange(12.0).reshape(3, 4))
    axes[1].set_title("second")
    label_panels(list(axes))
    assert [ax.get_title() for ax in axes] == ["(a) first", "(b) second"]
    save_figure(figure, Path(sys.argv[1]) / "f.png", Path(sys.argv[1]) / "f.pdf")
    assert not plt.get_fignums()
"""


def test_bytes_are_equal_across_processes_and_times(tmp_path: Path) -> None:
    found = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-c", DRAW, folder],
            check=True,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": str(len(found) + 1)},
        )
        found.append([(folder / f"f.{ending}").read_bytes() for ending in ("png", "pdf")])
        time.sleep(1.1)
    assert found[0] == found[1]
    png, pdf = found[0]
    assert png.startswith(b"\x89PNG")
    assert pdf.startswith(b"%PDF")
    assert b"CreationDate" not in pdf


def test_style_ends_with_its_block() -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    with figure_style():
        assert mpl.rcParams["axes.prop_cycle"].by_key()["color"] == list(COLORS)
        assert not mpl.rcParams["axes.spines.top"]
    after = dict(mpl.rcParams)
    # The backend stays: nothing here opens a window.
    names = [key for key in before if not key.startswith("backend")]
    assert [key for key in names if before[key] != after[key]] == []


def test_marks_tell_apart() -> None:
    for marks in (COLORS, MARKERS, LINES):
        assert len(set(marks)) == len(marks)


def test_panels_keep_their_titles(tmp_path: Path) -> None:
    with figure_style():
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots()
        label_panels([ax])
        assert ax.get_title().startswith("(a)")
        with pytest.raises(FileNotFoundError):
            save_figure(figure, tmp_path / "none" / "a.png", tmp_path / "a.pdf")
        plt.close(figure)
