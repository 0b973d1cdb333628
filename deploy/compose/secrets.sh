#!/bin/sh
# Creates the passwords that deploy/compose.yaml reads, in its secrets folder. Existing ones are kept. Only you can
# enter the folder. Containers mount single files, which must be readable for their users.
set -eu

folder=${CREDENCE_SECRETS:-$(dirname "$0")/secrets}
mkdir -p -m 700 "$folder"
umask 022

make() {
  [ -s "$folder/$1" ] || printf %s "$2" >"$folder/$1"
}

random() {
  od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

make redis_password "$(random)"
make redis_url "redis://:$(cat "$folder/redis_password")@redis:6379/0"
make grafana_password "$(random)"
echo "$folder: redis_password, redis_url, grafana_password"
