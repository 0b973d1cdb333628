#!/bin/sh
# Checks the dashboards' JSON against Grafana's own types, which come as an npm package: unknown keys, wrong values,
# options that a panel does not have.
set -eu

cd "$(dirname "$0")/.."
. .ci/npm.sh
# The version of the SDK that the dashboards are built with; later Grafanas read what this one wrote.
fetch @grafana/schema@10.1.0 typescript@5.6.3

"$python" -m deploy.grafana.typescript "$directory"
"$directory/node_modules/.bin/tsc" --noEmit --strict --skipLibCheck --target es2022 --module es2022 \
  --moduleResolution node "$directory"/*.ts
echo "the dashboards are what Grafana's types allow"
