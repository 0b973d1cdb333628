#!/bin/sh
# Validates docs/contract/asyncapi.json against the official JSON Schema of AsyncAPI 3.0, which comes as an
# npm package.
set -eu

cd "$(dirname "$0")/.."
. .ci/npm.sh
fetch @asyncapi/specs@6.11.1

"$python" - "$directory/node_modules/@asyncapi/specs/schemas/3.0.0.json" docs/contract/asyncapi.json <<'EOF'
import json
import sys
from pathlib import Path

from jsonschema import Draft7Validator
from jsonschema.exceptions import best_match

schema, document = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:])
if error := best_match(Draft7Validator(schema).iter_errors(document)):
    sys.exit(f"{sys.argv[2]} is not valid AsyncAPI 3.0: {error.json_path}: {error.message}")
print(f"{sys.argv[2]} is valid AsyncAPI {document['asyncapi']}")
EOF
