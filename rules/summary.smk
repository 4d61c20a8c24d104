# The ledger of claims, the costs, and the files that a reader looks at first.


rule claims:
    input:
        measures="results/{scale}/{paper}/measures.csv",
        seed_file="seeds/{paper}.yaml",
    output:
        claims="results/{scale}/{paper}/claims.csv",
        checks="results/{scale}/{paper}/claims_checks.csv",
    log:
        "results/{scale}/{paper}/logs/claims.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("common", "claims"),
    script:
        STEP


rule summary:
    input:
        papers=expand(
            "results/{{scale}}/{paper}/{{ledger}}.csv",
            paper=project.papers,
        ),
    output:
        ledger="results/{scale}/{ledger}.csv",
    log:
        "results/{scale}/logs/{ledger}.log",
    wildcard_constraints:
        ledger="claims|claims_checks",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("common", "summary"),
    script:
        STEP


rule costs:
    input:
        papers=expand("results/{{scale}}/{paper}/claims.csv", paper=project.papers),
        # Everything that a default run makes comes first, so that its costs are known.
        after=lambda wildcards: scale_files(wildcards.scale),
    output:
        table="results/{scale}/costs.csv",
    log:
        "results/{scale}/logs/costs.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("common", "summary:costs"),
    script:
        STEP


rule top_level:
    input:
        f"results/{project.config.scale}/{{file}}",
    output:
        report(
            "results/{file}",
            caption="../workflow/report/result.rst",
            category=lambda wildcards: project.category(wildcards.file),
            labels=lambda wildcards: {"file": wildcards.file},
        ),
    log:
        "results/logs/top_level_{file}.log",
    wildcard_constraints:
        file=r"(table|figure)_[a-z0-9_]+\.(csv|png)|claims\.csv|claims_checks\.csv|costs\.csv",
    localrule: True
    conda:
        "../envs/tables.yaml"
    params:
        caption=lambda wildcards: project.caption(wildcards.file),
    shell:
        "cp {input} {output} 2> {log}"
