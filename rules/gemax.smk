# Graph entropy maximisation: train without labels, then classify, fine-tune, and compare entropies.
EXTRA_TABLES["gemax"] = ["speed"]


rule gemax_prepare:
    input:
        source=lambda wildcards: dataset_file(
            project.paper("gemax", wildcards.scale).prepare[wildcards.dataset].source
        ),
    output:
        graphs="results/{scale}/gemax/{dataset}/graphs.npz",
    log:
        "results/{scale}/gemax/logs/prepare_{dataset}.log",
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("gemax", "prepare"),
    params:
        **step("gemax", "prepare", part="{dataset}"),
    script:
        STEP


rule gemax_train:
    input:
        graphs="results/{scale}/gemax/{dataset}/graphs.npz",
    output:
        model="results/{scale}/gemax/{dataset}/{methods}/seeds{seeds}.safetensors",
        embeddings="results/{scale}/gemax/{dataset}/{methods}/embeddings_seeds{seeds}.npz",
        history="results/{scale}/gemax/{dataset}/{methods}/history_seeds{seeds}.csv",
    log:
        "results/{scale}/gemax/logs/train_{dataset}_{methods}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/gemax/benchmarks/train_{dataset}_{methods}_seeds{seeds}.tsv"
    wildcard_constraints:
        methods="[a-z0-9_+]+",
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("gemax", "train"),
    params:
        **step("gemax", "train", part="{dataset}"),
    script:
        STEP


rule gemax_kernels:
    input:
        graphs="results/{scale}/gemax/{dataset}/graphs.npz",
    output:
        matrices="results/{scale}/gemax/{dataset}/kernels.npz",
    log:
        "results/{scale}/gemax/logs/kernels_{dataset}.log",
    benchmark:
        "results/{scale}/gemax/benchmarks/kernels_{dataset}.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("gemax", "kernels"),
    params:
        **step("gemax", "kernels", part="{dataset}"),
    script:
        STEP


rule gemax_accuracy:
    input:
        graphs="results/{scale}/gemax/{dataset}/graphs.npz",
        embeddings=gemax_runs("embeddings_seeds{seeds}.npz"),
        matrices="results/{scale}/gemax/{dataset}/kernels.npz",
    output:
        rows="results/{scale}/gemax/{dataset}/accuracy_seeds{seeds}.csv",
    log:
        "results/{scale}/gemax/logs/accuracy_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/gemax/benchmarks/accuracy_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("gemax", "accuracy"),
    params:
        **step("gemax", "accuracy", part="{dataset}"),
    script:
        STEP


rule gemax_semi:
    input:
        graphs="results/{scale}/gemax/{dataset}/graphs.npz",
        models=gemax_runs("seeds{seeds}.safetensors"),
    output:
        rows="results/{scale}/gemax/{dataset}/semi_seeds{seeds}.csv",
    log:
        "results/{scale}/gemax/logs/semi_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/gemax/benchmarks/semi_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("gemax", "semi"),
    params:
        **step("gemax", "semi", part="{dataset}"),
    script:
        STEP


rule gemax_edges:
    input:
        graphs="results/{scale}/gemax/{dataset}/graphs.npz",
    output:
        rows="results/{scale}/gemax/{dataset}/edges_seeds{seeds}.csv",
    log:
        "results/{scale}/gemax/logs/edges_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/gemax/benchmarks/edges_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("gemax", "edges"),
    params:
        **step("gemax", "edges", part="{dataset}"),
    script:
        STEP


rule gemax_entropy:
    input:
        graphs="results/{scale}/gemax/{dataset}/graphs.npz",
        models=gemax_runs("seeds{seeds}.safetensors"),
        embeddings=gemax_runs("embeddings_seeds{seeds}.npz"),
    output:
        rows="results/{scale}/gemax/{dataset}/entropy_seeds{seeds}.csv",
        values="results/{scale}/gemax/{dataset}/entropy_seeds{seeds}.npz",
    log:
        "results/{scale}/gemax/logs/entropy_{dataset}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/gemax/benchmarks/entropy_{dataset}_seeds{seeds}.tsv"
    conda:
        "../envs/molecules.yaml"
    threads: 1
    resources:
        **compute("gemax", "entropy"),
    params:
        **step("gemax", "entropy", part="{dataset}"),
    script:
        STEP


rule gemax_speed:
    input:
        graphs=gemax_timed,
    output:
        rows="results/{scale}/gemax/speed.csv",
    log:
        "results/{scale}/gemax/logs/speed.log",
    conda:
        "../envs/molecules.yaml"
    threads: all_cores
    resources:
        **compute("gemax", "speed"),
    params:
        **step("gemax", "speed", threads=1),
        arguments=gemax_timed_methods,
    script:
        STEP


rule gemax_evaluate:
    input:
        parts=gemax_rows,
    output:
        rows="results/{scale}/gemax/rows.csv",
        measures="results/{scale}/gemax/measures.csv",
    log:
        "results/{scale}/gemax/logs/evaluate.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("gemax", "evaluate"),
    script:
        STEP


rule gemax_table:
    input:
        rows="results/{scale}/gemax/rows.csv",
        seed_file="seeds/gemax.yaml",
    output:
        table="results/{scale}/table_gemax.csv",
    log:
        "results/{scale}/gemax/logs/table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("gemax", "table"),
    script:
        STEP


rule gemax_table_speed:
    input:
        rows="results/{scale}/gemax/speed.csv",
    output:
        table="results/{scale}/table_gemax_speed.csv",
    log:
        "results/{scale}/gemax/logs/table_speed.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("gemax", "table:speed"),
    script:
        STEP


rule gemax_figure:
    input:
        rows="results/{scale}/gemax/rows.csv",
        graphs=gemax_figure_input("graphs.npz"),
        values=gemax_figure_input("entropy_seeds{seeds}.npz"),
    output:
        png="results/{scale}/figure_gemax.png",
        pdf="results/{scale}/figure_gemax.pdf",
    log:
        "results/{scale}/gemax/logs/figure.log",
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("gemax", "figure"),
    script:
        STEP
