def geam_docking_targets(wildcards):
    """The docking targets among a scale's tasks."""
    return project.paper("geam", wildcards.scale).docking


def geam_molecules(wildcards):
    """The shared data set that a scale draws its library from."""
    source = project.paper("geam", wildcards.scale).prepare.source
    return dataset_file({"moses": "moses", "zinc250k": "zinc250k-docking"}[source])


def geam_receptors(wildcards):
    """Receptors and docking engine, for the tasks that need them."""
    docking = wildcards.dataset in geam_docking_targets(wildcards)
    return [dataset_file("dockstring")] if docking else []


def geam_threads(wildcards):
    """Threads of a job that may dock: one engine on each."""
    config = project.paper("geam", wildcards.scale)
    return config.docking_threads if wildcards.dataset in config.docking else 1


def geam_labels(wildcards):
    """The labels of every task."""
    tasks = project.paper("geam", wildcards.scale).tasks
    return expand(
        "results/{scale}/geam/labels/{dataset}.npz",
        scale=wildcards.scale,
        dataset=tasks,
    )


def geam_docking_labels(wildcards):
    """The labels of every docking target."""
    return expand(
        "results/{scale}/geam/labels/{dataset}.npz",
        scale=wildcards.scale,
        dataset=geam_docking_targets(wildcards),
    )


def geam_bottlenecks(scale, tasks, name):
    """A file of the bottleneck's step for each task and group of seeds."""
    groups = project.seed_groups("geam", scale, "fgib")
    return expand(
        "results/{scale}/geam/fgib/{dataset}/{name}_seeds{seeds}.csv",
        scale=scale,
        dataset=tasks,
        name=name,
        seeds=groups,
    )


def geam_fgib_of(kind):
    """An input function: the bottleneck's file that belongs to a job of generation."""

    def files(wildcards):
        groups = project.seed_groups("geam", wildcards.scale, "fgib")
        wanted = wildcards.seeds.split("-")[0]
        (group,) = [
            g
            for g in groups
            if int(g.split("-")[0]) <= int(wanted) <= int(g.split("-")[-1])
        ]
        folder = f"results/{wildcards.scale}/geam/fgib/{wildcards.dataset}"
        return f"{folder}/{kind.format(group)}"

    return files


def geam_generated(scale, tasks, groups, name):
    """A file of generation for each task, group of methods and group of seeds."""
    return expand(
        "results/{scale}/geam/generated/{dataset}/{methods}/{name}_seeds{seeds}.csv",
        scale=scale,
        dataset=tasks,
        methods=groups,
        name=name,
        seeds=project.seed_groups("geam", scale, "generate"),
    )


def geam_runs(name):
    """An input function: a file of generation for all that `evaluate` reads."""

    def files(wildcards):
        config = project.paper("geam", wildcards.scale)
        return geam_generated(
            wildcards.scale, config.tasks, config.method_groups(), name
        )

    return files


def geam_docking_runs(name):
    """An input function: a file of generation for all docking targets."""

    def files(wildcards):
        config = project.paper("geam", wildcards.scale)
        methods = [".".join(Path(method).parts) for method in config.docking_methods]
        return geam_generated(wildcards.scale, config.docking, methods, name)

    return files


def geam_fits(name):
    """An input function: a file of the bottleneck's step for every task."""

    def files(wildcards):
        tasks = project.paper("geam", wildcards.scale).tasks
        return geam_bottlenecks(wildcards.scale, tasks, name)

    return files


def geam_docking_fits(name):
    """An input function: a file of the bottleneck's step for every docking target."""

    def files(wildcards):
        tasks = project.paper("geam", wildcards.scale).docking
        return geam_bottlenecks(wildcards.scale, tasks, name)

    return files
