"""Bad configuration, data and targets: one clear line before any job starts, nothing lost."""

import numpy as np
import pytest


def refused(clone, *arguments):
    """Run in vain; the line that says why, after making sure that nothing was made."""
    printed = clone.run(*arguments, check=False)
    assert not (clone.path / "results").exists()
    (line,) = [line for line in printed.splitlines() if line.startswith("retable: ")]
    assert "Traceback" not in printed
    return line.removeprefix("retable: ")


def test_unknown_scale_in_the_configuration(trial):
    line = refused(trial, "results/table_trial.csv", "--config", "scale=huge")
    assert line == (
        "config/config.yaml: scale: Input should be 'smoke', 'laptop' or 'paper', got 'huge'"
    )


def test_unknown_scale_in_a_target(trial):
    line = refused(trial, "results/huge/table_trial.csv")
    assert "there is no scale 'huge'; allowed: smoke, laptop, paper" in line


def test_unknown_paper_in_the_configuration_though_no_target_needs_it(trial):
    trial.replace("config/config.yaml", "papers: [trial]", "papers: [trial, nosuch]")
    assert "there is no paper 'nosuch'; known:" in refused(trial, "results/table_trial.csv")


def test_unknown_paper_in_a_target(trial):
    assert "there is no paper 'nosuch'" in refused(trial, "results/table_nosuch.csv")


def test_misspelt_key(trial):
    trial.replace("config/trial.yaml", "epochs: 2", "epoch: 2")
    printed = trial.run("-n", check=False)
    assert "config/trial.yaml, smoke: train.epoch: unknown key; allowed:" in printed
    assert "config/trial.yaml, smoke: train.epochs: is missing" in printed


def test_value_out_of_range(trial):
    trial.replace("config/trial.yaml", "lr: 0.5", "lr: 50")
    assert refused(trial) == (
        "config/trial.yaml, smoke: train.lr: Input should be less than or equal to 10, got 50"
    )


def test_broken_yaml(trial):
    trial.replace("config/trial.yaml", "seeds: [0, 1]", "seeds: [0, 1")
    assert refused(trial).startswith("config/trial.yaml, line ")


def test_missing_scale(trial):
    trial.replace("config/trial.yaml", "laptop: {}\n", "")
    assert refused(trial) == "config/trial.yaml: the section 'laptop' is missing"


def test_unknown_data_set(trial):
    assert "there is no data set 'emnist'; known: mnist" in refused(
        trial, "--config", "data={emnist: /nowhere}"
    )


def test_own_data_that_are_not_there(trial):
    assert refused(trial, "--config", "data={mnist: /nowhere.npz}") == (
        "config/config.yaml: data: mnist: /nowhere.npz: no such file"
    )


@pytest.mark.parametrize(
    ("images", "why"),
    [
        (np.zeros((5, 28), np.uint8), "train_images: shape (5, 28), must have 3 axes"),
        (np.zeros((5, 28, 28), np.float32), "train_images: dtype float32, must be uint8"),
        (np.zeros((4, 28, 28), np.uint8), "axis 0 has 5 entries, but train_images has 4"),
    ],
)
def test_own_data_of_the_wrong_form(trial, images, why):
    path = trial.path / "own.npz"
    labels = np.zeros(5, np.int64)
    np.savez(
        path,
        train_images=images,
        train_labels=labels,
        test_images=np.zeros((5, 28, 28), np.uint8),
        test_labels=labels,
    )
    printed = trial.run(
        "results/data/mnist.npz", "--config", f"data={{mnist: {path}}}", check=False
    )
    (line,) = [line for line in printed.splitlines() if why in line]
    assert str(path) in line
    assert not list((trial.path / "results" / "data").glob("*.npz"))


def test_own_data_are_used_and_a_changed_file_is_seen(trial):
    path = trial.path / "own.npz"

    def save(value):
        images = np.full((2, 28, 28), value, np.uint8)
        labels = np.array([0, 1])
        np.savez(
            path,
            train_images=images,
            train_labels=labels,
            test_images=images,
            test_labels=labels,
        )

    options = ("results/data/mnist.npz", "--config", f"data={{mnist: {path}}}")
    save(3)
    trial.run(*options)
    assert trial.jobs(*options) == {}
    save(4)
    assert trial.jobs(*options) == {"data_mnist": 1}


def test_a_loss_that_is_not_finite_stops_and_is_not_tried_again(trial):
    trial.replace(
        "src/retable/trial/steps/train.py",
        "cross_entropy(net(noisy)",
        "cross_entropy(net(noisy / 0)",
    )
    printed = trial.run("--retries", "2", check=False)
    assert "the loss is not finite in epoch 1, step 1" in printed
    logs = [p.read_text() for p in trial.path.glob("results/laptop/trial/logs/train_*.log")]
    # The first attempt says it, the others end at once with the same line.
    costs = [
        p.read_text().splitlines() for p in trial.path.glob("results/laptop/trial/costs/train_*")
    ]
    assert any(len(lines) == 3 for lines in costs)
    assert all("the loss is not finite in epoch 1, step 1" in text for text in logs)
    assert not list(trial.path.glob("results/laptop/trial/digits/*/*"))
