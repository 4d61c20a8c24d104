"""Runs that are killed, edited under their feet, or started twice end with the same bytes."""

import os
import random
import signal
import time

from .conftest import kill_group, resting, wait_for

ROOM = "src/retable/trial"
SLOW = "train: {epochs: 2, lr: 0.5, seeds_per_job: 1, pause: 0.05}"
FAST = "train: {epochs: 2, lr: 0.5, seeds_per_job: 1}"


def training_logs(clone):
    logs = sorted(clone.path.glob("results/laptop/trial/logs/train_*"))
    return "".join(path.read_text() for path in logs)


def training_has_begun(clone):
    return lambda: "CUDA_VISIBLE_DEVICES" in training_logs(clone)


def test_two_runs_give_the_same_bytes(finished_trial, trial):
    trial.run("--cores", "1")
    assert trial.results("results/**/*.*").keys() == finished_trial.results("results/**/*.*").keys()
    assert trial.results() == finished_trial.results()
    assert trial.results("results/laptop/*") == finished_trial.results("results/laptop/*")


def test_a_run_that_is_killed_again_and_again_gives_the_same_bytes(finished_trial, trial, running):
    trial.replace("config/trial.yaml", FAST, SLOW)
    for _ in range(4):
        run = trial.start("--quiet", RETABLE_CHECKPOINT_SECONDS="0.1")
        running.append(run)
        time.sleep(random.uniform(2.0, 6.0))
        kill_group(run)
        trial.run("--unlock")
    trial.run(RETABLE_CHECKPOINT_SECONDS="0.1")
    assert trial.results() == finished_trial.results()
    assert not list(trial.path.rglob("*.part-*"))
    assert not any((trial.path / "results/laptop/trial/checkpoints").glob("*"))


def test_jobs_that_outlive_snakemake_do_no_harm(finished_trial, trial, running):
    run = trial.start("--quiet")
    running.append(run)
    wait_for(training_has_begun(trial), 60, "training begins")
    # Snakemake alone is killed: its jobs go on, after a rest in which the next run comes to them.
    with resting(run):
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        trial.run("--unlock")
        again = trial.start("--quiet")
        running.append(again)
        wait_for(
            lambda: "an earlier attempt of this job still runs" in training_logs(trial),
            120,
            "the second attempt meets the first",
        )
    assert again.wait(timeout=120) == 0, (trial.path / "run.log").read_text()
    assert trial.results() == finished_trial.results()


def test_edits_do_not_reach_a_run_in_flight(finished_trial, trial, running):
    trial.replace("config/trial.yaml", FAST, SLOW)
    run = trial.start()
    running.append(run)
    wait_for(training_has_begun(trial), 60, "training begins")
    trial.replace(f"{ROOM}/model.py", "nn.Linear(inputs, classes)", "nn.Linear(inputs, 2 + 8)")
    trial.replace(f"{ROOM}/steps/evaluate.py", "scores.argmax(1) ==", "scores.argmin(1) ==")
    trial.replace("config/trial.yaml", "lr: 0.5", "lr: 0.001")
    trial.replace("src/retable/common/tables.py", '"n_seeds": interval.n', '"n_seeds": 99')
    trial.replace("workflow/scripts/step.py", "import os\n", "import os, nowhere\n")
    trial.replace("rules/summary.smk", "rule costs:", "rule costs: this is no rule")
    trial.replace("workflow/Snakefile", "rule all:", "rule all: neither is this")
    assert run.wait(timeout=120) == 0, (trial.path / "run.log").read_text()
    assert trial.results() == finished_trial.results()
    # What was broken is mended; what was changed is asked for.
    trial.replace("workflow/scripts/step.py", "import os, nowhere\n", "import os\n")
    trial.replace("rules/summary.smk", "rule costs: this is no rule", "rule costs:")
    trial.replace("workflow/Snakefile", "rule all: neither is this", "rule all:")
    trial.replace("src/retable/common/tables.py", '"n_seeds": 99', '"n_seeds": interval.n')
    trial.replace("config/trial.yaml", "lr: 0.001", "lr: 0.5")
    trial.replace(f"{ROOM}/model.py", "nn.Linear(inputs, 2 + 8)", "nn.Linear(inputs, classes)")
    jobs = trial.jobs()
    assert jobs["trial_evaluate"] == 1
    assert "trial_train" not in jobs


def test_copies_of_the_code_are_removed_when_no_run_uses_them(finished):
    store = finished.path / ".snakemake" / "code"
    finished.replace(f"{ROOM}/model.py", '"""The model', '"""A model')
    finished.jobs()
    assert len([path for path in store.iterdir() if path.is_dir()]) == 1


def test_a_second_run_in_the_same_folder_is_refused(trial, running):
    trial.replace("config/trial.yaml", FAST, SLOW)
    run = trial.start()
    running.append(run)
    wait_for(training_has_begun(trial), 60, "training begins")
    with resting(run):
        assert "cannot be locked" in trial.run(check=False)
    assert run.wait(timeout=120) == 0
