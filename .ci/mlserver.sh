#!/usr/bin/env bash
# MLServer itself, in a virtual environment of its own as its packages conflict with ours: its answers over Kafka.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.7.1
place=${MLSERVER_VENV:-build/mlserver-$version}

if ! [ -x "$place/bin/mlserver" ]; then
  "${PYTHON:-.venv/bin/python}" -m venv "$place"
  "$place/bin/pip" install --quiet --disable-pip-version-check "mlserver==$version" "mlserver-sklearn==$version"
fi
MLSERVER="$(realpath "$place")/bin/mlserver" ${PYTEST:-.venv/bin/pytest} tests/mlserver "$@"
