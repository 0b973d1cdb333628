#!/bin/sh
# Audits what the images are built from for known vulnerabilities. .ci/audit.py tells what it needs, and when it fails.
set -eu

cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
# In an environment of its own: it needs much that Credence does not.
${PYTHON:-.venv/bin/python} -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check pip-audit==2.10.1
"$tools/bin/python" .ci/audit.py deploy/image/requirements.lock deploy/image/demo.lock deploy/image/build.lock
