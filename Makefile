# Everything here is a shorthand; .ci/run is what decides.
SHELL := /bin/bash
LINT  := go tool -modfile=tools/go.mod golangci-lint

.DEFAULT_GOAL := help
.PHONY: help build test race fuzz lint locks fmt docs golden e2e ui conformance chaos chaos-replicas overload soak flows hostile bench bench-compare bench-stores profile demo ci release image clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-15s %s\n", $$1, $$2}'

build: ## Build bin/bridge, static
	.ci/run build

test: ## Run the tests
	go test ./...
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null || echo "no redis-server: tests that need one were left out; go test -v names them"

race: ## Run the tests with the race detector
	go test -race ./...

fuzz: ## Fuzz every target with a million inputs
	FUZZ_INPUTS=1000000 .ci/run fuzz

lint: ## Run the pinned linter
	$(LINT) run ./...

fmt: ## Format the code
	$(LINT) fmt ./...

docs: ## Write the generated parts of docs/
	go run ./cmd/bridge config docs --write docs/configuration.md
	go test ./observe/metrics -run TheDocument -update
	go test ./observe/diff -run TheDocument -update

golden: ## Write the golden transcripts anew; review the difference
	go test ./internal/wiretest -update

e2e: ## Run the end-to-end tests with the TypeScript SDKs (Node 20)
	.ci/run e2e

ui: ## Run the tests of the live view in Chromium (Node 20)
	.ci/run ui

conformance: ## Run the official conformance suites (Node 20)
	.ci/run conformance

locks: ## Run the Go tests with locks that check their order
	LOCKS="./ask/... ./authorize/... ./bridge/... ./cmd/bridge ./internal/... ./legacy/... ./observe/... ./sessions/... ./upstream/... ." .ci/run locks

chaos: ## Make 100,000 calls under faults and account for every one
	CHAOS_CALLS=100000 .ci/run chaos

chaos-replicas: ## Make 20,000 calls while replicas are killed, paused, cut off and restarted
	REPLICAS_CALLS=20000 .ci/run replicas

overload: ## Flood the bridge with greedy clients, and see whether others are served
	OVERLOAD_CALLS=500 .ci/run overload

soak: ## Open and end 20,000 sessions, and see whether memory comes back
	SOAK_SESSIONS=20000 .ci/run soak

flows: ## Keep 1,000,000 waiting questions in a file, within 512 MiB of memory
	FLOWS=1000000 FLOWS_SESSIONS=100000 .ci/run flows

hostile: ## Try ten million hostile messages on both hops
	HOSTILE_MESSAGES=10000000 .ci/run hostile

bench: ## Run the benchmarks with allocations
	go test -run '^$$' -bench . -benchmem ./...

bench-stores: ## Compare the stores with memory, in one run (needs redis-server)
	bench/stores.sh

bench-compare: ## Compare the bridge with a plain reverse proxy on the same traffic
	go run ./bench/compare

profile: ## Make the profile that the compiler optimises the bridge with
	bench/profile.sh

demo: ## Show the bridge at work
	go run ./cmd/bridge demo

ci: ## Run everything that must hold before a change lands
	.ci/run

release: ## Build the archives of a release: make release VERSION=v1.2.3
	go run ./deploy/release -version "$(VERSION)" -out dist

image: ## Build the container image: make image VERSION=v1.2.3
	deploy/build-image.sh "$(VERSION)"

clean: ## Remove what was built
	rm -rf bin dist
