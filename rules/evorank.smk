# Evolution-inspired losses: align, train on one objective each, score mutations that were measured.


rule evorank_structures:
    input:
        targets=dataset_file("dockstring"),
        assays=dataset_file("protein-assays"),
        ubiquitin=dataset_file("ubiquitin"),
        own=evorank_own_file("gb1"),
    output:
        training="results/{scale}/evorank/structures.npz",
        test="results/{scale}/evorank/test_structures.npz",
    log:
        "results/{scale}/evorank/logs/structures.log",
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "structures"),
    params:
        **step("evorank", "structures"),
    script:
        STEP


rule evorank_msa:
    input:
        training="results/{scale}/evorank/structures.npz",
        test="results/{scale}/evorank/test_structures.npz",
        sequences=dataset_file("uniprot-examples"),
    output:
        alignments="results/{scale}/evorank/alignments/part{part}.npz",
    log:
        "results/{scale}/evorank/logs/msa_part{part}.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/msa_part{part}.tsv"
    wildcard_constraints:
        part=r"\d+",
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "msa"),
    params:
        **step("evorank", "msa"),
        arguments=lambda wildcards: {
            "parts": project.paper("evorank", wildcards.scale).msa.parts
        },
    script:
        STEP


rule evorank_dataset:
    input:
        training="results/{scale}/evorank/structures.npz",
        test="results/{scale}/evorank/test_structures.npz",
        alignments=evorank_alignments,
    output:
        data="results/{scale}/evorank/dataset.npz",
    log:
        "results/{scale}/evorank/logs/dataset.log",
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "dataset"),
    params:
        **step("evorank", "dataset"),
    script:
        STEP


rule evorank_train:
    input:
        data="results/{scale}/evorank/dataset.npz",
    output:
        model="results/{scale}/evorank/{method}/seeds{seeds}.safetensors",
        history="results/{scale}/evorank/{method}/history_seeds{seeds}.csv",
    log:
        "results/{scale}/evorank/logs/train_{method}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/train_{method}_seeds{seeds}.tsv"
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "train"),
    params:
        **step("evorank", "train", part="{method}"),
    script:
        STEP


rule evorank_score:
    input:
        test="results/{scale}/evorank/test_structures.npz",
        data="results/{scale}/evorank/dataset.npz",
        models=evorank_models(),
    output:
        scores="results/{scale}/evorank/scores.npz",
    log:
        "results/{scale}/evorank/logs/score.log",
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "score"),
    params:
        **step("evorank", "score"),
    script:
        STEP


rule evorank_finetune:
    input:
        test="results/{scale}/evorank/test_structures.npz",
        assays=dataset_file("protein-assays"),
        models=evorank_models("wildtype"),
    output:
        scores="results/{scale}/evorank/finetuned_seeds{seeds}.npz",
    log:
        "results/{scale}/evorank/logs/finetune_seeds{seeds}.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/finetune_seeds{seeds}.tsv"
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "finetune"),
    params:
        **step("evorank", "finetune"),
        arguments=lambda wildcards: {
            "names": list(project.paper("evorank", wildcards.scale).assay_names)
        },
    script:
        STEP


rule evorank_evaluate:
    input:
        test="results/{scale}/evorank/test_structures.npz",
        assays=dataset_file("protein-assays"),
        data="results/{scale}/evorank/dataset.npz",
        models=evorank_models(),
        scores=evorank_scores,
        doubles=evorank_doubles,
    output:
        rows="results/{scale}/evorank/rows.csv",
        measures="results/{scale}/evorank/measures.csv",
        map="results/{scale}/evorank/heat_map.npz",
    log:
        "results/{scale}/evorank/logs/evaluate.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/evaluate.tsv"
    wildcard_constraints:
        scale=EVORANK_RESIDUE_SCALES,
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "evaluate"),
    params:
        **step("evorank", "evaluate"),
        arguments=lambda wildcards: {
            "names": list(project.paper("evorank", wildcards.scale).assay_names)
        },
    script:
        STEP


rule evorank_table:
    input:
        rows="results/{scale}/evorank/rows.csv",
        seed_file="seeds/evorank.yaml",
    output:
        table="results/{scale}/table_evorank.csv",
    log:
        "results/{scale}/evorank/logs/table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("evorank", "table"),
    script:
        STEP


rule evorank_figure:
    input:
        rows="results/{scale}/evorank/rows.csv",
        map="results/{scale}/evorank/heat_map.npz",
    output:
        png="results/{scale}/figure_evorank.png",
        pdf="results/{scale}/figure_evorank.pdf",
    log:
        "results/{scale}/evorank/logs/figure.log",
    wildcard_constraints:
        scale=EVORANK_RESIDUE_SCALES,
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("evorank", "figure"),
    script:
        STEP


include: "evorank_atoms.smk"
