"""DeepWalk on block models: exact skip-gram embeddings of graphs in near-linear time.

Christopher Harker, Aditya Bhaskara. *Convergence Guarantees for the DeepWalk Embedding on Block
Models.* ICML 2024, PMLR 235. arXiv 2410.20248.

DeepWalk learns vectors whose softmax of inner products predicts which nodes meet in short random
walks. On a graph with two equal communities, gradient descent from a small random start first
behaves like power iteration on the centred co-occurrence matrix, whose leading direction is the
community indicator; so even a one-dimensional embedding finds the communities.

Basis: derived (the abstract, the introduction and the authors' earlier code, AISTATS 2023, fix the
objective and the co-occurrence counts; the dynamics, the fixed point and the near-linear softmax
sums are derived and checked here). The sign of a one-dimensional embedding separates communities
of equal size and nearly equal degrees; on graphs with very unequal degrees use two dimensions or
more.

Modules, in the order of the argument: `graphs` (block models), `walks` and `cooccurrence` (what
the walks count), `softmax` (the sums over all nodes), `embedding` (objective and algorithm),
`theory` (what is predicted), `metrics`; `spectral` and `peers` hold the methods to compare with.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submodules=["theory"],
    submod_attrs={
        "cooccurrence": ["Cooccurrence"],
        "descent": ["ConvergenceError"],
        "embedding": ["DeepWalk", "linear_dynamics", "loss_and_grad"],
        "graphs": [
            "Graph",
            "karate_club",
            "largest_component",
            "load_graph",
            "save_graph",
            "sbm",
            "sbm_const",
            "sbm_log",
        ],
        "metrics": ["accuracy", "alignment", "exact_recovery"],
        "peers": ["NegativeSampling", "word2vec"],
        "spectral": ["linear_embedding", "spectral_embedding"],
        "walks": ["cooccurrence_from_walks", "expected_cooccurrence", "random_walks"],
    },
)
