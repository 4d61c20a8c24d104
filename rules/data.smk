# The data sets that papers share: fetched once, checked, kept as plain arrays.
from retable.common.data.catalogue import DATASETS

for dataset in DATASETS:

    rule:
        name:
            f"data_{dataset.replace('-', '_')}"
        input:
            own=project.own_files(dataset),
        output:
            arrays=f"results/data/{dataset}.npz",
        log:
            f"results/data/logs/{dataset}.log",
        conda:
            "../envs/data.yaml"
        threads: 1
        resources:
            mem_mb=3000,
            runtime=120,
        params:
            **step("common", "dataset"),
            arguments={"name": dataset, "place": project.own_data(dataset)},
        script:
            STEP
