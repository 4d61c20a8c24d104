"""Local steps in heterogeneous federated learning, seen through the features that a network learns.

Yajie Bao, Michael Crawshaw, Mingrui Liu: "Provable Benefits of Local Steps in Heterogeneous
Federated Learning for Neural Networks: A Feature Learning Perspective", ICML 2024, PMLR
235:2857-2902.

The idea: one client's feature can be another client's noise, with the opposite sign. A global
update in every step sums these signs and may cancel a feature for good; with local steps each
client first amplifies its own feature, faster than the others subtract it, and averaging keeps it.

Basis: the experiments on images follow the authors' published code; the synthetic data model is
constructed for this library from the abstract and from how that code builds feature noise, so the
constants and the layout of the patches in the paper may differ.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submod_attrs={
        "data_model": ["FeatureNoiseModel", "cubic_alignment"],
        "features": ["filter_concentration", "learned", "missed"],
        "federated": [
            "ClientStack",
            "History",
            "average_states",
            "client_batches",
            "federated_sgd",
            "local_gd",
            "parallel_sgd",
        ],
        "models": ["resnet18", "small_cnn"],
        "noise": ["add_feature_noise"],
        "partition": ["feature_heterogeneity"],
        "patch_cnn": ["PatchCNN"],
        "theory": ["critical_local_steps", "critical_tau", "net_growth"],
    },
)
