# Neural collapse in multi-label learning: compose, train, decode; and free optimisation.
EXTRA_TABLES["mlabnc"] = ["speed"]


rule mlabnc_svhn:
    output:
        arrays="results/{scale}/mlabnc/svhn/images.npz",
    log:
        "results/{scale}/mlabnc/logs/svhn.log",
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        **compute("mlabnc", "svhn"),
    params:
        **step("mlabnc", "svhn"),
    script:
        STEP


rule mlabnc_prepare:
    input:
        images=mlabnc_source,
    output:
        data="results/{scale}/mlabnc/{dataset}/data_s{seed}.npz",
    log:
        "results/{scale}/mlabnc/logs/prepare_{dataset}_s{seed}.log",
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("mlabnc", "prepare"),
    params:
        **step("mlabnc", "prepare", part="{dataset}"),
    script:
        STEP


rule mlabnc_train:
    input:
        data="results/{scale}/mlabnc/{dataset}/data_s{seed}.npz",
    output:
        model="results/{scale}/mlabnc/{dataset}/{method}/s{seed}.safetensors",
        history="results/{scale}/mlabnc/{dataset}/{method}/history_s{seed}.csv",
    log:
        "results/{scale}/mlabnc/logs/train_{dataset}_{method}_s{seed}.log",
    benchmark:
        "results/{scale}/mlabnc/benchmarks/train_{dataset}_{method}_s{seed}.tsv"
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("mlabnc", "train"),
    params:
        **step("mlabnc", "train", part="{dataset}.{method}"),
    script:
        STEP


rule mlabnc_evaluate:
    input:
        data=mlabnc_data,
        models=mlabnc_runs("s{seed}.safetensors"),
    output:
        rows="results/{scale}/mlabnc/{dataset}/evaluation.csv",
        cosines="results/{scale}/mlabnc/{dataset}/cosines.npz",
    log:
        "results/{scale}/mlabnc/logs/evaluate_{dataset}.log",
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("mlabnc", "evaluate"),
    params:
        **step("mlabnc", "evaluate"),
    script:
        STEP


rule mlabnc_ufm:
    output:
        rows="results/{scale}/mlabnc/ufm.csv",
        path="results/{scale}/mlabnc/ufm_path.npz",
    log:
        "results/{scale}/mlabnc/logs/ufm.log",
    benchmark:
        "results/{scale}/mlabnc/benchmarks/ufm.tsv"
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("mlabnc", "ufm"),
    params:
        **step("mlabnc", "ufm"),
    script:
        STEP


rule mlabnc_size:
    output:
        rows="results/{scale}/mlabnc/size.csv",
    log:
        "results/{scale}/mlabnc/logs/size.log",
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **compute("mlabnc", "size"),
    params:
        **step("mlabnc", "size"),
    script:
        STEP


rule mlabnc_speed:
    input:
        data=lambda wildcards: "results/{scale}/mlabnc/mnist/data_s{seed}.npz".format(
            scale=wildcards.scale,
            seed=project.paper("mlabnc", wildcards.scale).seeds[0],
        ),
        learned=mlabnc_timed("learned"),
        fixed=mlabnc_timed("fixed"),
    output:
        rows="results/{scale}/mlabnc/speed.csv",
    log:
        "results/{scale}/mlabnc/logs/speed.log",
    conda:
        "../envs/torch.yaml"
    threads: all_cores
    resources:
        **compute("mlabnc", "speed"),
    params:
        **step("mlabnc", "speed", threads=1),
    script:
        STEP


rule mlabnc_measures:
    input:
        histories=mlabnc_runs("history_s{seed}.csv"),
        evaluations=mlabnc_evaluations,
        ufm="results/{scale}/mlabnc/ufm.csv",
    output:
        measures="results/{scale}/mlabnc/measures.csv",
    log:
        "results/{scale}/mlabnc/logs/measures.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("mlabnc", "measures"),
    script:
        STEP


rule mlabnc_table:
    input:
        histories=mlabnc_runs("history_s{seed}.csv"),
        evaluations=mlabnc_evaluations,
        ufm="results/{scale}/mlabnc/ufm.csv",
        sizes="results/{scale}/mlabnc/size.csv",
        seed_file="seeds/mlabnc.yaml",
    output:
        table="results/{scale}/table_mlabnc.csv",
    log:
        "results/{scale}/mlabnc/logs/table.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("mlabnc", "table"),
    script:
        STEP


rule mlabnc_table_speed:
    input:
        rows="results/{scale}/mlabnc/speed.csv",
    output:
        table="results/{scale}/table_mlabnc_speed.csv",
    log:
        "results/{scale}/mlabnc/logs/table_speed.log",
    conda:
        "../envs/tables.yaml"
    threads: 1
    params:
        **step("mlabnc", "table:speed"),
    script:
        STEP


rule mlabnc_figure:
    input:
        path="results/{scale}/mlabnc/ufm_path.npz",
        histories=mlabnc_runs("history_s{seed}.csv"),
        evaluations=mlabnc_evaluations,
        cosines="results/{scale}/mlabnc/mnist/cosines.npz",
    output:
        png="results/{scale}/figure_mlabnc.png",
        pdf="results/{scale}/figure_mlabnc.pdf",
    log:
        "results/{scale}/mlabnc/logs/figure.log",
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("mlabnc", "figure"),
    script:
        STEP
