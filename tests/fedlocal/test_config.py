from pathlib import Path

import pytest

from retable.common.configuration import load_paper
from retable.common.errors import InputError
from retable.fedlocal.config import Config, SyntheticSettings, TrainSettings, local_steps

ROOT = Path(__file__).resolve().parents[2]
SYNTHETIC = {
    "n_major": 2,
    "n_minor": 1,
    "gamma": 0.5,
    "kappa": 0.1,
    "n": 4,
    "dim": 20,
    "filters": 3,
    "init_std": 0.1,
    "lr": 0.1,
    "steps": 10,
    "methods": ["global", "local5"],
}
TRAIN = {"batch": 2, "lr": 0.1, "steps": 8, "methods": ["parallel", "local4"]}
CONFIG = {
    "seeds": [0],
    "synthetic": {"s1": SYNTHETIC},
    "prepare": {"r1": {"n_train": 64, "h": 0.5, "clients": 2}},
    "train": {"r1": TRAIN},
}


def test_methods_name_their_local_steps():
    assert local_steps("global", 100) == 1
    assert local_steps("local64", 100) == 64
    assert local_steps("one_shot", 100) == 100


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_every_scale_can_be_read(scale):
    config = load_paper("fedlocal", scale, ROOT)
    assert set(config.prepare) == set(config.train)
    assert {"global", "local100"} <= set(config.synthetic["s1"].methods)
    assert config.evaluate.main in config.train
    assert config.figure.local in config.train[config.figure.main].methods


def test_the_paper_scale_is_the_published_setting():
    config = load_paper("fedlocal", "paper", ROOT)
    main = config.train["main_a_h0.5"]
    assert (main.model, main.num_outputs, main.image, main.batch) == ("resnet18", 1000, 32, 64)
    assert (main.lr, main.steps, main.augment) == (0.01, 16384, False)
    assert config.train["main_b_h0.25"].steps == 65536
    assert config.train["noise_rho0.125"].steps == 98304
    assert config.prepare["noise_rho0.125"].noise_mode == "wrap"
    assert main.average_buffers == "local"


def test_runs_are_wildcards_and_no_settings():
    one = SyntheticSettings(**SYNTHETIC)
    more = SyntheticSettings(**(SYNTHETIC | {"methods": ["global"], "seeds": [7]}))
    assert one.model_dump() == more.model_dump()
    assert TrainSettings(**(TRAIN | {"methods_per_job": 2})).method_groups() == ["parallel+local4"]
    assert TrainSettings(**TRAIN).method_groups() == ["parallel", "local4"]


def test_files_of_all_jobs():
    config = Config.model_validate(
        CONFIG
        | {
            "seeds": [0, 1],
            "synthetic": {"s1": SYNTHETIC | {"seeds": [0, 1, 2], "seeds_per_job": 2}},
        }
    )
    pattern = "{experiment}/{methods}/{seeds}"
    assert config.files("synthetic", pattern) == [
        *("s1/global/0-1", "s1/global/2", "s1/local5/0-1", "s1/local5/2"),
    ]
    assert config.files("train", pattern) == [
        f"r1/{method}/{seed}" for method in ("parallel", "local4") for seed in (0, 1)
    ]


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("synthetic", {"gamma": 1.0}, r"gamma is 1.0; it must be below alpha = 1.0"),
        ("synthetic", {"dim": 14}, "dim is 14; it must be at least 15"),
        ("synthetic", {"methods": ["parallel"]}, "must be global, one_shot or local<I>"),
        ("synthetic", {"methods": ["local11"]}, "there are only 10 steps"),
        ("synthetic", {"methods": []}, "s1: methods is empty"),
        ("synthetic", {"init_std": {"global": 0.1}}, "method local5: init_std has no value"),
        ("synthetic", {"init_std": 0.0}, "init_std is 0.0; it must be positive"),
        ("train", {"methods": ["global"]}, "must be parallel, parallel_rounds, one_shot or local"),
        ("train", {"methods": ["local0"]}, "method local0: must be"),
        ("train", {"methods": ["local9"]}, "there are only 8 steps"),
        ("train", {"batch": 40}, "r1: batch is 40; clients have 29 images"),
        ("train", {"seeds_per_job": 2}, "must share seeds and seeds_per_job"),
        ("prepare", {"h": 1.2}, "less than or equal to 1"),
        ("prepare", {"rho": -0.1}, "greater than or equal to 0"),
        ("prepare", {"clients": 1}, "greater than or equal to 2"),
        ("prepare", {"noise_mode": "cut"}, "'clip' or 'wrap'"),
    ],
)
def test_bad_settings(part, change, message):
    (name,) = CONFIG[part]
    bad = CONFIG | {part: {name: CONFIG[part][name] | change}}
    with pytest.raises(ValueError, match=message):
        Config.model_validate(bad)


def test_experiments_on_images_need_data_and_training():
    with pytest.raises(ValueError, match="both must name the same experiments"):
        Config.model_validate(CONFIG | {"prepare": {"r9": {"n_train": 64, "h": 0.5}}})


def test_an_unknown_key_is_named(tmp_path):
    (tmp_path / "config").mkdir()
    text = (ROOT / "config/fedlocal.yaml").read_text().replace("kappa:", "kapa:")
    (tmp_path / "config/fedlocal.yaml").write_text(text)
    with pytest.raises(
        InputError, match=r"config/fedlocal.yaml, smoke: synthetic.s1.kapa: unknown"
    ):
        load_paper("fedlocal", "smoke", tmp_path)
