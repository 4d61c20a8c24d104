def adambias_images(wildcards):
    """The shared data set that a data set's images come from."""
    prepared = project.paper("adambias", wildcards.scale).prepare[wildcards.dataset]
    if prepared.source in ("cifar100", "eurosat"):  # no other paper uses them
        return f"results/{wildcards.scale}/adambias/sources/{prepared.source}.npz"
    return dataset_file(prepared.source)


def adambias_fits(wildcards):
    """Orders and defects: the toy problems, and the network where the scale has it."""
    config = project.paper("adambias", wildcards.scale)
    files = []
    for step in ("order", "defect"):
        place = f"results/{wildcards.scale}/adambias/{step}"
        files.append(f"{place}/toy.csv")
        if getattr(config, step).network is not None:
            groups = project.seed_groups("adambias", wildcards.scale, step, "network")
            files += [f"{place}/network_seeds{seeds}.csv" for seeds in groups]
    return files


def adambias_histories(wildcards):
    """The trainings of all data sets and methods."""
    config = project.paper("adambias", wildcards.scale)
    return [
        f"results/{wildcards.scale}/adambias/{dataset}/{config.method(*setting)}"
        f"/seeds{seeds}.csv"
        for dataset, settings in config.methods.items()
        for setting in settings
        for seeds in project.seed_groups("adambias", wildcards.scale, "train", dataset)
    ]


rule adambias_images:
    output:
        arrays="results/{scale}/adambias/sources/{source}.npz",
    log:
        "results/{scale}/adambias/logs/images_{source}.log",
    wildcard_constraints:
        source="cifar100|eurosat",
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        **compute("adambias", "images"),
    params:
        **step("adambias", "images"),
    script:
        STEP


rule adambias_prepare:
    input:
        images=adambias_images,
    output:
        data="results/{scale}/adambias/{dataset}/data_seeds{seeds}.npz",
    log:
        "results/{scale}/adambias/logs/prepare_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/adambias/benchmarks/prepare_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("adambias", "prepare"),
    params:
        **step("adambias", "prepare", part="{dataset}"),
    script:
        STEP


rule adambias_train:
    input:
        data="results/{scale}/adambias/{dataset}/data_seeds{seeds}.npz",
    output:
        history="results/{scale}/adambias/{dataset}/{method}/seeds{seeds}.csv",
    log:
        "results/{scale}/adambias/logs/train_{dataset}_{method}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/adambias/benchmarks/train_{dataset}_{method}_seeds{seeds}.tsv"
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("adambias", "train"),
    params:
        **step("adambias", "train", part="{dataset}"),
    script:
        STEP


rule adambias_order_toy:
    output:
        rows="results/{scale}/adambias/order/toy.csv",
    log:
        "results/{scale}/adambias/logs/order_toy.log",
    benchmark:
        "results/{scale}/adambias/benchmarks/order_toy.tsv"
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("adambias", "order"),
    params:
        **step("adambias", "order:toy", part="toy"),
    script:
        STEP


rule adambias_order_network:
    input:
        data="results/{scale}/adambias/mnist49/data_seeds{seeds}.npz",
    output:
        rows="results/{scale}/adambias/order/network_seeds{seeds}.csv",
    log:
        "results/{scale}/adambias/logs/order_network_seeds{seeds}.log",
    benchmark:
        "results/{scale}/adambias/benchmarks/order_network_seeds{seeds}.tsv"
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("adambias", "order"),
    params:
        **step("adambias", "order:network", part="network"),
    script:
        STEP


rule adambias_defect_toy:
    output:
        rows="results/{scale}/adambias/defect/toy.csv",
    log:
        "results/{scale}/adambias/logs/defect_toy.log",
    benchmark:
        "results/{scale}/adambias/benchmarks/defect_toy.tsv"
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("adambias", "defect"),
    params:
        **step("adambias", "defect:toy", part="toy"),
    script:
        STEP


rule adambias_defect_network:
    input:
        data="results/{scale}/adambias/mnist49/data_seeds{seeds}.npz",
    output:
        rows="results/{scale}/adambias/defect/network_seeds{seeds}.csv",
    log:
        "results/{scale}/adambias/logs/defect_network_seeds{seeds}.log",
    benchmark:
        "results/{scale}/adambias/benchmarks/defect_network_seeds{seeds}.tsv"
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("adambias", "defect"),
    params:
        **step("adambias", "defect:network", part="network"),
    script:
        STEP


rule adambias_paths:
    output:
        arrays="results/{scale}/adambias/paths.npz",
    log:
        "results/{scale}/adambias/logs/paths.log",
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("adambias", "paths"),
    params:
        **step("adambias", "paths"),
    script:
        STEP


rule adambias_evaluate:
    input:
        fits=adambias_fits,
        histories=adambias_histories,
    output:
        rows="results/{scale}/adambias/rows.csv",
        measures="results/{scale}/adambias/measures.csv",
    log:
        "results/{scale}/adambias/logs/evaluate.log",
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("adambias", "evaluate"),
    params:
        **step("adambias", "evaluate"),
    script:
        STEP


rule adambias_table:
    input:
        rows="results/{scale}/adambias/rows.csv",
        seed_file="seeds/adambias.yaml",
    output:
        table="results/{scale}/table_adambias.csv",
    log:
        "results/{scale}/adambias/logs/table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("adambias", "table"),
    script:
        STEP


rule adambias_figure:
    input:
        rows="results/{scale}/adambias/rows.csv",
        paths="results/{scale}/adambias/paths.npz",
    output:
        png="results/{scale}/figure_adambias.png",
        pdf="results/{scale}/figure_adambias.pdf",
    log:
        "results/{scale}/adambias/logs/figure.log",
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("adambias", "figure"),
    script:
        STEP
