# Convergence Guarantees for the DeepWalk Embedding on Block Models. An experiment is a step of its
# own; its graphs and their seeds are in `datasets` of the configuration.
EXTRA_TABLES["deepwalk"] = ["speed"]

# Each sparse graph has its own windows.
DEEPWALK_PARTS = {"sparse": "{dataset}"}


for deepwalk_experiment in DEEPWALK_EXPERIMENTS:

    rule:
        name:
            f"deepwalk_{deepwalk_experiment}"
        output:
            rows=f"results/{{scale}}/deepwalk/{deepwalk_experiment}/{{dataset}}_seeds{{seeds}}.csv",
        log:
            f"results/{{scale}}/deepwalk/logs/{deepwalk_experiment}_{{dataset}}_seeds{{seeds}}.log",
        benchmark:
            f"results/{{scale}}/deepwalk/benchmarks/{deepwalk_experiment}_{{dataset}}_seeds{{seeds}}.tsv"
        conda:
            "../envs/numpy.yaml"
        threads: 1
        resources:
            **compute("deepwalk", deepwalk_experiment),
        params:
            **step(
                "deepwalk",
                deepwalk_experiment,
                part=DEEPWALK_PARTS.get(deepwalk_experiment, ""),
            ),
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
    threads: ALL_CORES
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
