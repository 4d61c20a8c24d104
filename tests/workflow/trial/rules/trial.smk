rule trial_prepare:
    output:
        arrays="results/{scale}/trial/digits.npz",
    log:
        "results/{scale}/trial/logs/prepare.log",
    conda:
        "../envs/numpy.yaml"
    threads: 1
    params:
        **step("trial", "prepare"),
    script:
        STEP


rule trial_train:
    input:
        arrays="results/{scale}/trial/digits.npz",
    output:
        model="results/{scale}/trial/digits/{method}/seeds{seeds}.safetensors",
    log:
        "results/{scale}/trial/logs/train_{method}_seeds{seeds}.log",
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("trial", "train"),
    params:
        **step("trial", "train"),
    script:
        STEP


rule trial_evaluate:
    input:
        arrays="results/{scale}/trial/digits.npz",
        models=lambda wildcards: expand(
            "results/{scale}/trial/digits/{method}/seeds{seeds}.safetensors",
            scale=wildcards.scale,
            method=project.paper("trial", wildcards.scale).methods,
            seeds=project.seed_groups("trial", wildcards.scale, "train"),
        ),
    output:
        rows="results/{scale}/trial/rows.csv",
        measures="results/{scale}/trial/measures.csv",
    log:
        "results/{scale}/trial/logs/evaluate.log",
    conda:
        "../envs/torch.yaml"
    threads: 1
    params:
        **step("trial", "evaluate"),
    script:
        STEP


rule trial_table:
    input:
        rows="results/{scale}/trial/rows.csv",
        seed_file="seeds/trial.yaml",
    output:
        table="results/{scale}/table_trial.csv",
    log:
        "results/{scale}/trial/logs/table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("trial", "table"),
    script:
        STEP


rule trial_figure:
    input:
        rows="results/{scale}/trial/rows.csv",
    output:
        png="results/{scale}/figure_trial.png",
        pdf="results/{scale}/figure_trial.pdf",
    log:
        "results/{scale}/trial/logs/figure.log",
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("trial", "figure"),
    script:
        STEP
