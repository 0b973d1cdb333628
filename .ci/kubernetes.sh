#!/usr/bin/env bash
# Tests the chart on a real Kubernetes control plane: `kubernetes.sh admission` has an API server admit every object
# that the chart renders; without an argument releases are installed, upgraded, rolled back and removed too. The control
# plane is built from its Go modules once, and kept in the user's cache. What is missing skips, but never on CI (CI=true).
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/chart_tools.sh
tier=${1:-all}
cluster=$PWD/tests/kubernetes/cluster
programs=${XDG_CACHE_HOME:-$HOME/.cache}/credence-kubernetes/$(sha256sum "$cluster/go.mod" | cut -c 1-12)
version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' "$cluster/go.mod")

# program NAME PACKAGE: builds it if it is not there yet. What Go keeps meanwhile, gigabytes, goes with this script.
program() {
  local component=k8s.io/component-base/version minor=${version#v1.}
  [ -x "$programs/$1" ] && return
  echo "building $1 of Kubernetes $version, which takes minutes"
  mkdir -p "$programs"
  (
    cd "$cluster"
    export GOCACHE=$work/cache GOMODCACHE=$work/modules GOFLAGS=-modcacherw CGO_ENABLED=0
    # Without its version, the chart would find it too old.
    go build -trimpath -o "$work/$1" -ldflags \
      "-s -w -X $component.gitVersion=$version -X $component.gitMajor=1 -X $component.gitMinor=${minor%%.*}" "$2"
  )
  mv "$work/$1" "$programs/$1"
}

program etcd go.etcd.io/etcd/server/v3
program kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
run=(env "KUBERNETES=$programs" "DEFINITIONS=$(definitions)" PYTHONPATH=. "$python" -m pytest -rs)
for package in "${helms[@]}"; do
  echo "$package"
  HELM=$(tool "$package") "${run[@]}" tests/kubernetes/test_admission.py
done
[ "$tier" = admission ] && exit

[ "$(id -u)" = 0 ] || missing "root gives pods their users, and this is none"
unshare --net true 2>/dev/null || missing "this system has no network namespaces"
command -v ip >/dev/null || missing "ip of the package iproute2 is not installed"
program kubectl k8s.io/kubernetes/cmd/kubectl
program kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
program kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
"$python" tests/stack/kafka_distribution.py
# A network of their own, in which pods (10.0.0.0/16) and Services (10.96.0.0/16) have addresses.
HELM=$(tool "${helms[-1]}") unshare --net bash -euc '
  ip link set lo up
  ip address add 10.0.0.1/16 dev lo
  ip address add 10.96.0.1/16 dev lo
  exec "$@"' bash "${run[@]}" --broker apache tests/kubernetes --ignore tests/kubernetes/test_admission.py
