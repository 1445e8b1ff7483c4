"""The deployment files: they name what there is, and keep the rules of their formats."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from sapwood.cli.app import loaded
from sapwood.serve.metrics import HELP, Metrics

ROOT = next(each for each in Path(__file__).resolve().parents if (each / "deploy").is_dir())
DEPLOY = ROOT / "deploy"
OPTIONS = {name for each in loaded("serve").params for name in each.opts}


def test_options_and_metrics_in_the_files_exist():
    known = {
        sample.name for family in Metrics(dict).registry.collect() for sample in family.samples
    }
    known |= {f"sapwood_{name}" for name in ("request_seconds_bucket", "requests_total")}
    known |= set(HELP) | {f"{name}_total" for name in HELP}
    for path in sorted(each for each in DEPLOY.rglob("*") if each.is_file()):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"\bsapwood_[a-z0-9_]+", text):
            assert name in known, f"{path.name}: {name}"
        served = "\n".join(re.findall(r".*(?:model\.sapwood).*", text))
        for option in re.findall(r"(?<![\w-])--[a-z-]+", served):
            assert option in OPTIONS, f"{path.name}: {option}"


def test_the_dashboard_and_the_yaml_files_are_whole():
    board = json.loads((DEPLOY / "grafana" / "sapwood.json").read_text(encoding="utf-8"))
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) >= 12
    assert all(target["expr"] for panel in board["panels"] for target in panel["targets"])
    for path in [*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.yml")]:
        assert all(yaml.safe_load_all(path.read_text(encoding="utf-8"))), path
    kinds = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
    [writer] = [each for each in kinds if each["kind"] == "StatefulSet"]
    assert writer["spec"]["replicas"] == 1
    for each in kinds:
        if each["kind"] in ("StatefulSet", "Deployment"):
            [box] = each["spec"]["template"]["spec"]["containers"]
            assert box["readinessProbe"]["httpGet"]["path"] == "/readyz"
            assert box["livenessProbe"]["httpGet"]["path"] == "/healthz"
            assert box["securityContext"]["readOnlyRootFilesystem"]
            assert ("--read-only" in box["args"]) == (each["kind"] == "Deployment")


def test_the_dockerfile_keeps_the_rules_of_hadolint():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    names = [line.split()[0] for line in lines]
    stages = [line for line in lines if line.startswith("FROM")]
    assert all(re.fullmatch(r"FROM \S+:\d\S*( AS \w+)?", line) for line in stages)  # DL3006, DL3007
    assert not {"ADD", "MAINTAINER"} & set(names)  # DL3020, DL4000
    assert names.count("CMD") == names.count("ENTRYPOINT") == names.count("HEALTHCHECK") == 1
    assert all(
        json.loads(line.split(maxsplit=1)[1]) for line in lines if line[:3] in ("CMD", "ENT")
    )
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users[-1] != "root"  # DL3002
    assert all(
        line.split()[1].startswith("/") for line in lines if line.startswith("WORKDIR")
    )  # DL3000
    runs = [line for line in lines if line.startswith("RUN")]
    assert not any(
        re.search(r"\b(sudo|apt|wget|curl|cd)\b", line) for line in runs
    )  # DL3003, 4, 27
    assert all("--no-cache-dir" in line for line in runs if "pip install" in line)  # DL3042
    assert all("--no-log-init" in line for line in runs if "useradd" in line)  # DL3046
    sources = [word for line in lines if line.startswith("COPY p") for word in line.split()[1:-1]]
    assert all((ROOT / name).exists() for name in sources)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_reads_the_unit(tmp_path):
    text = (DEPLOY / "sapwood.service").read_text(encoding="utf-8")
    unit = tmp_path / "sapwood.service"
    unit.write_text(text.replace("/opt/sapwood/bin/sapwood", "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False, timeout=60
    )
    complaints = [line for line in done.stderr.splitlines() if "sapwood.service" in line]
    assert complaints == []
