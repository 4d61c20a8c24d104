# Inputs of the rules on evolution-inspired losses that are too long to stand in them.
from retable.common.settings import SCALES

# The scales at which environments are of residues and those at which they are of atoms, as
# patterns; `(?!)` is no scale at all.
EVORANK_RESIDUE_SCALES, EVORANK_ATOM_SCALES = (
    "|".join(s for s in SCALES if project.paper("evorank", s).level == level) or "(?!)"
    for level in ("residue", "atom")
)


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


def evorank_own_file(key):
    """An input function: the user's own file of that key, if it is a file that is there."""

    def files(wildcards):
        value = getattr(project.paper("evorank", wildcards.scale).own, key)
        path = Path(value or "").expanduser()
        return [str(path)] if value and path.is_file() else []

    return files


def evorank_doubles(wildcards):
    """The double mutants of GB1, where the user has a structure of it."""
    own = project.paper("evorank", wildcards.scale).own
    return [dataset_file("gb1")] if own.gb1 is not None else []


def evorank_changes(wildcards):
    """Measured changes of stability: the published test set, or the user's file to train on."""
    if wildcards.dataset == "t2837":
        return [dataset_file("t2837")]
    return evorank_own_file("finetuning")(wildcards)


def evorank_shards(wildcards):
    """The training data of all parts."""
    parts = project.paper("evorank", wildcards.scale).atom_shard.parts
    return [
        f"results/{wildcards.scale}/evorank/shards/part{part}.safetensors"
        for part in range(parts)
    ]


def evorank_atom_files(wildcards, place, end, finetuned=True, methods=None):
    """One file of each atom-level network: `<place>/<method>/<...>seeds<seeds><...>`."""
    scale = wildcards.scale
    wanted = methods or project.paper("evorank", scale).methods
    jobs = [
        (method, seeds)
        for method in wanted
        for seeds in project.seed_groups("evorank", scale, "atom_train", method)
    ]
    if finetuned:
        groups = project.seed_groups("evorank", scale, "atom_finetune")
        jobs += [("finetuned", seeds) for seeds in groups]
    return [
        f"results/{scale}/evorank/{place}/{method}/{end.format(seeds=seeds)}"
        for method, seeds in jobs
    ]


def evorank_atom_models(*methods):
    """An input function: the atom-level networks of some methods."""

    def files(wildcards):
        end = "seeds{seeds}.safetensors"
        return evorank_atom_files(wildcards, "atoms", end, False, methods)

    return files


def evorank_atom_scores(dataset):
    """An input function: the scores of all atom-level networks on a benchmark."""

    def files(wildcards):
        place = f"scores_atoms/{dataset}"
        return evorank_atom_files(wildcards, place, "seeds{seeds}.npz")

    return files


def evorank_held_out(wildcards):
    """What the atom-level representations hold, by method and seeds."""
    return evorank_atom_files(wildcards, "atoms", "held_out_seeds{seeds}.csv", False)
