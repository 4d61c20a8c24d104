"""EvoRank: protein representations from the ranking that an alignment induces.

Chengyue Gong, Adam Klivans, James Madigan Loy, Tianlong Chen, Qiang Liu, Daniel Jesus Diaz:
"Evolution-Inspired Loss Functions for Protein Representation Learning", ICML 2024, PMLR 235.

The idea: a network that names the masked wild type learns what nature has, not what a mutation
does. EvoRank keeps the masked microenvironment and asks instead how two amino acids compare in the
distribution that a multiple sequence alignment induces at the position. The alignment is needed in
training alone; one structure then gives the scores of all 19 substitutions everywhere.

Basis: the loss is reconstructed from the abstract; the atom-level network follows the same group's
published code of Stability Oracle.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submod_attrs={
        "atoms": ["AtomStructure", "atom_environments", "read_atoms"],
        "baselines": ["blosum62_scores", "msa_site_scores"],
        "benchmarks": [
            "GymAssay",
            "StabilityChange",
            "read_gb1",
            "read_proteingym",
            "read_proteingym_archive",
            "read_stability",
        ],
        "config": ["AtomConfig", "EncoderConfig"],
        "dms": [
            "ASSAYS",
            "EXTENDED_ASSAYS",
            "Assay",
            "align_to_structure",
            "load_assay",
            "spearman",
        ],
        "losses": [
            "evorank_loss",
            "evorank_targets",
            "pair_loss",
            "soft_label_loss",
            "wildtype_loss",
        ],
        "model": [
            "AtomGraphTransformer",
            "EnvironmentEncoder",
            "MutationHead",
            "MutationScorer",
            "ResidueHead",
        ],
        "msa": ["build_msa", "read_alignment", "sequence_weights", "site_distribution"],
        "structure": [
            "Backbone",
            "Environments",
            "load_structure",
            "microenvironments",
            "read_structure",
        ],
    },
)
