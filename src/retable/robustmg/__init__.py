"""Roping in Uncertainty: Robustness and Regularization in Markov Games.

Jeremy McMahan, Giovanni Artiglio, Qiaomin Xie, ICML 2024, PMLR 235:35267-35295 (arXiv 2406.08847).

In one line: the worst case of an uncertain reward is a support function of the joint policy, so a
robust Markov game is a regularised Markov game, and where that penalty splits into one term per
player a linear program plans it.

Basis: derived. The statements were known, the proofs were not; every formula here was derived anew
and is checked against linear programs over the uncertainty sets.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submod_attrs={
        "arrays": ["separable"],
        "errors": ["NotDecomposableError", "SolverError"],
        "games": [
            "inspection_game",
            "matching_pennies",
            "random_markov_game",
            "random_matrix_game",
            "rock_paper_scissors",
        ],
        "hardness": [
            "bimatrix_to_robust",
            "bimatrix_to_state_radius_game",
            "bimatrix_to_transition_game",
            "robust_to_bimatrix",
        ],
        "markov": [
            "MarkovEquilibrium",
            "RobustMarkovGame",
            "evaluate",
            "nash_gap",
            "plan",
            "zero_sum_shortcut",
        ],
        "matrix": [
            "Equilibrium",
            "RobustMatrixGame",
            "enumerate_equilibria",
            "solve",
            "solve_bimatrix",
            "solve_zero_sum",
        ],
        "regularizers": [
            "EntropyRegularizer",
            "KLRegularizer",
            "LinearRegularizer",
            "NormRegularizer",
            "Regularizer",
            "ZeroRegularizer",
        ],
        "transitions": [
            "ChiSquareBall",
            "KLBall",
            "L1Ball",
            "LInfBall",
            "TVBall",
            "TransitionSet",
            "WassersteinBall",
        ],
        "uncertainty": [
            "AdditiveBall",
            "Box",
            "EntropySet",
            "EntrywiseBall",
            "KLSet",
            "OperatorBall",
            "Singleton",
            "UncertaintySet",
        ],
    },
)
