# Evolution-inspired losses at atom level: the user's structures, ProteinGym and stability.


rule evorank_atom_assays:
    input:
        data=dataset_file("proteingym"),
    output:
        positions="results/{scale}/evorank/benchmarks_atoms/proteingym.safetensors",
        variants="results/{scale}/evorank/benchmarks_atoms/proteingym.npz",
    log:
        "results/{scale}/evorank/logs/atom_assays.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/atom_assays.tsv"
    wildcard_constraints:
        scale=EVORANK_ATOM_SCALES,
    conda:
        "../envs/atoms.yaml"
    threads: 1
    resources:
        **compute("evorank", "atom_assays"),
    params:
        **step("evorank", "atom_assays"),
    script:
        STEP


rule evorank_atom_stability:
    input:
        changes=evorank_changes,
    output:
        positions="results/{scale}/evorank/benchmarks_atoms/{dataset}.safetensors",
        variants="results/{scale}/evorank/benchmarks_atoms/{dataset}.npz",
    log:
        "results/{scale}/evorank/logs/atom_stability_{dataset}.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/atom_stability_{dataset}.tsv"
    wildcard_constraints:
        scale=EVORANK_ATOM_SCALES,
        dataset="t2837|c2878",
    conda:
        "../envs/atoms.yaml"
    threads: 1
    resources:
        **compute("evorank", "atom_stability"),
    params:
        **step("evorank", "atom_stability"),
    script:
        STEP


rule evorank_atom_shard:
    input:
        own=evorank_own_file("proteins"),
        tests=[
            "results/{scale}/evorank/benchmarks_atoms/proteingym.npz",
            "results/{scale}/evorank/benchmarks_atoms/t2837.npz",
        ],
    output:
        positions="results/{scale}/evorank/shards/part{part}.safetensors",
    log:
        "results/{scale}/evorank/logs/atom_shard_part{part}.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/atom_shard_part{part}.tsv"
    wildcard_constraints:
        scale=EVORANK_ATOM_SCALES,
        part=r"\d+",
    conda:
        "../envs/atoms.yaml"
    threads: 1
    resources:
        **compute("evorank", "atom_shard"),
    params:
        **step("evorank", "atom_shard"),
        arguments=lambda wildcards: {
            "parts": project.paper("evorank", wildcards.scale).atom_shard.parts
        },
    script:
        STEP


rule evorank_atom_train:
    input:
        positions=evorank_shards,
    output:
        model="results/{scale}/evorank/atoms/{method}/seeds{seeds}.safetensors",
        history="results/{scale}/evorank/atoms/{method}/history_seeds{seeds}.csv",
    log:
        "results/{scale}/evorank/logs/atom_train_{method}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/atom_train_{method}_seeds{seeds}.tsv"
    wildcard_constraints:
        scale=EVORANK_ATOM_SCALES,
        method=r"(?!finetuned/)[A-Za-z0-9.\-_]+",
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "atom_train"),
    params:
        **step("evorank", "atom_train", part="{method}"),
    script:
        STEP


rule evorank_atom_finetune:
    input:
        positions="results/{scale}/evorank/benchmarks_atoms/c2878.safetensors",
        variants="results/{scale}/evorank/benchmarks_atoms/c2878.npz",
        models=evorank_atom_models("wildtype"),
    output:
        model="results/{scale}/evorank/atoms/finetuned/seeds{seeds}.safetensors",
    log:
        "results/{scale}/evorank/logs/atom_finetune_seeds{seeds}.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/atom_finetune_seeds{seeds}.tsv"
    wildcard_constraints:
        scale=EVORANK_ATOM_SCALES,
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "atom_finetune"),
    params:
        **step("evorank", "atom_finetune"),
    script:
        STEP


rule evorank_atom_score:
    input:
        positions="results/{scale}/evorank/benchmarks_atoms/{dataset}.safetensors",
        model="results/{scale}/evorank/atoms/{method}/seeds{seeds}.safetensors",
    output:
        scores="results/{scale}/evorank/scores_atoms/{dataset}/{method}/seeds{seeds}.npz",
    log:
        "results/{scale}/evorank/logs/atom_score_{dataset}_{method}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/atom_score_{dataset}_{method}_seeds{seeds}.tsv"
    wildcard_constraints:
        scale=EVORANK_ATOM_SCALES,
        dataset="proteingym|t2837",
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "atom_score"),
    params:
        **step("evorank", "atom_score"),
    script:
        STEP


rule evorank_atom_represent:
    input:
        positions=evorank_shards,
        model="results/{scale}/evorank/atoms/{method}/seeds{seeds}.safetensors",
    output:
        rows="results/{scale}/evorank/atoms/{method}/held_out_seeds{seeds}.csv",
    log:
        "results/{scale}/evorank/logs/atom_represent_{method}_seeds{seeds}.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/atom_represent_{method}_seeds{seeds}.tsv"
    wildcard_constraints:
        scale=EVORANK_ATOM_SCALES,
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "atom_represent"),
    params:
        **step("evorank", "atom_represent"),
    script:
        STEP


rule evorank_atom_evaluate:
    input:
        gym="results/{scale}/evorank/benchmarks_atoms/proteingym.npz",
        stability="results/{scale}/evorank/benchmarks_atoms/t2837.npz",
        gym_scores=evorank_atom_scores("proteingym"),
        stability_scores=evorank_atom_scores("t2837"),
        held_out=evorank_held_out,
        own=evorank_own_file("zero_shot"),
    output:
        rows="results/{scale}/evorank/rows.csv",
        measures="results/{scale}/evorank/measures.csv",
        map="results/{scale}/evorank/heat_map.npz",
    log:
        "results/{scale}/evorank/logs/atom_evaluate.log",
    benchmark:
        "results/{scale}/evorank/benchmarks/atom_evaluate.tsv"
    wildcard_constraints:
        scale=EVORANK_ATOM_SCALES,
    conda:
        "../envs/proteins.yaml"
    threads: 1
    resources:
        **compute("evorank", "atom_evaluate"),
    params:
        **step("evorank", "atom_evaluate"),
        arguments=lambda wildcards: {
            "assay": project.paper("evorank", wildcards.scale).atom_figure.assay
        },
    script:
        STEP


rule evorank_atom_figure:
    input:
        rows="results/{scale}/evorank/rows.csv",
        map="results/{scale}/evorank/heat_map.npz",
    output:
        png="results/{scale}/figure_evorank.png",
        pdf="results/{scale}/figure_evorank.pdf",
    log:
        "results/{scale}/evorank/logs/atom_figure.log",
    wildcard_constraints:
        scale=EVORANK_ATOM_SCALES,
    conda:
        "../envs/figures.yaml"
    threads: 1
    params:
        **step("evorank", "atom_figure"),
    script:
        STEP
