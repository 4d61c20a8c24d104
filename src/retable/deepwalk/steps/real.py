"""A real graph with unequal degrees: an illustration, and a limit of the theory."""

from functools import partial
from pathlib import Path

from retable.common.metrics import write_metrics
from retable.deepwalk.config import RealSettings
from retable.deepwalk.cooccurrence import Cooccurrence
from retable.deepwalk.embedding import cluster
from retable.deepwalk.experiments import deepwalk, row
from retable.deepwalk.graphs import load_graph
from retable.deepwalk.metrics import accuracy
from retable.deepwalk.spectral import Kind, spectral_embedding


def real(graph: Path, rows: Path, *, settings: RealSettings) -> None:
    """Write the accuracy on the graph for each window, dimension and start (as the seed)."""
    place = graph.stem
    club = load_graph(graph)
    make = partial(row, "real", place)
    found = []
    for dim in settings.dims:
        for window in settings.windows:
            # So small a matrix is cheaper as it stands than as products.
            dense = Cooccurrence(club.adjacency, window).toarray()
            cooc = Cooccurrence.from_matrix(dense)
            for start in range(settings.n_starts):
                model = deepwalk(settings.descent, start, dim=dim).fit(cooc)
                method = f"deepwalk/k{dim}-w{window}"
                score = accuracy(model.labels(2), club.known)
                found.append(make(method, start, "accuracy", score))
                found.append(make(method, start, "converged", model.converged_))
    kinds: tuple[Kind, ...] = ("adjacency", "normalized", "regularized")
    for kind in kinds:
        labels = cluster(spectral_embedding(club.adjacency, kind), 2, seed=0)
        score = accuracy(labels, club.known)
        found.append(make(f"spectral/{kind}", None, "accuracy", score))
    write_metrics(found, rows)
