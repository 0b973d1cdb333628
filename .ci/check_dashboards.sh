#!/bin/sh
# Checks the dashboards' JSON against Grafana's own types, which come as an npm package: unknown keys, wrong values,
# options that a panel does not have. Without npm it is skipped, but never on CI (CI=true): there, a skipped check
# is a broken one.
set -eu

cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}

if ! command -v npm >/dev/null 2>&1; then
  if [ "${CI:-}" = true ]; then
    echo "check_dashboards: npm is not installed; CI needs it" >&2
    exit 1
  fi
  echo "check_dashboards: skipped, npm is not installed"
  exit 0
fi

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
# The version of the SDK that the dashboards are built with; later Grafanas read what this one wrote.
npm install --prefix "$directory" --no-audit --no-fund --ignore-scripts --loglevel=error \
  @grafana/schema@10.1.0 typescript@5.6.3

"$python" -m deploy.grafana.typescript "$directory"
"$directory/node_modules/.bin/tsc" --noEmit --strict --skipLibCheck --target es2022 --module es2022 \
  --moduleResolution node "$directory"/*.ts
echo "the dashboards are what Grafana's types allow"
