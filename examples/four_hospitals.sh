#!/usr/bin/env bash
# Four hospitals on one machine, each with a folder, a key and processes of its own: from nothing to personal models.
#
#     CONFRERE_DATA=... examples/four_hospitals.sh [FOLDER]
#
# The files are those of UCI's heart disease data (see `confrere.data.heart_disease`). The last line is JSON;
# `max_difference` is between the models at the hospitals and those of the same study in the simulator, and the script
# fails if it is above 1e-5. `refused` counts messages that the hub refused.
set -euo pipefail

folder=${1:-$(mktemp -d)}
bin=${CONFRERE_BIN:-confrere}
python=${PYTHON:-python3}
began=$(date +%s)
sites="cleveland hungary switzerland va"
pids=""
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || true; done; wait' EXIT
mkdir -p "$folder" && cd "$folder"

# The hospitals' own tables: one file each, at each its own.
"$python" - <<'PYTHON'
from pathlib import Path
from confrere.data.heart_disease import COLUMNS, FILES, hospital_file

for hospital in FILES:
    rows = [line.split(",") for line in hospital_file(hospital).read_text().split()]
    header = ",".join([*COLUMNS[:-1], "disease"])
    lines = [",".join([*row[:-1], "present" if row[-1] != "0" else "absent"]) for row in rows]
    Path(f"{hospital}.csv").write_text("\n".join([header, *lines]) + "\n")
PYTHON

cat > study.toml <<'TOML'
[data]
label = "disease"
categorical = ["cp", "restecg", "slope", "thal"]
missing = { chol = [0], trestbps = [0] }

[study]
sites = ["cleveland", "hungary", "switzerland", "va"]
algorithm = "weight_erosion"
options = { lr = 0.5, p_d = 0.01, p_s = 0.2 }
user = "va"
rounds = 30
test = 0.25
TOML

echo "== The hub"
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("localhost", 0)); print(s.getsockname()[1])')
"$bin" hub init hub --host localhost --port "$port"
fingerprint=$("$python" -c 'import json; print(json.load(open("hub/hub.json"))["fingerprint"])')
"$bin" hub start hub > hub.log 2>&1 &
pids="$pids $!"

echo "== The sites: request, approve at the hub, install, start"
for site in $sites; do
    "$bin" site request "$site" --folder "$site"
    "$bin" hub approve hub "$site/$site/$site.request.zip"
    "$bin" site install "hub/requests/$site.signed.zip" --folder "$site" --fingerprint "$fingerprint"
    "$bin" site start --folder "$site" --data "$site.csv" > "$site.log" 2>&1 &
    pids="$pids $!"
done

echo "== Proposed: nobody has approved it yet, so nothing runs"
if "$bin" deploy study.toml --hub hub; then echo "it ran without approvals"; exit 1; fi

echo "== Each hospital reads what it would do, and approves this very file"
hash=$("$python" -c 'import hashlib; print(hashlib.sha256(open("study.toml", "rb").read()).hexdigest())')
for site in $sites; do "$bin" site approve "$hash" --folder "$site"; done

echo "== Deployed"
"$bin" deploy study.toml --hub hub
"$bin" status --hub hub
"$bin" fetch "$hash" --folder va --out va-model  # with its card and a report
test -s va-model/report.html
"$bin" predict va-model va.csv --quiet --out predictions.csv
"$bin" stop "$hash" --hub hub
"$bin" hub revoke hub switzerland

SECONDS_TAKEN=$(( $(date +%s) - began )) "$python" - <<'PYTHON'
import json, os, sys
from pathlib import Path
import jax
from confrere.deploy.stations import standing, study_folder
from confrere.deploy.study import read_study
from confrere.deploy.twin import model_at, simulated
from confrere.saved import load_model
from confrere.testing import gap

study = read_study(Path("study.toml"))
history = simulated(study, {name: Path(f"{name}.csv") for name in study.names})
found = standing(study_folder(Path("hub"), study.hash))
difference = gap(model_at(history, "va"), load_model("va-model").model.params)
print(json.dumps({"sites": len(found["sites"]), "rounds": found["round"], "max_difference": difference,
                  "refused": found["refused"], "seconds": int(os.environ["SECONDS_TAKEN"])}))
sys.exit(not difference <= 1e-5)
PYTHON
