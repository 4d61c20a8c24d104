# What the rules of the robust Markov games read.
ROBUSTMG_EXPERIMENTS = (
    "equivalence",
    "planning",
    "robustness",
    "hardness",
    "scaling",
    "readings",
    "shortcut",
)


def robustmg_rows(wildcards):
    """The rows of every experiment and seed."""
    return [
        f"results/{wildcards.scale}/robustmg/{experiment}/seeds{seeds}.csv"
        for experiment in ROBUSTMG_EXPERIMENTS
        for seeds in project.seed_groups("robustmg", wildcards.scale, "run", experiment)
    ]
