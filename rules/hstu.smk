# Actions Speak Louder than Words: HSTU, from interactions to table, figure and claims.
EXTRA_TABLES["hstu"] = ["speed"]


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
    threads: all_cores
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
