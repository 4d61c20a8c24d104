# The data sets that papers share: fetched once, checked, kept as plain arrays.
from retable.common.data.catalogue import KINDS

for kind, datasets in KINDS.items():
    for dataset in datasets:

        rule:
            name:
                f"data_{dataset.name.replace('-', '_')}"
            input:
                own=project.own_files(dataset.name),
            output:
                arrays=f"results/data/{dataset.name}.npz",
            log:
                f"results/data/logs/{dataset.name}.log",
            conda:
                "../envs/data.yaml"
            threads: 1
            resources:
                mem_mb=3000,
                runtime=120,
            params:
                **step("common", kind),
                arguments={
                    "name": dataset.name,
                    "place": project.own_data(dataset.name),
                },
            script:
                STEP
