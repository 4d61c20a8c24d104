"""A step that asks for several GPUs runs in as many processes."""


def test_a_step_with_two_gpus_runs_in_two_processes(trial):
    trial.replace("config/trial.yaml", "gpu: 1", "gpu: 2")
    trial.replace("config/trial.yaml", "methods: [plain, momentum]", "methods: [momentum]")
    trial.replace("config/trial.yaml", "seeds: [0, 1]", "seeds: [0]")
    trial.run("results/paper/table_trial.csv", ACCELERATE_USE_CPU="true")
    (log,) = trial.path.glob("results/paper/trial/logs/train_*")
    assert "2 processes" in log.read_text()
    table = (trial.path / "results/paper/table_trial.csv").read_text()
    (accuracy,) = (float(line.split(",")[4]) for line in table.splitlines() if ",accuracy," in line)
    assert accuracy > 0.8
