# Inputs of the rules on graph entropy maximisation that are too long to stand in them.


def gemax_files(scale, dataset, ending):
    """The files `ending` of all trained methods and seeds of one data set."""
    return expand(
        f"results/{scale}/gemax/{dataset}/{{methods}}/{ending}",
        methods=project.paper("gemax", scale).method_groups(dataset),
        seeds=project.seed_groups("gemax", scale, "train", dataset),
    )


def gemax_runs(ending):
    """An input function: `gemax_files` of the wildcards' scale and data set."""
    return lambda wildcards: gemax_files(wildcards.scale, wildcards.dataset, ending)


def gemax_all_seeds(scale):
    """One `seeds` wildcard for all seeds: for jobs that are not spread over seeds."""
    seeds = project.paper("gemax", scale).seeds
    return f"{seeds[0]}-{seeds[-1]}" if len(seeds) > 1 else str(seeds[0])


def gemax_rows(wildcards):
    """The rows of every step at one scale."""
    scale = wildcards.scale
    config = project.paper("gemax", scale)
    files = []
    for dataset in config.methods:
        files += gemax_files(scale, dataset, "history_seeds{seeds}.csv")
        files.append(
            f"results/{scale}/gemax/{dataset}/accuracy_seeds{gemax_all_seeds(scale)}.csv"
        )
    for step in ("semi", "edges"):
        for dataset in getattr(config, step):
            for seeds in project.seed_groups("gemax", scale, step, dataset):
                files.append(f"results/{scale}/gemax/{dataset}/{step}_seeds{seeds}.csv")
    for dataset in config.entropy:
        files.append(
            f"results/{scale}/gemax/{dataset}/entropy_seeds{gemax_all_seeds(scale)}.csv"
        )
    return files


def gemax_figure_input(name):
    """An input function: what the entropy step left of its first data set."""

    def file(wildcards):
        config = project.paper("gemax", wildcards.scale)
        dataset = next(iter(config.entropy))
        found = name.format(seeds=gemax_all_seeds(wildcards.scale))
        return f"results/{wildcards.scale}/gemax/{dataset}/{found}"

    return file


def gemax_timed(wildcards):
    """The graphs on which the objectives are timed."""
    dataset = project.paper("gemax", wildcards.scale).speed.dataset
    return f"results/{wildcards.scale}/gemax/{dataset}/graphs.npz"


def gemax_timed_methods(wildcards):
    """The methods that are timed, and how they are trained."""
    config = project.paper("gemax", wildcards.scale)
    dataset = config.speed.dataset
    return {
        "methods": [name for name in config.trained(dataset) if name != "untrained"],
        "train": config.train[dataset].model_dump(mode="json"),
    }
