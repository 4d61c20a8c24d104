"""On the Implicit Bias of Adam: modified ODEs of Adam and RMSProp, and what they penalise.

Cattaneo, Klusowski, Shigida: "On the Implicit Bias of Adam", ICML 2024, PMLR 235:5862-5906,
arXiv 2309.00079.

The idea: Adam with step size h stays within O(h²) of an ODE whose O(h) term is a multiple of the
gradient of the perturbed one-norm of the loss gradient; the sign of the multiple depends on the
momentum parameters (β, ρ) and on whether √ε is small or large against the gradient.

Basis: algorithms, models and training settings from the official code; the ODEs derived anew and
checked numerically (`retable.adambias.flow`).
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submod_attrs={
        "optim": ["Adam", "rmsprop"],
        "norms": ["perturbed_one_norm", "softened_one_norm"],
        "flow": [
            "adam_trajectory",
            "bias_coefficient",
            "gd_modified_flow",
            "gd_trajectory",
            "memory_coefficient",
            "minibatch_flow",
            "minibatch_rhs",
            "minibatch_trajectory",
            "modified_flow",
            "modified_rhs",
        ],
        "analysis": [
            "DefectFit",
            "defect_coefficient",
            "global_error",
            "observed_order",
            "value_at_loss",
        ],
        "problems": ["bilinear", "flat_classifier", "log_cosh_batches"],
        "models": ["cnn", "mlp", "resnet50", "resnet101", "simple_vit", "small_cnn"],
    },
)
