"""The one real graph."""

from pathlib import Path

from retable.deepwalk.graphs import karate_club, save_graph


def prepare(graph: Path) -> None:
    """Write Zachary's karate club."""
    save_graph(graph, karate_club())
