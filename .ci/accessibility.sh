#!/bin/sh
# The pages in a browser, as axe-core judges them: it comes as an npm package. Anything serious or critical fails.
set -eu

cd "$(dirname "$0")/.."
. .ci/npm.sh
fetch axe-core@4.14.1
AXE="$directory/node_modules/axe-core/axe.min.js" ${PYTEST:-.venv/bin/pytest} tests/browser/test_axe.py "$@"
