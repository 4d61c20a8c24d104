# Convergence Guarantees for the DeepWalk Embedding on Block Models. An experiment is a step of its
# own; its graphs and their seeds are in `datasets` of the configuration.
EXTRA_TABLES["deepwalk"] = ["speed"]


rule deepwalk_growth:
    output:
        rows="results/{scale}/deepwalk/growth/{dataset}_seeds{seeds}.csv",
    log:
        "results/{scale}/deepwalk/logs/growth_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/deepwalk/benchmarks/growth_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("deepwalk", "growth"),
    params:
        **step("deepwalk", "growth"),
    script:
        STEP


rule deepwalk_phase:
    output:
        rows="results/{scale}/deepwalk/phase/{dataset}_seeds{seeds}.csv",
    log:
        "results/{scale}/deepwalk/logs/phase_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/deepwalk/benchmarks/phase_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("deepwalk", "phase"),
    params:
        **step("deepwalk", "phase"),
    script:
        STEP


rule deepwalk_sparse:
    output:
        rows="results/{scale}/deepwalk/sparse/{dataset}_seeds{seeds}.csv",
    log:
        "results/{scale}/deepwalk/logs/sparse_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/deepwalk/benchmarks/sparse_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("deepwalk", "sparse"),
    params:
        **step("deepwalk", "sparse", part="{dataset}"),
    script:
        STEP


rule deepwalk_dynamics:
    output:
        rows="results/{scale}/deepwalk/dynamics/{dataset}_seeds{seeds}.csv",
    log:
        "results/{scale}/deepwalk/logs/dynamics_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/deepwalk/benchmarks/dynamics_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("deepwalk", "dynamics"),
    params:
        **step("deepwalk", "dynamics"),
    script:
        STEP


rule deepwalk_starts:
    output:
        rows="results/{scale}/deepwalk/starts/{dataset}_seeds{seeds}.csv",
    log:
        "results/{scale}/deepwalk/logs/starts_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/deepwalk/benchmarks/starts_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("deepwalk", "starts"),
    params:
        **step("deepwalk", "starts"),
    script:
        STEP


rule deepwalk_walks:
    output:
        rows="results/{scale}/deepwalk/walks/{dataset}_seeds{seeds}.csv",
    log:
        "results/{scale}/deepwalk/logs/walks_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/deepwalk/benchmarks/walks_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("deepwalk", "walks"),
    params:
        **step("deepwalk", "walks"),
    script:
        STEP


rule deepwalk_dims:
    output:
        rows="results/{scale}/deepwalk/dims/{dataset}_seeds{seeds}.csv",
    log:
        "results/{scale}/deepwalk/logs/dims_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/deepwalk/benchmarks/dims_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("deepwalk", "dims"),
    params:
        **step("deepwalk", "dims"),
    script:
        STEP


rule deepwalk_peers:
    output:
        rows="results/{scale}/deepwalk/peers/{dataset}_seeds{seeds}.csv",
    log:
        "results/{scale}/deepwalk/logs/peers_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/deepwalk/benchmarks/peers_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("deepwalk", "peers"),
    params:
        **step("deepwalk", "peers"),
    script:
        STEP


rule deepwalk_prepare:
    output:
        graph="results/{scale}/deepwalk/karate.npz",
    log:
        "results/{scale}/deepwalk/logs/prepare.log",
    conda:
        "../envs/numpy.yaml"
    threads: 1
    params:
        **step("deepwalk", "prepare"),
    script:
        STEP


rule deepwalk_real:
    input:
        graph="results/{scale}/deepwalk/karate.npz",
    output:
        rows="results/{scale}/deepwalk/real/karate.csv",
    log:
        "results/{scale}/deepwalk/logs/real.log",
    benchmark:
        "results/{scale}/deepwalk/benchmarks/real.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("deepwalk", "real"),
    params:
        **step("deepwalk", "real"),
    script:
        STEP


rule deepwalk_scaling:
    output:
        rows="results/{scale}/deepwalk/scaling/{dataset}_seeds{seeds}.csv",
    log:
        "results/{scale}/deepwalk/logs/scaling_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/deepwalk/benchmarks/scaling_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: all_cores
    resources:
        **compute("deepwalk", "scaling"),
    params:
        **step("deepwalk", "scaling", threads=1),
    script:
        STEP


rule deepwalk_evaluate:
    input:
        rows=deepwalk_rows,
        speed=deepwalk_speed_rows,
    output:
        metrics="results/{scale}/deepwalk/metrics.csv",
        measures="results/{scale}/deepwalk/measures.csv",
    log:
        "results/{scale}/deepwalk/logs/evaluate.log",
    conda:
        "../envs/numpy.yaml"
    threads: 1
    params:
        **step("deepwalk", "evaluate"),
    script:
        STEP


rule deepwalk_table:
    input:
        metrics="results/{scale}/deepwalk/metrics.csv",
        seed_file="seeds/deepwalk.yaml",
    output:
        table="results/{scale}/table_deepwalk.csv",
    log:
        "results/{scale}/deepwalk/logs/table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("deepwalk", "table"),
    script:
        STEP


rule deepwalk_speed:
    input:
        rows=deepwalk_speed_rows,
    output:
        table="results/{scale}/table_deepwalk_speed.csv",
    log:
        "results/{scale}/deepwalk/logs/speed.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("deepwalk", "table:speed"),
    script:
        STEP


rule deepwalk_figure:
    input:
        metrics="results/{scale}/deepwalk/metrics.csv",
    output:
        png="results/{scale}/figure_deepwalk.png",
        pdf="results/{scale}/figure_deepwalk.pdf",
    log:
        "results/{scale}/deepwalk/logs/figure.log",
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("deepwalk", "figure"),
    script:
        STEP
