# Inputs of the rules on evolution-inspired losses that are too long to stand in them.


def evorank_alignments(wildcards):
    """The alignments of all parts."""
    parts = project.paper("evorank", wildcards.scale).msa.parts
    return expand(
        "results/{scale}/evorank/alignments/part{part}.npz",
        scale=wildcards.scale,
        part=range(parts),
    )


def evorank_models(*methods):
    """An input function: the networks of some methods, of all where none is named."""

    def files(wildcards):
        wanted = methods or project.paper("evorank", wildcards.scale).methods
        return [
            f"results/{wildcards.scale}/evorank/{method}/seeds{seeds}.safetensors"
            for method in wanted
            for seeds in project.seed_groups(
                "evorank", wildcards.scale, "train", method
            )
        ]

    return files


def evorank_scores(wildcards):
    """Score matrices: zero-shot ones, and those of the fine-tuned reference."""
    scale = wildcards.scale
    return [
        f"results/{scale}/evorank/scores.npz",
        *(
            f"results/{scale}/evorank/finetuned_seeds{seeds}.npz"
            for seeds in project.seed_groups("evorank", scale, "finetune")
        ),
    ]
