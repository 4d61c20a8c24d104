from retable.common.seeds import group_seeds

EXTRA_TABLES["hstu"] = ["speed"]
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


def hstu_train_files(suffix, dataset=None):
    """Files of the training jobs on one data set, or on all of them."""

    def files(wildcards):
        config = project.paper("hstu", wildcards.scale)
        return [
            f"results/{wildcards.scale}/hstu/{experiment}/{name}/{job}/seeds{seeds}{suffix}"
            for experiment, by_dataset in config.train.items()
            for name, jobs in by_dataset.items()
            if name == (dataset or getattr(wildcards, "dataset", name))
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


rule hstu_prepare:
    input:
        interactions=lambda wildcards: dataset_file(HSTU_SOURCES[wildcards.dataset]),
    output:
        sequences="results/{scale}/hstu/{dataset}.npz",
    log:
        "results/{scale}/hstu/logs/prepare_{dataset}.log",
    wildcard_constraints:
        dataset="|".join(HSTU_SOURCES),
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("hstu", "prepare"),
    params:
        **step("hstu", "prepare", part="{dataset}"),
    script:
        STEP


rule hstu_train:
    input:
        sequences="results/{scale}/hstu/{dataset}.npz",
    output:
        model="results/{scale}/hstu/{experiment}/{dataset}/{job}/seeds{seeds}.safetensors",
        history="results/{scale}/hstu/{experiment}/{dataset}/{job}/seeds{seeds}.csv",
    log:
        "results/{scale}/hstu/logs/train_{experiment}_{dataset}_{job}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/hstu/benchmarks/train_{experiment}_{dataset}_{job}_seeds{seeds}.tsv"
    wildcard_constraints:
        experiment="public|sl",
        dataset="|".join(HSTU_SOURCES),
        job=r"[a-z0-9\-]+",
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("hstu", "train"),
    params:
        **step("hstu", "train", part="{experiment}.{dataset}.{job}"),
    script:
        STEP


rule hstu_stream:
    output:
        model="results/{scale}/hstu/{experiment}/{job}/seeds{seeds}.safetensors",
        ranks="results/{scale}/hstu/{experiment}/{job}/seeds{seeds}.npz",
        curve="results/{scale}/hstu/{experiment}/{job}/seeds{seeds}.csv",
    log:
        "results/{scale}/hstu/logs/stream_{experiment}_{job}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/hstu/benchmarks/stream_{experiment}_{job}_seeds{seeds}.tsv"
    wildcard_constraints:
        experiment="stream|scaling",
        job=r"[a-z0-9\-]+",
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("hstu", "stream"),
    params:
        **step("hstu", "stream", part="{experiment}.{job}"),
    script:
        STEP


rule hstu_ranking:
    input:
        sequences="results/{scale}/hstu/{dataset}.npz",
    output:
        model="results/{scale}/hstu/ranking/{dataset}/seeds{seeds}.safetensors",
        history="results/{scale}/hstu/ranking/{dataset}/seeds{seeds}.csv",
    log:
        "results/{scale}/hstu/logs/ranking_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/hstu/benchmarks/ranking_{dataset}_seeds{seeds}.tsv"
    wildcard_constraints:
        dataset="|".join(HSTU_SOURCES),
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("hstu", "ranking"),
    params:
        **step("hstu", "ranking", part="{dataset}"),
    script:
        STEP


rule hstu_evaluate:
    input:
        sequences="results/{scale}/hstu/{dataset}.npz",
        models=hstu_train_files(".safetensors"),
        rankers=hstu_ranking_files(".safetensors"),
    output:
        users="results/{scale}/hstu/evaluated/{dataset}/users.npz",
        rows="results/{scale}/hstu/evaluated/{dataset}/rows.csv",
        checks="results/{scale}/hstu/evaluated/{dataset}/checks.csv",
    log:
        "results/{scale}/hstu/logs/evaluate_{dataset}.log",
    benchmark:
        "results/{scale}/hstu/benchmarks/evaluate_{dataset}.tsv"
    wildcard_constraints:
        dataset="|".join(HSTU_SOURCES),
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("hstu", "evaluate"),
    params:
        **step("hstu", "evaluate"),
    script:
        STEP


rule hstu_speed:
    output:
        times="results/{scale}/hstu/times.csv",
    log:
        "results/{scale}/hstu/logs/speed.log",
    benchmark:
        "results/{scale}/hstu/benchmarks/speed.tsv"
    conda:
        "../envs/torch.yaml"
    threads: ALL_CORES
    resources:
        **compute("hstu", "speed"),
    params:
        **step("hstu", "speed", threads=1),
    script:
        STEP


rule hstu_measures:
    input:
        users=hstu_evaluated("users.npz"),
        rows=hstu_evaluated("rows.csv"),
        checks=hstu_evaluated("checks.csv"),
        histories=hstu_train_files(".csv"),
        ranks=hstu_stream_files(".npz"),
        curves=hstu_stream_files(".csv"),
        times="results/{scale}/hstu/times.csv",
    output:
        all_rows="results/{scale}/hstu/rows.csv",
        measures="results/{scale}/hstu/measures.csv",
    log:
        "results/{scale}/hstu/logs/measures.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("hstu", "measures"),
    script:
        STEP


rule hstu_table:
    input:
        all_rows="results/{scale}/hstu/rows.csv",
        seed_file="seeds/hstu.yaml",
    output:
        table="results/{scale}/table_hstu.csv",
    log:
        "results/{scale}/hstu/logs/table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("hstu", "table"),
    script:
        STEP


rule hstu_table_speed:
    input:
        times="results/{scale}/hstu/times.csv",
    output:
        table="results/{scale}/table_hstu_speed.csv",
    log:
        "results/{scale}/hstu/logs/table_speed.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("hstu", "table:speed"),
    script:
        STEP


rule hstu_figure:
    input:
        all_rows="results/{scale}/hstu/rows.csv",
    output:
        png="results/{scale}/figure_hstu.png",
        pdf="results/{scale}/figure_hstu.pdf",
    log:
        "results/{scale}/hstu/logs/figure.log",
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("hstu", "figure"),
    script:
        STEP


rule hstu_figure_speed:
    input:
        times="results/{scale}/hstu/times.csv",
    output:
        png="results/{scale}/figure_hstu_speed.png",
        pdf="results/{scale}/figure_hstu_speed.pdf",
    log:
        "results/{scale}/hstu/logs/figure_speed.log",
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("hstu", "figure:speed"),
    script:
        STEP
