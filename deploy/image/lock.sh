#!/bin/sh
# Pins what the image is built from, with the hashes of every file that may be installed:
#
#   requirements.lock  what the service needs
#   demo.lock          the same, and what `credence demo` needs
#   build.lock         what makes Credence's own wheel
#
# Versions that are pinned stay, where pyproject.toml allows them; `lock.sh --upgrade` takes the newest of all,
# `lock.sh --upgrade-package NAME` of one. The locks hold for Python 3.11 and newer, on every platform.
set -eu

cd "$(dirname "$0")"
pyproject=../../pyproject.toml
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
${PYTHON:-python3} -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9

lock() {
  name=$1
  shift
  # No address of an index: where packages come from is the builder's to say, the hashes tell what they are.
  "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
    --no-header --no-annotate "$@" --output-file "$name" >/dev/null
}

lock demo.lock --extra demo --extra schemas "$@" "$pyproject"
# The service alone gets what it has in the demo.
lock requirements.lock --extra schemas --constraint demo.lock "$@" "$pyproject"
"$tools/bin/python" -c '
import sys, tomllib
print(*tomllib.load(sys.stdin.buffer)["build-system"]["requires"], sep="\n")
' <"$pyproject" | lock build.lock "$@" -
