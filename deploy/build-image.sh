#!/usr/bin/env bash
# Builds the image, with docker's buildx or with podman, whichever is there:
#
#   deploy/build-image.sh v1.2.3          # bridge:v1.2.3, for this machine
#   IMAGE=registry.example.com/bridge PLATFORMS=linux/amd64,linux/arm64 PUSH=1 deploy/build-image.sh v1.2.3
#
# BASE_IMAGE and GO_IMAGE name other images than the Dockerfile does, for example
# by digest or in a registry of your own. ENGINE chooses between docker and podman.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: deploy/build-image.sh VERSION}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "VERSION is like v1.2.3, not $version" >&2; exit 2; }
tag=${IMAGE:-bridge}:$version
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)

args=(
  --file deploy/Dockerfile
  --tag "$tag"
  --build-arg "VERSION=$version"
  --label "org.opencontainers.image.title=MCP Bridge"
  --label "org.opencontainers.image.version=$version"
  --label "org.opencontainers.image.revision=$revision"
  --label "org.opencontainers.image.licenses=Apache-2.0"
)
for name in BASE_IMAGE GO_IMAGE; do
  if [[ -n ${!name:-} ]]; then args+=(--build-arg "$name=${!name}"); fi
done

fail() { echo "$1" >&2; exit "${2:-1}"; }

case ${ENGINE:=} in
  docker | podman) command -v "$ENGINE" >/dev/null || fail "$ENGINE is not installed" ;;
  "")
    if command -v docker >/dev/null; then ENGINE=docker
    elif command -v podman >/dev/null; then ENGINE=podman
    else fail "neither docker nor podman is installed"; fi
    ;;
  *) fail "ENGINE is docker or podman, not $ENGINE" 2 ;;
esac

case $ENGINE in
  docker)
    docker buildx version >/dev/null 2>&1 || fail "docker is installed without buildx; install that, or podman with ENGINE=podman"
    if [[ -n ${PLATFORMS:-} ]]; then args+=(--platform "$PLATFORMS"); fi
    # An image for several platforms has no place in the engine itself: it is pushed, or only built.
    if [[ -n ${PUSH:-} ]]; then args+=(--push); elif [[ ${PLATFORMS:-} != *,* ]]; then args+=(--load); fi
    docker buildx build "${args[@]}" .
    ;;
  podman)
    if [[ -n ${PLATFORMS:-} ]]; then
      args=("${args[@]/#--tag/--manifest}")
      podman build --platform "$PLATFORMS" "${args[@]}" .
      if [[ -n ${PUSH:-} ]]; then podman manifest push --all "$tag" "docker://$tag"; fi
    else
      podman build "${args[@]}" .
      if [[ -n ${PUSH:-} ]]; then podman push "$tag"; fi
    fi
    ;;
esac
