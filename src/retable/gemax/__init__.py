"""GeMax: graph representations whose vertex distribution has maximal graph entropy.

Ziheng Sun, Xudong Wang, Chris Ding, Jicong Fan: "Learning Graph Representation via Graph Entropy
Maximization", ICML 2024, PMLR 235:47133-47158.

The idea: the distances between a graph's vertex vectors and its graph vector give a distribution
over the vertices; its graph entropy (Koerner) says how many nats name a vertex when only adjacent
vertices must be told apart. The entropy's definition minimises over the vertex-packing polytope,
which is NP-hard; the method keeps a free weight per vertex and ties it to the polytope through an
orthonormal representation that a graph neural network produces.

Basis: the authors' published code and derivations; the paper's tables could not be read.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submod_attrs={
        "classify": ["cross_validated_accuracy", "effective_rank", "kernel_accuracy"],
        "config": ["TrainConfig"],
        "data": ["GraphSet", "molecules_to_graphs", "pad", "read_tu"],
        "entropy": [
            "EntropyResult",
            "chromatic_entropy",
            "graph_entropy",
            "is_orthonormal_representation",
            "maximal_stable_sets",
            "nearest_representation",
            "orthonormal_lower_bound",
            "shannon_entropy",
        ],
        "evaluate": ["edge_auc", "semi_supervised_accuracy"],
        "losses": [
            "orthogonality_loss",
            "packing_entropy",
            "packing_loss",
            "vertex_distribution",
        ],
        "model": ["GIN", "GeMaxEncoder"],
        "train": ["FitResult", "embed", "fit"],
    },
)
