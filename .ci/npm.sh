# For checks that need npm packages, to be sourced: `$directory`, a folder that goes away in the end, `$python`, and
# `fetch PACKAGE...` into that folder. Without npm the check is skipped, but never on CI (CI=true): there, a skipped
# check is a broken one.
python=${PYTHON:-.venv/bin/python}

if ! command -v npm >/dev/null 2>&1; then
  if [ "${CI:-}" = true ]; then
    echo "$0: npm is not installed; CI needs it" >&2
    exit 1
  fi
  echo "$0: skipped, npm is not installed"
  exit 0
fi

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

fetch() {
  npm install --prefix "$directory" --no-audit --no-fund --ignore-scripts --loglevel=error "$@"
}
