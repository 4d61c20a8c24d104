# What the rules of neural collapse read.


def mlabnc_source(wildcards):
    """The images that a data set is made of."""
    config = project.paper("mlabnc", wildcards.scale)
    if wildcards.dataset not in config.prepare:
        raise InputError(
            f"config/mlabnc.yaml, {wildcards.scale}: prepare: no data set "
            f"'{wildcards.dataset}'; there are: {', '.join(config.prepare)}"
        )
    source = config.prepare[wildcards.dataset].source
    if source == "svhn":  # no other paper uses them
        return f"results/{wildcards.scale}/mlabnc/svhn/images.npz"
    return dataset_file(source)


def mlabnc_data(wildcards):
    """All draws of one data set."""
    return expand(
        "results/{scale}/mlabnc/{dataset}/data_s{seed}.npz",
        scale=wildcards.scale,
        dataset=wildcards.dataset,
        seed=project.paper("mlabnc", wildcards.scale).seeds,
    )


def mlabnc_runs(file):
    """A function of the wildcards: this file of every method and seed, of one data set or all."""

    def runs(wildcards):
        config = project.paper("mlabnc", wildcards.scale)
        return [
            f"results/{wildcards.scale}/mlabnc/{dataset}/{method}/{file.format(seed=seed)}"
            for dataset, methods in config.methods.items()
            if wildcards.get("dataset", dataset) == dataset
            for method in methods
            for seed in config.seeds
        ]

    return runs


def mlabnc_evaluations(wildcards):
    """The evaluations of all data sets."""
    return expand(
        "results/{scale}/mlabnc/{dataset}/evaluation.csv",
        scale=wildcards.scale,
        dataset=project.paper("mlabnc", wildcards.scale).methods,
    )


def mlabnc_timed(role):
    """A function of the wildcards: the first network of the method with this role."""

    def timed(wildcards):
        config = project.paper("mlabnc", wildcards.scale)
        method = getattr(config.measures, role)
        return f"results/{wildcards.scale}/mlabnc/mnist/{method}/s{config.seeds[0]}.safetensors"

    return timed
