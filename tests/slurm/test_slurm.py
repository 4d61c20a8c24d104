"""Runs on a real Slurm of one node: GPU requests, cancelled jobs, time limits, edits in flight."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.workflow.conftest import Clone, add_trial, copy_code, wait_for

pytestmark = pytest.mark.slurm
HERE = Path(__file__).parent
PROFILE = ("--profile", "slurm")
ONE_STEP = "train: {epochs: 2, lr: 0.5, seeds_per_job: 1}"


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """A running Slurm; the tests are skipped where its programs are missing."""
    missing = [name for name in ("munged", "slurmctld", "slurmd") if not shutil.which(name)]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    subprocess.run(["bash", str(HERE / "start_slurm.sh")], check=True)


@pytest.fixture
def trial(tmp_path):
    clone = copy_code(tmp_path / "project")
    add_trial(clone)
    # One node answers at once: no need to wait for slow file systems between two looks.
    clone.replace("slurm/config.yaml", "latency-wait: 60", "latency-wait: 5")
    return clone


def local_results(trial: Clone, folder: Path) -> dict[str, bytes]:
    """The same run on this machine, without Slurm."""
    shutil.copytree(trial.path, folder)
    clone = Clone(folder)
    clone.run("--config", "scale=paper")
    return clone.results()


def running_job(rule: str) -> str | None:
    """The id of a job of this rule that runs now."""
    listed = subprocess.run(
        ["squeue", "-h", "-t", "RUNNING", "-o", "%i %k"], capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        number, _, comment = line.partition(" ")
        if rule in comment:
            return number
    return None


def logs(trial: Clone) -> str:
    return "".join(p.read_text() for p in trial.path.glob("results/paper/trial/logs/train_*"))


def test_a_cancelled_job_and_edits_in_flight(trial, tmp_path, running):
    trial.replace("config/trial.yaml", "methods: [plain, momentum]", "methods: [momentum]")
    trial.replace("config/trial.yaml", "seeds: [0, 1]", "seeds: [0]")
    expected = local_results(trial, tmp_path / "local")
    trial.replace("config/trial.yaml", ONE_STEP, ONE_STEP.replace("}", ", pause: 0.4}"))

    run = trial.start(*PROFILE, RETABLE_CHECKPOINT_SECONDS="1")
    running.append(run)
    wait_for(lambda: running_job("trial_train") is not None, 120, "training runs")
    wait_for(lambda: "CUDA_VISIBLE_DEVICES" in logs(trial), 60, "the step has begun")
    wait_for(
        lambda: any(trial.path.glob("results/paper/trial/checkpoints/*/*.pt")), 60, "a checkpoint"
    )
    trial.replace("src/retable/trial/model.py", "nn.Linear(inputs, classes)", "nn.Linear(0, 2)")
    trial.replace("src/retable/trial/steps/evaluate.py", "argmax(1) ==", "argmin(1) ==")
    trial.replace("config/trial.yaml", "lr: 0.5", "lr: 0.001")
    trial.replace("workflow/scripts/step.py", "import os\n", "import os, nowhere\n")
    subprocess.run(["scancel", running_job("trial_train")], check=True)
    assert run.wait(timeout=400) == 0, (trial.path / "run.log").read_text()

    assert trial.results() == expected
    assert "CUDA_VISIBLE_DEVICES=0" in logs(trial)
    assert "going on from the checkpoint" in logs(trial)
    trial.replace("workflow/scripts/step.py", "import os, nowhere\n", "import os\n")
    trial.replace("src/retable/trial/model.py", "nn.Linear(0, 2)", "nn.Linear(inputs, classes)")
    trial.replace("config/trial.yaml", "lr: 0.001", "lr: 0.5")
    jobs = trial.jobs(*PROFILE)
    assert jobs["trial_evaluate"] == 1
    assert "trial_train" not in jobs


def test_a_job_that_is_out_of_time_goes_on_in_the_next(trial, tmp_path, running):
    trial.replace("config/trial.yaml", "methods: [plain, momentum]", "methods: [momentum]")
    trial.replace("config/trial.yaml", "seeds: [0, 1]", "seeds: [0]")
    expected = local_results(trial, tmp_path / "local")
    # 58 steps of 2.1 s do not fit into two minutes. Slurm may send the signal up to a minute early,
    # so an attempt may get less than one.
    trial.replace("config/trial.yaml", ONE_STEP, ONE_STEP.replace("}", ", pause: 2.1}"))
    trial.replace("slurm/config.yaml", "retries: 2", "retries: 4")
    trial.replace("config/trial.yaml", "runtime: 5", "runtime: 2")
    trial.replace("slurm/config.yaml", "--signal=TERM@120", "--signal=TERM@10")

    target = "results/paper/table_trial.csv"
    run = trial.start(*PROFILE, target)
    running.append(run)
    assert run.wait(timeout=800) == 0, (trial.path / "run.log").read_text()

    assert (trial.path / target).read_bytes() == expected["results/table_trial.csv"]
    # The log is that of the last attempt.
    assert "going on from the checkpoint" in logs(trial)


def test_three_papers_at_smoke_scale(tmp_path):
    papers = ("robustmg", "mlabnc", "hstu")
    targets = [f"results/smoke/table_{paper}.csv" for paper in papers]
    clone = copy_code(tmp_path / "project")
    clone.replace("slurm/config.yaml", "latency-wait: 60", "latency-wait: 5")
    local = copy_code(tmp_path / "local")
    local.run(*targets)
    clone.run(*PROFILE, *targets)
    for target in targets:
        assert (clone.path / target).read_bytes() == (local.path / target).read_bytes(), target
