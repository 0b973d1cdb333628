#!/usr/bin/env bash
# Checks the chart by Helm itself, the oldest and the newest that it is for: lint, package, tests, and every rendered
# object by the schemas of Kubernetes 1.29 to the newest, of the Prometheus Operator, and of KEDA. The schemas are made
# once, and kept in the user's cache. Without Go the check is skipped, but never on CI (CI=true): there, a skipped check
# is a broken one.
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/chart_tools.sh
# Of Kubernetes; more are looked for, fewer are an error.
oldest_minor=29
known_minor=37
kubeconform=github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0

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

minors=()
kubernetes_schemas
custom=$(definitions)
checker=$(tool "$kubeconform")

for package in "${helms[@]}"; do
  helm=$(tool "$package")
  echo "$package"
  newest=1.${minors[-1]}.0
  for values in helm/credence/ci/*.yaml; do
    "$helm" lint --strict --quiet --kube-version "$newest" helm/credence --values "$values"
    for minor in "${minors[@]}"; do
      "$helm" template release helm/credence --namespace credence --kube-version "1.$minor.0" \
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
