"""Neural collapse in multi-label learning with the pick-all-label loss.

Pengyu Li, Xiao Li, Yutong Wang, Qing Qu. "Neural Collapse in Multi-label Learning with
Pick-all-label Loss". ICML 2024, PMLR 235 (li24ai); arXiv 2310.15903.

The idea: when cross entropy is summed over all labels of a sample, the class means of the samples
with one label and the classifier still form a simplex equiangular tight frame, and the mean feature
of a set of labels is a scaled sum of the means of its labels, one scale for each set size.

Basis: code, derived. The constants of the experiments follow the authors' public code; the closed
form of the global optimum is derived and checked against free optimisation here; the decoders by
nearest prototype are this project's reading of the paper's idea.

Symbols, the same in every module: K classes, N samples, d feature dimensions; H (N x d) features,
W (K x d) classifier, b (K) bias, Y (N x K) multi-hot labels; S a label set, m = |S| its
multiplicity; mu_S the mean feature of the samples with label set S, mu_k = mu_{{k}}; G the mean of
the mu_k; P_K = I_K - 11^T/K.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submod_attrs={
        "data": [
            "MLabArrays",
            "compose",
            "compose_imbalanced",
            "split_sources",
            "svhn_label_sets",
        ],
        "decode": ["OneNearestLabelSet", "threshold_decode", "tune_threshold"],
        "etf": ["freeze_as_etf", "simplex_etf"],
        "evaluate": ["exact_match", "micro_f1", "multiplicity_f1", "set_iou", "soft_iou"],
        "losses": ["pick_all_label_loss"],
        "metrics": [
            "LabelSetMeans",
            "TagAverage",
            "group_angle_ratio",
            "label_set_means",
            "nc1",
            "nc2",
            "nc3",
            "nc_metrics",
            "single_label_means",
            "tag_average",
        ],
        "models": ["build", "convnet", "count_trainable", "resnet18", "resnet50", "vgg16", "vgg19"],
        "train": ["History", "TrainConfig", "fit"],
        "ufm": [
            "UFMOptimum",
            "UFMResult",
            "balanced_label_sets",
            "solve_ufm",
            "ufm_objective",
            "ufm_optimum",
        ],
    },
)
