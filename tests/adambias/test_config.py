import pytest
import yaml
from pydantic import ValidationError

from retable.adambias.config import Config, PrepareSettings, method_name, parse_method
from retable.common.configuration import load_paper, merge
from retable.common.errors import InputError


@pytest.mark.parametrize("setting", [(0.9, 0.999), (0.0, 0.99), (0.9, 0.99, 1e-6)])
def test_method_names_read_back(setting):
    beta, rho, eps = parse_method(method_name(*setting))
    assert (beta, rho) == setting[:2]
    assert eps == (setting[2] if len(setting) == 3 else None)


def test_method_names():
    assert method_name(0.9, 0.999) == "b0.9_r0.999"
    assert method_name(0.0, 0.99, 1e-6) == "b0_r0.99_e1e-06"


@pytest.fixture
def root(request):
    return request.config.rootpath


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_every_scale_reads(root, scale):
    config = load_paper("adambias", scale, root)
    settings = config.evaluate
    names = {method_name(*setting) for setting in config.methods["mnist14"]}
    if scale != "smoke":  # what the claims look at is trained
        assert {method_name(*settings.stage), method_name(*settings.usual)} <= names
        cases = {tuple(case) for case in config.defect.toy.cases}
        assert {settings.penalising, settings.impeding, settings.late} <= cases


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": {"mnist14": {"lr": 0.0}}}, "train.mnist14.lr"),
        ({"train": {"mnist14": {"bad": 1}}}, "train.mnist14.bad"),
        ({"methods": {"mnist14": [[1.0, 0.9]]}}, "methods.mnist14.0"),
        ({"methods": {"nosuch": [[0.9, 0.9]]}}, "methods names 'nosuch', which prepare does not"),
        ({"order": {"toy": {"start": [1.0]}}}, "order.toy.start"),
        ({"order": {"network": {"steps": [100, 50, 200]}}}, "steps must rise"),
        ({"order": {"network": {"steps": [0, 50, 200]}}}, "order.network.steps.0"),
        ({"defect": {"toy": {"first": 400}}}, "first must be < steps = 400, found 400"),
        ({"defect": {"network": {"first": 130}}}, "first must be < steps = 130, found 130"),
        ({"methods": {"cifar16": [[0.9, 0.9], [0.9, 0.9]]}}, "methods.cifar16 holds (0.9, 0.9) tw"),
        ({"methods": {"cifar16": [[0.9, 0.9999999]]}}, "more digits than its name 'b0.9_r1' tells"),
        ({"evaluate": {"sweep": "mnist41"}}, "evaluate.sweep names 'mnist41', allowed: mnist14"),
        ({"evaluate": {"levels": {"mnist14": [-0.5]}}}, "evaluate.levels.mnist14.0"),
        ({"evaluate": {"sweep_level": 0.4}}, "evaluate.sweep_level is 0.4 for 'mnist14', allowed"),
        ({"evaluate": {"large": ["vit"]}}, "evaluate.large names 'vit', allowed: mnist14, cifar16"),
        ({"evaluate": {"large": ["cifar16"]}}, "evaluate.large_level is 0.1 for 'cifar16'"),
    ],
)
def test_bad_configuration_names_the_key(root, change, message):
    content = yaml.safe_load((root / "config/adambias.yaml").read_text(encoding="utf-8"))
    with pytest.raises(ValidationError) as caught:
        Config.model_validate(merge(content["base"], change))
    place = caught.value.errors()[0]
    assert message.split(".")[0] in {*map(str, place["loc"]), *message.split(".")}
    text = ".".join(map(str, place["loc"])) + place["msg"]
    assert message in text


def test_mean_and_std_go_together():
    with pytest.raises(ValidationError, match="mean and std go together"):
        PrepareSettings(source="mnist", n=10, n_test=10, mean=(0.1,))


def test_the_error_of_a_run_names_the_file(root, tmp_path):
    (tmp_path / "config").mkdir()
    content = yaml.safe_load((root / "config/adambias.yaml").read_text(encoding="utf-8"))
    content["base"]["train"]["mnist14"]["lr"] = -1.0
    (tmp_path / "config/adambias.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(InputError, match=r"config/adambias.yaml.*train.mnist14.lr.*-1\.0"):
        load_paper("adambias", "laptop", tmp_path)
