#!/usr/bin/env bash
# Makes the profile that the Go toolchain optimises the bridge with: its CPU time under every
# kind of the comparison's traffic, and under questions that a file and Redis keep
# (docs/adr/0020-a-profile-for-the-compiler.md). Needs redis-server in PATH.
#
#   bench/profile.sh -window 20s
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
redis=""
finish() {
  if [[ -n $redis ]]; then kill "$redis" && wait "$redis" || true; fi
  rm -rf "$dir"
}
trap finish EXIT
mkdir "$dir/memory" "$dir/file" "$dir/redis"
head -c 32 /dev/urandom | base64 > "$dir/keys"
port=${PROFILE_PORT:-16378}
redis-server --port "$port" --bind 127.0.0.1 --dir "$dir" --save "" --appendonly no > "$dir/redis.log" & redis=$!
go build -o "$dir/compare" ./bench/compare
"$dir/compare" -modes closed -rounds 1 -window 15s -cpuprofile "$dir/memory" "$@"
kept=(-modes closed -kinds question -clients 64 -rounds 1 -window 15s)
"$dir/compare" "${kept[@]}" -cpuprofile "$dir/file" "$@" -- --store.url "file:$dir/sessions.db" --store.durability relaxed
"$dir/compare" "${kept[@]}" -cpuprofile "$dir/redis" "$@" -- --store.url "redis://127.0.0.1:$port" --store.keys "$dir/keys"
go tool pprof -proto -output "$dir/all" "$dir"/memory/*.pprof "$dir"/file/*.pprof "$dir"/redis/*.pprof
mv "$dir/all" cmd/bridge/default.pgo
