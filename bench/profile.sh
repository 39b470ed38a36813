#!/usr/bin/env bash
# Makes the profile that the Go toolchain optimises the bridge with: its CPU time under every
# kind of the comparison's traffic (docs/adr/0020-a-profile-for-the-compiler.md).
#
#   bench/profile.sh -window 20s
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go run ./bench/compare -modes closed -rounds 1 -window 15s -cpuprofile "$dir" "$@"
go tool pprof -proto -output "$dir/all" "$dir"/*.pprof
mv "$dir/all" cmd/bridge/default.pgo
