# Performative prediction with bandit feedback: regret of learning through reparametrisation.


rule performative_counts:
    input:
        ratings=dataset_file("movielens-100k"),
    output:
        table="results/{scale}/performative/counts.csv",
    log:
        "results/{scale}/performative/logs/counts.log",
    benchmark:
        "results/{scale}/performative/benchmarks/counts.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("performative", "counts"),
    params:
        **step("performative", "counts"),
    script:
        STEP


rule performative_run:
    input:
        demand=performative_demand,
    output:
        rows="results/{scale}/performative/{dataset}/seeds{seeds}.csv",
    log:
        "results/{scale}/performative/logs/run_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/performative/benchmarks/run_{dataset}_seeds{seeds}.tsv"
    wildcard_constraints:
        dataset="bernoulli_d[0-9]+(_nkl[0-9]+)?|logit1|movielens",
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("performative", "run"),
    params:
        **step("performative", "run", part="{dataset}"),
    script:
        STEP


rule performative_inner:
    output:
        rows="results/{scale}/performative/inner_d{d}/seeds{seeds}.csv",
    log:
        "results/{scale}/performative/logs/inner_d{d}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/performative/benchmarks/inner_d{d}_seeds{seeds}.tsv"
    wildcard_constraints:
        d="[0-9]+",
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("performative", "inner"),
    params:
        **step("performative", "inner"),
    script:
        STEP


rule performative_toy:
    output:
        rows="results/{scale}/performative/toy.csv",
    log:
        "results/{scale}/performative/logs/toy.log",
    benchmark:
        "results/{scale}/performative/benchmarks/toy.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("performative", "toy"),
    params:
        **step("performative", "toy"),
    script:
        STEP


rule performative_evaluate:
    input:
        runs=performative_runs,
        inner=performative_inner_errors,
        toy="results/{scale}/performative/toy.csv",
        demand="results/{scale}/performative/counts.csv",
    output:
        rows="results/{scale}/performative/rows.csv",
        curves="results/{scale}/performative/curves.csv",
        measures="results/{scale}/performative/measures.csv",
    log:
        "results/{scale}/performative/logs/evaluate.log",
    benchmark:
        "results/{scale}/performative/benchmarks/evaluate.tsv"
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("performative", "evaluate"),
    params:
        **step("performative", "evaluate"),
    script:
        STEP


rule performative_table:
    input:
        rows="results/{scale}/performative/rows.csv",
        seed_file="seeds/performative.yaml",
    output:
        table="results/{scale}/table_performative.csv",
    log:
        "results/{scale}/performative/logs/table.log",
    benchmark:
        "results/{scale}/performative/benchmarks/table.tsv"
    conda:
        "../envs/tables.yaml"
    threads: 1
    resources:
        **compute("performative", "table"),
    params:
        **step("performative", "table"),
    script:
        STEP


rule performative_figure:
    input:
        rows="results/{scale}/performative/rows.csv",
        curves="results/{scale}/performative/curves.csv",
    output:
        png="results/{scale}/figure_performative.png",
        pdf="results/{scale}/figure_performative.pdf",
    log:
        "results/{scale}/performative/logs/figure.log",
    benchmark:
        "results/{scale}/performative/benchmarks/figure.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        **compute("performative", "figure"),
    params:
        **step("performative", "figure"),
    script:
        STEP
