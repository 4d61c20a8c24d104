"""What runs again after a change: exactly the jobs that depend on it, and nothing otherwise."""

import os
import subprocess

import numpy as np

from retable.common.data.arrays import load_arrays, save_arrays

ROOM = "src/retable/trial"
COPIES = {"top_level", "all", "summary", "claims", "costs"}


def of_paper(jobs):
    return {name.removeprefix("trial_"): n for name, n in jobs.items() if name not in COPIES}


def test_nothing_runs_after_a_run(finished):
    assert finished.jobs() == {}


def test_comments_layout_and_docstrings_rerun_nothing(finished):
    finished.replace(f"{ROOM}/steps/train.py", "import time\n", "import time  # a comment\n\n")
    finished.replace(f"{ROOM}/steps/train.py", "noisy = x[batch] +", "noisy = (x[batch]) +")
    finished.replace(f"{ROOM}/model.py", '"""The model: one linear layer."""', '"""Else."""')
    finished.replace("src/retable/common/training.py", '"""The training loop', '"""The one loop')
    finished.replace("rules/trial.smk", "rule trial_train:", "# a comment\nrule trial_train:")
    finished.replace("workflow/scripts/step.py", "import os\n", "import os\n\n# a comment\n")
    assert finished.jobs() == {}


def test_reordered_keys_rerun_nothing(finished):
    finished.replace(
        "config/trial.yaml",
        "train: {epochs: 2, lr: 0.5, seeds_per_job: 1}",
        "train: {seeds_per_job: 1, lr: 0.50, epochs: 2}",
    )
    assert finished.jobs() == {}


def test_touched_files_rerun_nothing(finished):
    for path in finished.path.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            os.utime(path)
    assert finished.jobs() == {}


def test_a_branch_switched_and_switched_back_reruns_nothing(finished):
    def git(*arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=finished.path, check=True, capture_output=True
        )

    (finished.path / ".gitignore").write_text("/results/\n/.snakemake/\n")
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "one")
    git("switch", "-qc", "other")
    finished.replace(f"{ROOM}/model.py", "nn.Linear(inputs, classes)", "nn.Linear(inputs, 2 + 8)")
    finished.replace("config/trial.yaml", "lr: 0.5", "lr: 0.4")
    git("commit", "-qam", "two")
    assert finished.jobs() != {}
    git("switch", "-q", "main")
    assert finished.jobs() == {}


def test_changed_code_of_training_reruns_training_and_what_follows(finished):
    finished.replace(f"{ROOM}/model.py", "nn.Linear(inputs, classes)", "nn.Linear(inputs, 2 + 8)")
    assert of_paper(finished.jobs()) == {"train": 4, "evaluate": 1, "table": 1, "figure": 1}


def test_a_new_column_of_the_table_retrains_nothing(finished):
    finished.replace(
        f"{ROOM}/steps/table.py",
        "write_table(add_reported(aggregate(",
        "made = (add_reported(aggregate(",
    )
    finished.replace(
        f"{ROOM}/steps/table.py",
        "read_seed_file(seed_file)), table)",
        "read_seed_file(seed_file)))\n"
        '    write_table(made.assign(spread=made["ci_high"] - made["ci_low"]), table)',
    )
    assert of_paper(finished.jobs()) == {"table": 1}
    finished.run()
    header = (finished.path / "results/table_trial.csv").read_text().splitlines()[0]
    assert header.endswith(",source,spread")


def test_a_third_seed_trains_one_model_a_method(finished):
    finished.replace("config/trial.yaml", "seeds: [0, 1]", "seeds: [0, 1, 2]")
    assert of_paper(finished.jobs()) == {"train": 2, "evaluate": 1, "table": 1, "figure": 1}


def test_a_changed_setting_reruns_its_step(finished):
    finished.replace("config/trial.yaml", "methods:", "figure: {width: 5}\n  methods:")
    assert of_paper(finished.jobs()) == {"figure": 1}


def test_swapped_values_of_settings_are_a_change(finished):
    finished.replace("config/trial.yaml", "epochs: 2, lr: 0.5", "epochs: 1, lr: 2")
    assert of_paper(finished.jobs()).get("train") == 4


def test_changed_data_reruns_what_reads_them(finished):
    path = finished.path / "results/laptop/trial/digits.npz"
    arrays = load_arrays(path)
    arrays["x"] = np.ascontiguousarray(arrays["x"][:, ::-1])
    save_arrays(path, arrays)
    assert of_paper(finished.jobs()) == {"train": 4, "evaluate": 1, "table": 1, "figure": 1}


def test_changed_claims_rerun_the_ledger_alone(finished):
    finished.replace("seeds/trial.yaml", '">= 0.8"', '">= 0.9999"')
    jobs = finished.jobs()
    assert "train" not in of_paper(jobs)
    assert jobs["claims"] == 1
    finished.run()
    assert "contradicted" in (finished.path / "results/claims.csv").read_text()
