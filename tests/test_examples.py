"""The examples run as they are, through the real interpreter and entry point, and say what is so."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import confrere as cf
from confrere.runs.config import read_config
from tests.conftest import CACHE, in_ci
from tests.meeting import free_port

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
COMMAND = Path(sys.executable).with_name("confrere")


def run(*command: object, cwd: Path, **environment: str) -> str:
    """What a command prints; programs that were compiled before are not compiled again."""
    cached = {"JAX_COMPILATION_CACHE_DIR": str(CACHE), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False,
        env=os.environ | cached | environment, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_weight_erosion_is_written_in_fifty_lines_at_most():
    lines = (EXAMPLES / "weight_erosion_in_50_lines.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 50


def test_weight_erosion_by_hand_listens_as_the_librarys_own_does(tmp_path):
    printed = run(sys.executable, EXAMPLES / "weight_erosion_in_50_lines.py", "36+", cwd=tmp_path)
    silos = cf.data.titanic("age-strict", seed=0)
    recipe = cf.weight_erosion(user="36+", lr=1.5, p_d=0.01, p_s=0.2, batch=161)
    history = cf.simulate(recipe, cf.models.logistic(), silos.for_user("36+"), rounds=30, user="36+")
    assert f"36+: accuracy {history.metrics['accuracy'][-1].item():.3f}." in printed
    said = re.findall(r"^ +(\S+) +#* +(\S+) at first, (\S+) at last$", printed, re.MULTILINE)
    first, last = history.weights[0, 0], history.weights[-1, 0]
    assert [name for name, _, _ in said] == list(silos.names)
    assert [float(at) for _, at, _ in said] == pytest.approx(first.tolist(), abs=0.006)
    assert [float(at) for _, _, at in said] == pytest.approx(last.tolist(), abs=0.006)


@pytest.mark.slow
def test_the_four_hospitals_from_check_to_prediction(shared_data, tmp_path):
    printed = run(
        sys.executable, EXAMPLES / "heart_disease.py", cwd=tmp_path, CONFRERE_DATA=str(shared_data), SEEDS="3"
    )
    for hospital, patients in {"cleveland": 303, "hungary": 294, "switzerland": 123, "va": 200}.items():
        assert f"{hospital}: {patients} patients" in printed
        assert re.search(rf"^{hospital}: \d+ % of what the model knows", printed, re.MULTILINE)
        assert re.search(rf"^{hospital}: accuracy 0\.\d+, listened to", printed, re.MULTILINE)
    assert len(re.findall(r"against (?:ridge_local|fedavg), 95 %", printed)) == 10
    assert "manifest.json, model.safetensors" in printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_two_processes_print_what_one_prints(tmp_path):
    example = EXAMPLES / "network_on_two_machines.py"
    one = run(sys.executable, example, cwd=tmp_path)
    assert "process 0 of 1: 600 of 600 nodes" in one
    coupled, single = map(float, re.findall(r"0\.\d{5}", one))
    assert coupled < single / 2
    address = f"localhost:{free_port()}"
    with ThreadPoolExecutor() as pool:
        words = [(sys.executable, example, k, 2, address) for k in range(2)]
        both = list(pool.map(lambda command: run(*command, cwd=tmp_path), words))
    for k, printed in enumerate(both):
        assert f"process {k} of 2: 300 of 600 nodes" in printed
        assert printed.splitlines()[-1] == one.splitlines()[-1]


def test_the_study_file_names_every_field_there_is():
    text = (EXAMPLES / "study.toml").read_text(encoding="utf-8")
    config = read_config(EXAMPLES / "study.toml")
    for part in ("data", "study"):
        for field in type(getattr(config, part)).model_fields:
            assert re.search(rf"^(# )?{field} = |^\[{part}\.{field}\]", text, re.MULTILINE), field


def test_the_study_file_is_still_right_where_its_comments_are_taken_away(tmp_path):
    text = (EXAMPLES / "study.toml").read_text(encoding="utf-8")
    bare = re.sub(r"^# (?=\[derive|\w+ = )", "", text, flags=re.MULTILINE)
    assert "derive" in tomllib.loads(bare)
    (tmp_path / "study.toml").write_text(bare, encoding="utf-8")
    config = read_config(tmp_path / "study.toml")
    assert config.choice().derive["south"]["days_ill"] == "duration_hours / 24"


@pytest.mark.slow
def test_the_study_file_runs(tmp_path):
    text = (EXAMPLES / "study.toml").read_text(encoding="utf-8")
    small = text.replace('["auto", "ridge_local", "fedavg", "weight_erosion"]', '["ridge_local", "fedsgd"]')
    small = small.replace("seeds = 5", "seeds = 1").split("[study.grid.weight_erosion]")[0]
    assert small != text
    (tmp_path / "study.toml").write_text(small, encoding="utf-8")
    printed = json.loads(run(COMMAND, "run", "study.toml", "--out", "out", "--json", cwd=tmp_path))
    assert set(printed["users"]) >= {"0-20", "36+"}


def test_four_hospitals_from_nothing_to_the_simulators_model(shared_data, tmp_path):
    if importlib.util.find_spec("nvflare") is None and not in_ci():
        pytest.skip("NVIDIA FLARE is not installed (confrere[deploy])")
    printed = run(
        "bash", EXAMPLES / "four_hospitals.sh", tmp_path / "four", cwd=tmp_path, CONFRERE_DATA=str(shared_data),
        CONFRERE_BIN=str(COMMAND), PYTHON=sys.executable,
    )  # fmt: skip
    found = json.loads(printed.splitlines()[-1])
    assert set(found) == {"sites", "rounds", "max_difference", "refused", "seconds"}
    assert (found["sites"], found["rounds"], found["refused"]) == (4, 30, 0)
    assert found["max_difference"] <= 1e-5
    assert "va does not take part: its operator has not approved this study" in printed
