"""GEAM: drug discovery with dynamic goal-aware fragments.

Seul Lee, Seanie Lee, Kenji Kawaguchi, Sung Ju Hwang: "Drug Discovery with Dynamic Goal-aware
Fragments", ICML 2024, PMLR 235.

The idea: a graph information bottleneck learns which BRICS fragments of a molecule carry its
property; the best ones are a vocabulary. Soft actor-critic attaches them to a growing molecule, a
genetic algorithm recombines the best molecules so far, and the bottleneck puts the good fragments
of their offspring into the vocabulary.

Basis: the text of the paper's earlier public version and the official code. Where the code departs
from the text, the docstrings say which of them is followed.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submod_attrs={
        "assembly": ["AssemblyEnv", "RandomAgent", "SACAgent", "attach"],
        "baselines": ["SmilesLSTM", "graph_ga", "random_library", "reinvent", "train_prior"],
        "config": ["FGIBConfig", "GenerationConfig", "SACConfig"],
        "docking": ["DockingProperty", "VinaEngine", "docking_target"],
        "fgib": ["FGIB", "bottleneck_kl", "score_fragments", "train_fgib"],
        "fragments": [
            "MolGraph",
            "brics_fragments",
            "collate",
            "fragment_molecule",
            "is_attachable",
        ],
        "generation": ["GenerationResult", "run_geam"],
        "metrics": [
            "auc_top_k",
            "fingerprints",
            "n_circles",
            "novel_hit_ratio",
            "novel_top_fraction",
            "novelty",
            "uniqueness",
        ],
        "modification": ["Population", "reproduce"],
        "oracles": [
            "MPO_TASKS",
            "BudgetExhausted",
            "CountingOracle",
            "docking_property",
            "mpo",
            "qed",
            "sa_score",
        ],
        "vocabulary": ["Vocabulary"],
    },
)
