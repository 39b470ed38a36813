#!/usr/bin/env bash
# What 100,000 stored sessions cost a call: bridges whose stores have them beside bridges whose
# stores have none, in one run. Needs redis-server in PATH. Arguments go to bench/compare.
#
#   bench/sessions.sh -rounds 5 -window 5s
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d "${STORES_DIR:-${TMPDIR:-/tmp}}/stores.XXXXXX")
redis=""
finish() {
  if [[ -n $redis ]]; then kill "$redis" && wait "$redis" || true; fi
  rm -rf "$dir"
}
trap finish EXIT
head -c 32 /dev/urandom | base64 > "$dir/keys"
port=${STORES_PORT:-16380}
redis-server --port "$port" --bind 127.0.0.1 --dir "$dir" --save "" --appendonly no > "$dir/redis.log" & redis=$!
for _ in $(seq 100); do redis-cli -p "$port" ping > /dev/null 2>&1 && break; sleep 0.1; done
go run ./bench/fill -url "file:$dir/full.db" -n "${SESSIONS:-100000}"
go run ./bench/fill -url "redis://127.0.0.1:$port/1" -n "${SESSIONS:-100000}"
${COMPARE:-go run ./bench/compare} -modes closed -kinds plain,question \
  -beside "file=--store.url file:$dir/empty.db --store.keys $dir/keys" \
  -beside "file100k=--store.url file:$dir/full.db --store.keys $dir/keys" \
  -beside "redis=--store.url redis://127.0.0.1:$port/0 --store.keys $dir/keys" \
  -beside "redis100k=--store.url redis://127.0.0.1:$port/1 --store.keys $dir/keys" "$@"
