#!/usr/bin/env bash
# Prints the records of docs/connect.md that KServe's logger makes of real answers: those of KServe's scikit-learn
# server, and of Triton. It takes 15 minutes and 3 GB, so CI does not run it.
set -euo pipefail
cd "$(dirname "$0")/.."

kserve=0.15.2
pytriton=0.7.0
place=build/model-servers
mkdir -p "$place"

# The logger is KServe's agent; the scikit-learn server is in the same module, and not on PyPI.
source=$(go mod download -json "github.com/kserve/kserve@v$kserve" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
if ! [ -x "$place/agent" ]; then
  folder=$PWD
  (cd "$source" && go build -o "$folder/$place/agent" ./cmd/agent)
fi
if ! [ -x "$place/kserve/bin/python" ]; then
  "${PYTHON:-python3}" -m venv "$place/kserve"
  "$place/kserve/bin/pip" install --quiet "kserve==$kserve" scikit-learn pandas
fi
# Triton itself is in the wheel.
if ! [ -x "$place/triton/bin/python" ]; then
  "${PYTHON:-python3}" -m venv "$place/triton"
  "$place/triton/bin/pip" install --quiet "nvidia-pytriton==$pytriton"
  # Triton's own Python is older than releases that expect this method of it.
  cat >"$("$place/triton/bin/python" -c 'import site; print(site.getsitepackages()[0])')/sitecustomize.py" <<'PYTHON'
import multiprocessing.resource_tracker, threading

if not hasattr(threading.RLock(), "_recursion_count"):
    multiprocessing.resource_tracker._resource_tracker._lock = threading._PyRLock()
PYTHON
fi
SKLEARN_SERVER="$source/python/sklearnserver" "${PYTHON:-python3}" .ci/record_model_servers.py "$place"
