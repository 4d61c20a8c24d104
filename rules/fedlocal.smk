# Local steps in heterogeneous federated learning: the data model, then CIFAR-10.


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
        synthetic=lambda wildcards: project.paper("fedlocal", wildcards.scale).files(
            "synthetic",
            f"results/{wildcards.scale}/fedlocal/synthetic/{{experiment}}/{{methods}}/seeds{{seeds}}.npz",
        ),
        histories=lambda wildcards: project.paper("fedlocal", wildcards.scale).files(
            "train",
            f"results/{wildcards.scale}/fedlocal/images/{{experiment}}/{{methods}}/seeds{{seeds}}.npz",
        ),
        models=lambda wildcards: project.paper("fedlocal", wildcards.scale).files(
            "train",
            f"results/{wildcards.scale}/fedlocal/images/{{experiment}}/{{methods}}/seeds{{seeds}}.safetensors",
        ),
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
