# Local steps in heterogeneous federated learning: the data model, then CIFAR-10.
from retable.common.seeds import group_seeds


def fedlocal_files(step, folder, ending):
    """The function of the wildcards that names the files of all jobs of a step."""

    def files(wildcards):
        config = project.paper("fedlocal", wildcards.scale)
        return [
            f"results/{wildcards.scale}/fedlocal/{folder}/{name}/{methods}/seeds{seeds}.{ending}"
            for name, runs in getattr(config, step).items()
            for methods in runs.method_groups()
            for seeds in group_seeds(runs.seeds or config.seeds, runs.seeds_per_job)
        ]

    return files


rule fedlocal_synthetic:
    output:
        history="results/{scale}/fedlocal/synthetic/{setting}/{methods}/seeds{seeds}.npz",
    log:
        "results/{scale}/fedlocal/logs/synthetic_{setting}_{methods}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/fedlocal/benchmarks/synthetic_{setting}_{methods}_seeds{seeds}.tsv"
    wildcard_constraints:
        setting="[a-z0-9]+",
        methods="[a-z0-9_+]+",
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("fedlocal", "synthetic"),
    params:
        **step("fedlocal", "synthetic", part="{setting}"),
    script:
        STEP


rule fedlocal_prepare:
    input:
        cifar=dataset_file("cifar10"),
    output:
        subset="results/{scale}/fedlocal/images/{experiment}/seeds{seeds}.npz",
    log:
        "results/{scale}/fedlocal/logs/prepare_{experiment}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/fedlocal/benchmarks/prepare_{experiment}_seeds{seeds}.tsv"
    wildcard_constraints:
        experiment="[a-z0-9_.]+",
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("fedlocal", "prepare"),
    params:
        **step("fedlocal", "prepare", part="{experiment}"),
    script:
        STEP


rule fedlocal_train:
    input:
        subset="results/{scale}/fedlocal/images/{experiment}/seeds{seeds}.npz",
    output:
        model="results/{scale}/fedlocal/images/{experiment}/{methods}/seeds{seeds}.safetensors",
        history="results/{scale}/fedlocal/images/{experiment}/{methods}/seeds{seeds}.npz",
    log:
        "results/{scale}/fedlocal/logs/train_{experiment}_{methods}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/fedlocal/benchmarks/train_{experiment}_{methods}_seeds{seeds}.tsv"
    wildcard_constraints:
        experiment="[a-z0-9_.]+",
        methods="[a-z0-9_+]+",
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("fedlocal", "train"),
    params:
        **step("fedlocal", "train", part="{experiment}"),
    script:
        STEP


rule fedlocal_evaluate:
    input:
        synthetic=fedlocal_files("synthetic", "synthetic", "npz"),
        histories=fedlocal_files("train", "images", "npz"),
        models=fedlocal_files("train", "images", "safetensors"),
    output:
        rows="results/{scale}/fedlocal/rows.csv",
        measures="results/{scale}/fedlocal/measures.csv",
        filters="results/{scale}/fedlocal/filters.npz",
    log:
        "results/{scale}/fedlocal/logs/evaluate.log",
    benchmark:
        "results/{scale}/fedlocal/benchmarks/evaluate.tsv"
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("fedlocal", "evaluate"),
    params:
        **step("fedlocal", "evaluate"),
    script:
        STEP


rule fedlocal_table:
    input:
        rows="results/{scale}/fedlocal/rows.csv",
        seed_file="seeds/fedlocal.yaml",
    output:
        table="results/{scale}/table_fedlocal.csv",
    log:
        "results/{scale}/fedlocal/logs/table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("fedlocal", "table"),
    script:
        STEP


rule fedlocal_figure:
    input:
        rows="results/{scale}/fedlocal/rows.csv",
        filters="results/{scale}/fedlocal/filters.npz",
    output:
        png="results/{scale}/figure_fedlocal.png",
        pdf="results/{scale}/figure_fedlocal.pdf",
    log:
        "results/{scale}/fedlocal/logs/figure.log",
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("fedlocal", "figure"),
    script:
        STEP
