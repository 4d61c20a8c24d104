"""The HTML report, opened in a real browser without a network."""

import base64
import html
import re
import shutil
import subprocess

import pytest

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_the_report_shows_every_table_and_figure(finished, tmp_path):
    report = finished.path / "results" / "report.html"
    finished.run("--report", "results/report.html")
    page = subprocess.run(
        [
            BROWSER,
            *QUIET,
            f"--user-data-dir={tmp_path / 'browser'}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            report.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    shown = html.unescape(page)
    for category in ("trial", "summary"):
        assert re.search(rf">\s*{category}\s*<", shown), f"no category {category}"
    content = report.read_text()
    for file in (
        "table_trial.csv",
        "figure_trial.png",
        "claims.csv",
        "claims_checks.csv",
        "costs.csv",
    ):
        assert f"results/{file}" in content, f"the report does not hold {file}"
    assert (
        base64.b64encode((finished.path / "results/figure_trial.png").read_bytes())[:200].decode()
        in content
    )
    assert "What the reproduction rests on: derived." in content
