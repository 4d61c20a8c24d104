# What the rules of Adam's implicit bias read.


def adambias_images(wildcards):
    """The shared data set that a data set's images come from."""
    prepared = project.paper("adambias", wildcards.scale).prepare[wildcards.dataset]
    if prepared.source in ("cifar100", "eurosat"):  # no other paper uses them
        return f"results/{wildcards.scale}/adambias/sources/{prepared.source}.npz"
    return dataset_file(prepared.source)


def adambias_fits(wildcards):
    """Orders and defects: the toy problems, and the network where the scale has it."""
    config = project.paper("adambias", wildcards.scale)
    files = []
    for step in ("order", "defect"):
        place = f"results/{wildcards.scale}/adambias/{step}"
        files.append(f"{place}/toy.csv")
        if getattr(config, step).network is not None:
            groups = project.seed_groups("adambias", wildcards.scale, step, "network")
            files += [f"{place}/network_seeds{seeds}.csv" for seeds in groups]
    return files


def adambias_histories(wildcards):
    """The trainings of all data sets and methods."""
    config = project.paper("adambias", wildcards.scale)
    place = f"results/{wildcards.scale}/adambias"
    return [
        f"{place}/{dataset}/{config.method(*setting)}/seeds{seeds}.csv"
        for dataset, settings in config.methods.items()
        for setting in settings
        for seeds in project.seed_groups("adambias", wildcards.scale, "train", dataset)
    ]
