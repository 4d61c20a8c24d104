"""Performative prediction with bandit feedback, learned through reparametrisation.

Yatong Chen, Wei Tang, Chien-Ju Ho, Yang Liu: "Performative Prediction with Bandit Feedback:
Learning through Reparameterization", ICML 2024, PMLR 235:7298-7324, arXiv 2305.01094.

A deployed model θ changes the data it meets, so its performative risk PR(θ) may be non-convex and
no gradient of it can be had. When the data follow p_φ with φ = φ(θ), the same risk as a function
PR†(φ) of the distribution's parameter is convex in many of these cases. The method descends on φ
with two-point estimates (`optimize`, Algorithm 1) and, for each φ that it wants to try, finds a
model that induces it by descending on the Kullback-Leibler divergence (`learn_model`,
Algorithm 2); both levels see nothing but samples of the models they deploy.

Basis: the authors' notebook was read (Appendix H); problem, procedure and bound follow published
summaries; step sizes and the larger families of problems are derived and checked numerically here.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submod_attrs={
        "baselines": ["direct", "direct_one_point", "known_map", "repeated_gradient"],
        "environments": [
            "BernoulliSquare",
            "Blind",
            "Differentiable",
            "Environment",
            "Known",
            "LogitPricing",
        ],
        "learn_model": ["Learned", "learn_model"],
        "log": ["Log"],
        "regret": ["growth_exponent", "regret"],
        "reparameterized": ["Result", "Schedule", "optimize"],
        "sets": ["Box", "CappedSimplex"],
        "toy": ["toy_direct", "toy_reparameterized"],
        "zeroth_order": ["one_point_gradient", "two_point_gradient", "unit_sphere"],
    },
)
