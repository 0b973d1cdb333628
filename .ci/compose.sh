#!/bin/sh
# Validates the Compose files against the Compose specification's schema, loads them with the library that Compose is
# made of, and checks the configuration files that they mount. The library is a Go module, fetched by Go. Without Go
# the check is skipped, but never on CI (CI=true): there, a skipped check is a broken one.
set -eu

cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}

if ! command -v go >/dev/null 2>&1; then
  if [ "${CI:-}" = true ]; then
    echo "$0: go is not installed; CI needs it" >&2
    exit 1
  fi
  echo "$0: skipped, go is not installed"
  exit 0
fi

promtool check config deploy/compose/prometheus.yaml
amtool check-config deploy/compose/alertmanager.yaml

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

module=github.com/compose-spec/compose-go/v2
(cd .ci/compose && go mod download "$module" && go build -o "$scratch/load" .)
schema=$(cd .ci/compose && go list -m -f '{{.Dir}}' "$module")/schema/compose-spec.json

"$python" - "$schema" deploy/compose.yaml deploy/compose/notify.yaml <<'END'
import json
import sys
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

schema, *names = sys.argv[1:]
validator = Draft202012Validator(json.loads(Path(schema).read_text(encoding="utf-8")))
for name in names:
    if error := best_match(validator.iter_errors(yaml.safe_load(Path(name).read_text(encoding="utf-8")))):
        sys.exit(f"{name} does not fit the Compose specification: {error.json_path}: {error.message}")
    print(f"{name} fits the Compose specification's schema")
END

# A warning is a failure: nobody reads it.
load() {
  "$scratch/load" "$@" >"$scratch/services" 2>"$scratch/said" && [ ! -s "$scratch/said" ] || {
    cat "$scratch/said" >&2
    exit 1
  }
  echo "$*: loads with $(wc -l <"$scratch/services") services"
}

load deploy/compose.yaml
load deploy/compose.yaml deploy/compose/notify.yaml
