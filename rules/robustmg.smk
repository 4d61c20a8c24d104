# Robust Markov games: experiments on generated games, their table, figure and claims.
EXTRA_TABLES["robustmg"] = ["speed"]


rule robustmg_run:
    output:
        rows="results/{scale}/robustmg/{experiment}/seeds{seeds}.csv",
        games="results/{scale}/robustmg/games/{experiment}_seeds{seeds}.npz",
    log:
        "results/{scale}/robustmg/logs/run_{experiment}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/robustmg/benchmarks/run_{experiment}_seeds{seeds}.tsv"
    wildcard_constraints:
        experiment="|".join(ROBUSTMG_EXPERIMENTS),
    conda:
        "../envs/numpy.yaml"
    threads: 1
    resources:
        **compute("robustmg", "run"),
    params:
        **step("robustmg", "run", part="{experiment}"),
    script:
        STEP


rule robustmg_speed:
    input:
        # Nothing runs beside it, and nothing that is not needed before it.
        after=robustmg_rows,
    output:
        table="results/{scale}/table_robustmg_speed.csv",
    log:
        "results/{scale}/robustmg/logs/speed.log",
    conda:
        "../envs/numpy.yaml"
    threads: all_cores
    resources:
        **compute("robustmg", "speed"),
    params:
        **step("robustmg", "speed", threads=1),
    script:
        STEP


rule robustmg_evaluate:
    input:
        rows=robustmg_rows,
    output:
        metrics="results/{scale}/robustmg/metrics.csv",
        measures="results/{scale}/robustmg/measures.csv",
    log:
        "results/{scale}/robustmg/logs/evaluate.log",
    conda:
        "../envs/numpy.yaml"
    threads: 1
    params:
        **step("robustmg", "evaluate"),
    script:
        STEP


rule robustmg_table:
    input:
        metrics="results/{scale}/robustmg/metrics.csv",
        seed_file="seeds/robustmg.yaml",
    output:
        table="results/{scale}/table_robustmg.csv",
    log:
        "results/{scale}/robustmg/logs/table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("robustmg", "table"),
    script:
        STEP


rule robustmg_figure:
    input:
        metrics="results/{scale}/robustmg/metrics.csv",
    output:
        png="results/{scale}/figure_robustmg.png",
        pdf="results/{scale}/figure_robustmg.pdf",
    log:
        "results/{scale}/robustmg/logs/figure.log",
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("robustmg", "figure"),
    script:
        STEP
