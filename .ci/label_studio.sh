#!/usr/bin/env bash
# Label Studio itself, in a virtual environment of its own, against the vendor API: its webhooks, exports, imports.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.23.2
place=${LABEL_STUDIO_VENV:-build/label-studio-$version}

if ! [ -x "$place/bin/label-studio" ]; then
  "${PYTHON:-.venv/bin/python}" -m venv "$place"
  "$place/bin/pip" install --quiet --disable-pip-version-check "label-studio==$version"
fi
LABEL_STUDIO="$(realpath "$place")/bin/label-studio" ${PYTEST:-.venv/bin/pytest} tests/label_studio "$@"
