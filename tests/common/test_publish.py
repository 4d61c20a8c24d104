"""Copies of laptop results for visitors."""

import pytest

from retable.common.publish import publish


def test_results_replace_what_was_published(tmp_path):
    results, published = tmp_path / "results", tmp_path / "published"
    results.mkdir()
    published.mkdir()
    for name in ("table_a.csv", "table_a_speed.csv", "figure_a.png", "claims.csv", "costs.csv"):
        (results / name).write_text(name)
    (results / "figure_a.pdf").write_text("pdf")
    (published / "table_gone.csv").write_text("old")
    (published / "README.md").write_text("kept")
    publish(results, published)
    assert {path.name for path in published.iterdir()} == {
        *("table_a.csv", "table_a_speed.csv", "figure_a.png", "claims.csv", "README.md")
    }


def test_nothing_is_thrown_away_without_results(tmp_path):
    published = tmp_path / "published"
    published.mkdir()
    (published / "table_a.csv").write_text("old")
    with pytest.raises(FileNotFoundError, match="no tables to publish; run snakemake first"):
        publish(tmp_path / "results", published)
    assert (published / "table_a.csv").read_text() == "old"
