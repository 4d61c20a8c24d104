# Input functions of hstu.smk.
from retable.common.seeds import group_seeds

# Where the events of a data set come from.
HSTU_SOURCES = {
    "ml-100k": "movielens-100k",
    "ml-1m": "movielens-1m",
    "ml-20m": "movielens-20m",
    "amzn-books": "amazon-books",
}


def hstu_groups(scale, experiment, per_job):
    """The seeds wildcards of an experiment's jobs."""
    config = project.paper("hstu", scale)
    return group_seeds(config.experiment_seeds.get(experiment, config.seeds), per_job)


def hstu_train_files(suffix):
    """Files of the training jobs on one data set, or on all of them."""

    def files(wildcards):
        config = project.paper("hstu", wildcards.scale)
        return [
            f"results/{wildcards.scale}/hstu/{experiment}/{name}/{job}/seeds{seeds}{suffix}"
            for experiment, by_dataset in config.train.items()
            for name, jobs in by_dataset.items()
            if name == getattr(wildcards, "dataset", name)
            for job, settings in jobs.items()
            for seeds in hstu_groups(
                wildcards.scale, experiment, settings.seeds_per_job
            )
        ]

    return files


def hstu_ranking_files(suffix):
    """Files of the ranking jobs on one data set."""

    def files(wildcards):
        settings = project.paper("hstu", wildcards.scale).ranking.get(wildcards.dataset)
        if settings is None:
            return []
        return [
            f"results/{wildcards.scale}/hstu/ranking/{wildcards.dataset}/seeds{seeds}{suffix}"
            for seeds in hstu_groups(wildcards.scale, "ranking", settings.seeds_per_job)
        ]

    return files


def hstu_stream_files(suffix):
    """Files of the jobs on synthetic streams."""

    def files(wildcards):
        config = project.paper("hstu", wildcards.scale)
        return [
            f"results/{wildcards.scale}/hstu/{experiment}/{job}/seeds{seeds}{suffix}"
            for experiment, jobs in config.stream.items()
            for job, settings in jobs.items()
            for seeds in hstu_groups(
                wildcards.scale, experiment, settings.seeds_per_job
            )
        ]

    return files


def hstu_evaluated(file):
    """One file of the evaluation of every data set."""

    def files(wildcards):
        return [
            f"results/{wildcards.scale}/hstu/evaluated/{dataset}/{file}"
            for dataset in project.paper("hstu", wildcards.scale).datasets
        ]

    return files
