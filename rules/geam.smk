# Goal-aware fragments: library, bottleneck, generation, docking on request.


EXTRA_TABLES["geam"] = ["vocabulary"]


rule geam_prepare:
    input:
        molecules=geam_molecules,
    output:
        library="results/{scale}/geam/library.npz",
    log:
        "results/{scale}/geam/logs/prepare.log",
    benchmark:
        "results/{scale}/geam/benchmarks/prepare.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("geam", "prepare"),
    params:
        **step("geam", "prepare"),
    script:
        STEP


rule geam_labels:
    input:
        library="results/{scale}/geam/library.npz",
        receptors=geam_receptors,
    output:
        labels="results/{scale}/geam/labels/{dataset}.npz",
    log:
        "results/{scale}/geam/logs/labels_{dataset}.log",
    benchmark:
        "results/{scale}/geam/benchmarks/labels_{dataset}.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: geam_threads
    resources:
        **compute("geam", "labels"),
    params:
        **step("geam", "labels"),
    script:
        STEP


rule geam_fgib:
    input:
        library="results/{scale}/geam/library.npz",
        labels="results/{scale}/geam/labels/{dataset}.npz",
    output:
        models="results/{scale}/geam/fgib/{dataset}/models_seeds{seeds}.safetensors",
        scores="results/{scale}/geam/fgib/{dataset}/scores_seeds{seeds}.csv",
        history="results/{scale}/geam/fgib/{dataset}/fit_seeds{seeds}.csv",
    log:
        "results/{scale}/geam/logs/fgib_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/geam/benchmarks/fgib_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("geam", "fgib"),
    params:
        **step("geam", "fgib"),
    script:
        STEP


rule geam_prior:
    input:
        library="results/{scale}/geam/library.npz",
    output:
        model="results/{scale}/geam/prior.safetensors",
    log:
        "results/{scale}/geam/logs/prior.log",
    benchmark:
        "results/{scale}/geam/benchmarks/prior.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("geam", "prior"),
    params:
        **step("geam", "prior"),
    script:
        STEP


rule geam_generate:
    input:
        library="results/{scale}/geam/library.npz",
        labels="results/{scale}/geam/labels/{dataset}.npz",
        models=geam_fgib_of("models_seeds{}.safetensors"),
        scores=geam_fgib_of("scores_seeds{}.csv"),
        prior="results/{scale}/geam/prior.safetensors",
        receptors=geam_receptors,
    output:
        molecules="results/{scale}/geam/generated/{dataset}/{methods}/molecules_seeds{seeds}.csv",
        progress="results/{scale}/geam/generated/{dataset}/{methods}/progress_seeds{seeds}.csv",
        vocabulary="results/{scale}/geam/generated/{dataset}/{methods}/vocabulary_seeds{seeds}.csv",
    log:
        "results/{scale}/geam/logs/generate_{dataset}_{methods}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/geam/benchmarks/generate_{dataset}_{methods}_seeds{seeds}.tsv"
    wildcard_constraints:
        methods="[a-z_.+]+",
    conda:
        "../envs/molecules.yaml"
    threads: geam_threads
    resources:
        **compute("geam", "generate"),
    params:
        **step("geam", "generate"),
    script:
        STEP


rule geam_evaluate:
    input:
        library="results/{scale}/geam/library.npz",
        labels=geam_labels,
        histories=geam_fits("fit"),
        scores=geam_fits("scores"),
        molecules=geam_runs("molecules"),
        progress=geam_runs("progress"),
        vocabulary=geam_runs("vocabulary"),
    output:
        rows="results/{scale}/geam/rows.csv",
        measures="results/{scale}/geam/measures.csv",
        fragments="results/{scale}/geam/fragments.csv",
    log:
        "results/{scale}/geam/logs/evaluate.log",
    benchmark:
        "results/{scale}/geam/benchmarks/evaluate.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("geam", "evaluate"),
    params:
        **step("geam", "evaluate"),
    script:
        STEP


rule geam_table:
    input:
        rows="results/{scale}/geam/rows.csv",
        seed_file="seeds/geam.yaml",
    output:
        table="results/{scale}/table_geam.csv",
    log:
        "results/{scale}/geam/logs/table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("geam", "table"),
    script:
        STEP


rule geam_table_vocabulary:
    input:
        rows="results/{scale}/geam/rows.csv",
        seed_file="seeds/geam.yaml",
    output:
        table="results/{scale}/table_geam_vocabulary.csv",
    log:
        "results/{scale}/geam/logs/table_vocabulary.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("geam", "table:vocabulary"),
    script:
        STEP


rule geam_figure:
    input:
        rows="results/{scale}/geam/rows.csv",
        fragments="results/{scale}/geam/fragments.csv",
    output:
        png="results/{scale}/figure_geam.png",
        pdf="results/{scale}/figure_geam.pdf",
    log:
        "results/{scale}/geam/logs/figure.log",
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("geam", "figure"),
    script:
        STEP


rule geam_docking_evaluate:
    input:
        library="results/{scale}/geam/library.npz",
        labels=geam_docking_labels,
        histories=geam_docking_fits("fit"),
        scores=geam_docking_fits("scores"),
        molecules=geam_docking_runs("molecules"),
        progress=geam_docking_runs("progress"),
        vocabulary=geam_docking_runs("vocabulary"),
    output:
        rows="results/{scale}/geam/docking/rows.csv",
        measures="results/{scale}/geam/docking/measures.csv",
        fragments="results/{scale}/geam/docking/fragments.csv",
    log:
        "results/{scale}/geam/logs/docking_evaluate.log",
    benchmark:
        "results/{scale}/geam/benchmarks/docking_evaluate.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("geam", "evaluate"),
    params:
        **step("geam", "evaluate:docking"),
    script:
        STEP


rule geam_docking_table:
    input:
        rows="results/{scale}/geam/docking/rows.csv",
        seed_file="seeds/geam.yaml",
    output:
        table="results/{scale}/table_geam_docking.csv",
    log:
        "results/{scale}/geam/logs/docking_table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("geam", "table:docking"),
    script:
        STEP
