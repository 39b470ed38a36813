#!/usr/bin/env bash
# Makes the profile that the Go toolchain optimises the bridge with: its CPU time under every
# kind of the comparison's traffic, and under questions that a store keeps
# (docs/adr/0020-a-profile-for-the-compiler.md).
#
#   bench/profile.sh -window 20s
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/memory" "$dir/file"
go build -o "$dir/compare" ./bench/compare
"$dir/compare" -modes closed -rounds 1 -window 15s -cpuprofile "$dir/memory" "$@"
"$dir/compare" -modes closed -kinds question -clients 64 -rounds 1 -window 15s -cpuprofile "$dir/file" "$@" -- --store.url "file:$dir/sessions.db" --store.durability relaxed
go tool pprof -proto -output "$dir/all" "$dir"/memory/*.pprof "$dir"/file/*.pprof
mv "$dir/all" cmd/bridge/default.pgo
