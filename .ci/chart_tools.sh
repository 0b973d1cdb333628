# To be sourced by what checks the chart: Helm, and definitions of resources that are not Kubernetes' own. They are Go
# modules, fetched and built once and kept in the user's cache. Without Go the check that sources this ends here.
python=${PYTHON:-.venv/bin/python}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/credence-chart
helms=(helm.sh/helm/v3/cmd/helm@v3.22.0 helm.sh/helm/v4/cmd/helm@v4.3.1)
crds=(
  github.com/prometheus-operator/prometheus-operator@v0.85.0/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml
  github.com/prometheus-operator/prometheus-operator@v0.85.0/example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml
  github.com/kedacore/keda/v2@v2.21.0/config/crd/bases/keda.sh_scaledobjects.yaml
)

# missing WHAT: ends the check that lacks something.
missing() {
  if [ "${CI:-}" = true ]; then
    echo "$0: $1; CI needs it" >&2
    exit 1
  fi
  echo "$0: skipped, $1"
  exit 0
}

command -v go >/dev/null || missing "Go is not installed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Go is asked from outside the repository, which is no module.
in_go() { (cd "$work" && GOFLAGS="${GOFLAGS:-} -modcacherw" go "$@"); }

# tool PACKAGE@VERSION: where it is, built if it is not there yet.
tool() {
  local folder
  folder=$cache/tools/$(tr '/@' '--' <<<"$1")
  if [ ! -d "$folder" ]; then
    mkdir -p "$cache/tools"
    GOBIN=$work/built in_go install "$1" >&2
    mv "$work/built" "$folder"
  fi
  find "$folder" -type f -executable
}

# module_file MODULE@VERSION/PATH: copies one file of a module to standard output. Modules of this size are not kept.
module_file() {
  local module path folder
  module=$(sed -E 's#(@[^/]+)/.*#\1#' <<<"$1")
  path=${1#"$module"/}
  GOMODCACHE=$work/modules in_go mod download "$module" >&2
  folder=$(GOMODCACHE=$work/modules in_go mod download -json "$module" | "$python" -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
  cat "$folder/$path"
}

# definitions: the folder with the files of `crds`, and a schema of each resource in them.
definitions() {
  local folder file
  folder=$cache/definitions-$(sha256sum <<<"${crds[*]}" | cut -c 1-12)
  if [ ! -d "$folder" ]; then
    mkdir "$work/definitions"
    for file in "${crds[@]}"; do
      module_file "$file" >"$work/definitions/$(basename "$file")"
      PYTHONPATH=. "$python" -m helm.kubernetes_schemas "$work/definitions" "$work/definitions/$(basename "$file")"
    done
    mkdir -p "$cache"
    mv "$work/definitions" "$folder"
    rm -rf "$work/modules"
  fi
  echo "$folder"
}
