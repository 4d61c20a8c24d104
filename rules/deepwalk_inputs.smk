# The files of the DeepWalk paper's experiments, by the configuration's `datasets`.
DEEPWALK_EXPERIMENTS = (
    "growth",
    "phase",
    "sparse",
    "dynamics",
    "starts",
    "walks",
    "dims",
    "peers",
)


def deepwalk_files(scale, experiment):
    """The rows of one experiment: one file for each graph and group of seeds."""
    return [
        f"results/{scale}/deepwalk/{experiment}/{dataset}_seeds{seeds}.csv"
        for dataset, seeds in project.paper("deepwalk", scale).jobs(experiment)
    ]


def deepwalk_rows(wildcards):
    """The rows of all experiments that measure no time."""
    files = [f"results/{wildcards.scale}/deepwalk/real/karate.csv"]
    for experiment in DEEPWALK_EXPERIMENTS:
        files += deepwalk_files(wildcards.scale, experiment)
    return files


def deepwalk_speed_rows(wildcards):
    """The rows that hold ratios of times."""
    return deepwalk_files(wildcards.scale, "scaling")
