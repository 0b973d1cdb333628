#!/usr/bin/env bash
# Checks the chart by Helm itself, the oldest and the newest that it is for: lint, package, tests, and every rendered
# object by the schemas of Kubernetes 1.29 to the newest, of the Prometheus Operator, and of KEDA. Tools and schemas are
# Go modules; they are built and made once, and kept in the user's cache. Without Go the check is skipped, but never on
# CI (CI=true): there, a skipped check is a broken one.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/credence-chart
# Of Kubernetes; more are looked for, fewer are an error.
oldest_minor=29
known_minor=37
helms=(helm.sh/helm/v3/cmd/helm@v3.22.0 helm.sh/helm/v4/cmd/helm@v4.3.1)
kubeconform=github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
crds=(
  github.com/prometheus-operator/prometheus-operator@v0.85.0/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml
  github.com/prometheus-operator/prometheus-operator@v0.85.0/example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml
  github.com/kedacore/keda/v2@v2.21.0/config/crd/bases/keda.sh_scaledobjects.yaml
)

if ! command -v go >/dev/null; then
  if [ "${CI:-}" = true ]; then
    echo "$0: Go is not installed; CI needs it" >&2
    exit 1
  fi
  echo "$0: skipped, Go is not installed"
  exit 0
fi

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

kubernetes_schemas() {
  local minor version folder
  for ((minor = oldest_minor; ; minor++)); do
    folder=$cache/schemas/v1.$minor.0
    if [ ! -d "$folder" ]; then
      # A new minor version may be there before the proxy lists it.
      version=$(in_go list -m "k8s.io/kubernetes@v1.$minor" 2>/dev/null \
        || in_go list -m "k8s.io/kubernetes@v1.$minor.0" 2>"$work/error") || break
      module_file "k8s.io/kubernetes@${version##* }/api/openapi-spec/swagger.json" >"$work/kubernetes.json"
      PYTHONPATH=. "$python" -m helm.kubernetes_schemas "$work/made" "$work/kubernetes.json"
      mkdir -p "$cache/schemas"
      mv "$work/made" "$folder"
      rm -rf "$work/modules"
    fi
    minors+=("$minor")
  done
  if [ "$minor" -le "$known_minor" ]; then
    echo "$0: the schemas of Kubernetes 1.$minor cannot be reached: $(tail -n 1 "$work/error")" >&2
    exit 1
  fi
}

custom_schemas() {
  local folder file
  folder=$cache/schemas/custom-$(sha256sum <<<"${crds[*]}" | cut -c 1-12)
  if [ ! -d "$folder" ]; then
    for file in "${crds[@]}"; do
      module_file "$file" >"$work/custom.yaml"
      PYTHONPATH=. "$python" -m helm.kubernetes_schemas "$work/made" "$work/custom.yaml"
    done
    mkdir -p "$cache/schemas"
    mv "$work/made" "$folder"
    rm -rf "$work/modules"
  fi
  custom=$folder
}

minors=()
kubernetes_schemas
custom_schemas
checker=$(tool "$kubeconform")

# Rules and dashboards are links to the files of deploy/, which Helm tells every time.
quietly() { "$@" 2> >(grep -v 'found symbolic link in path' >&2); }

for package in "${helms[@]}"; do
  helm=$(tool "$package")
  echo "$package"
  newest=1.${minors[-1]}.0
  for values in helm/credence/ci/*.yaml; do
    quietly "$helm" lint --strict --quiet --kube-version "$newest" helm/credence --values "$values"
    for minor in "${minors[@]}"; do
      quietly "$helm" template release helm/credence --namespace credence --kube-version "1.$minor.0" \
        --values "$values" >"$work/$(basename "$values" .yaml)-$minor.yaml"
    done
  done
  for minor in "${minors[@]}"; do
    echo "Kubernetes 1.$minor: $("$checker" -strict -summary -kubernetes-version "1.$minor.0" \
      -schema-location "$cache/schemas/{{ .NormalizedKubernetesVersion }}/{{ .ResourceKind }}{{ .KindSuffix }}.json" \
      -schema-location "$custom/{{ .ResourceKind }}{{ .KindSuffix }}.json" "$work"/*-"$minor".yaml)"
  done
  HELM=$helm PYTHONPATH=. "$python" -m pytest -rs tests/chart
done
