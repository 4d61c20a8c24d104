import doctest
import subprocess
import sys

import retable.hstu


def test_public_names_resolve():
    for name in retable.hstu.__all__:
        assert getattr(retable.hstu, name).__name__ == name


def test_import_is_light():
    code = "import sys, retable.hstu; print('torch' in sys.modules or 'numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "False"


def test_the_example_in_the_docstring():
    assert doctest.testmod(retable.hstu, raise_on_error=True).attempted == 6
