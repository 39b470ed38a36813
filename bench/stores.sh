#!/usr/bin/env bash
# The stores against memory, in one run: plain calls, which no store may slow down, and
# questions, of 64 clients at a time. Needs redis-server in PATH. Arguments go to bench/compare.
#
#   bench/stores.sh -rounds 5 -window 5s
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
port=${STORES_PORT:-16379}
redis-server --port "$port" --bind 127.0.0.1 --dir "$dir" --save "" --appendonly no > "$dir/redis.log" & redis=$!
for _ in $(seq 100); do redis-cli -p "$port" ping > /dev/null 2>&1 && break; sleep 0.1; done
${COMPARE:-go run ./bench/compare} -modes closed -kinds plain,question -clients 64 \
  -beside "strict=--store.url file:$dir/strict.db" \
  -beside "relaxed=--store.url file:$dir/relaxed.db --store.durability relaxed" \
  -beside "strict, no journal=--store.url file:$dir/direct.db --store.journal off" \
  -beside "relaxed, no journal=--store.url file:$dir/loose.db --store.journal off --store.durability relaxed" \
  -beside "redis=--store.url redis://127.0.0.1:$port --store.keys $dir/keys" "$@"
