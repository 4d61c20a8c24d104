# Input functions of rules/performative.smk.


def performative_demand(wildcards):
    """The counts that a data set's prices need; bits and the one product need none."""
    if wildcards.dataset != "movielens":
        return []
    return [f"results/{wildcards.scale}/performative/counts.csv"]


def performative_runs(wildcards):
    """All methods' results on every data set."""
    return [
        f"results/{wildcards.scale}/performative/{dataset}/seeds{seeds}.csv"
        for dataset, seeds in project.paper("performative", wildcards.scale).run_jobs()
    ]


def performative_inner_errors(wildcards):
    """The errors of LearnModel in every dimension."""
    return [
        f"results/{wildcards.scale}/performative/inner_d{d}/seeds{seeds}.csv"
        for d, seeds in project.paper("performative", wildcards.scale).inner_jobs()
    ]
