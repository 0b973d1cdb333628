#!/usr/bin/env bash
# Builds both images from a base of its own, and runs them as a cluster would (.ci/image_smoke.py). Nothing comes from a
# registry of images: the base is a bare Debian by debootstrap. Needs root, and .venv with the extra `demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
# Its Python has to be 3.11: the bundled Redis of the demo has a wheel for no other.
suite=bookworm

if [ "$(id -u)" != 0 ]; then
  if [ "${CI:-}" = true ]; then
    echo "$0: needs root" >&2
    exit 1
  fi
  echo "$0: skipped, it needs root"
  exit 0
fi
if ! command -v buildah >/dev/null || ! command -v debootstrap >/dev/null || ! command -v redis-server >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    buildah debootstrap redis-server >/dev/null
fi

directory=$(mktemp -d)
store=(buildah --storage-driver vfs --root "$directory/storage" --runroot "$directory/run")
clean_up() {
  "${store[@]}" umount --all >/dev/null 2>&1 || true
  rm -rf --one-file-system "$directory"
}
trap clean_up EXIT

SECONDS=0
megabytes() { du -s --block-size=1MB "$1" | cut -f1; }
passed() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

# The machine's own mirror, if it has this suite.
mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' |
  awk -v suite="$suite" '$1 == suite && !found { print $2; found = 1 }')
debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv "$suite" "$directory/base" \
  ${mirror:+"$mirror"} >"$directory/debootstrap.log" || { tail -n 20 "$directory/debootstrap.log" >&2; exit 1; }
rm -rf "$directory"/base/var/cache/apt/* "$directory"/base/var/lib/apt/lists/* "$directory"/base/var/log/* \
  "$directory"/base/usr/share/{doc,info,locale,man}/*
container=$("${store[@]}" from scratch)
"${store[@]}" add --quiet "$container" "$directory/base" / >/dev/null
"${store[@]}" commit --quiet --rm "$container" credence-base >/dev/null
passed "a base of $(megabytes "$directory/base") MB: Debian $suite"
rm -rf --one-file-system "$directory/base"

# Certificates by which this machine knows where packages come from.
printf '[global]\ncert = /run/ca.pem\ntimeout = 180\n' >"$directory/pip.conf"
version=$("$python" -c 'from service import __version__; print(__version__)')
revision=$(git rev-parse HEAD)
for target in demo credence; do
  # The format of OCI has no health check.
  "${store[@]}" build --isolation chroot --format docker --pull-never --target "$target" \
    --tag "credence-$target" --timestamp "$(git log -1 --format=%ct)" \
    --build-arg BASE=localhost/credence-base --build-arg VERSION="$version" --build-arg REVISION="$revision" \
    --secret id=pip.conf,src="$directory/pip.conf" \
    --secret id=ca.pem,src=/etc/ssl/certs/ca-certificates.crt . >"$directory/$target.log" 2>&1 ||
    { tail -n 40 "$directory/$target.log" >&2; exit 1; }
  "${store[@]}" inspect --type image "credence-$target" >"$directory/$target.json"
  container=$("${store[@]}" from --pull-never "credence-$target")
  "${store[@]}" mount "$container" >"$directory/$target.root"
  passed "the image $target: $(megabytes "$(cat "$directory/$target.root")") MB"
done

PYTHONPATH=. "$python" .ci/image_smoke.py --version "$version" --revision "$revision" \
  --credence "$directory/credence.json" "$(cat "$directory/credence.root")" \
  --demo "$directory/demo.json" "$(cat "$directory/demo.root")"
passed "the images do what they should"
