# One line of help a target: the comment after ##. No second task runner.

GO            ?= go
GOLANGCI_LINT  = $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK    = $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0

# make crash: how many kills, and the seed that repeats a run (0 draws one).
KILLS    ?= 10000
SEED     ?= 0
# make fuzz: how long for each target.
FUZZTIME ?= 60s
# The modules of the repository. Users of the library download the first only.
MODULES = . bench examples/outside
# The race detector for all code but SQLite's and Go's parser, type checker and regular
# expressions, see decision 59.
RACE = -race -gcflags=modernc.org/...=-race=false -gcflags=go/...=-race=false -gcflags=regexp/...=-race=false
# make bench: which benchmarks.
BENCH    ?= transitions flat tree recover status run

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z\/-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check
check: fmt/check tidy/check vet build/all test/race ## Everything CI runs

.PHONY: build
build: ## Build bin/perdure, static and without debug information
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/perdure ./cmd/perdure

.PHONY: release
release: ## Build dist/ for every supported system, with SHA256SUMS
	@rm -rf dist; mkdir dist
	@set -e; for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do \
	  name=dist/perdure-$$(echo $$target | tr / -); echo $$name; \
	  CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -trimpath -ldflags '-s -w' -o $$name ./cmd/perdure; \
	done
	@cd dist && sha256sum perdure-* > SHA256SUMS

.PHONY: build/all
build/all: ## Build for every supported system
	@set -e; for os in linux darwin windows; do for mod in $(MODULES); do \
	  echo "go build for $$os in $$mod"; CGO_ENABLED=0 GOOS=$$os $(GO) -C $$mod build -o /dev/null ./...; \
	done; done

.PHONY: test
test: ## Run all tests; what the machine lacks is skipped
	@set -e; for mod in $(MODULES); do $(GO) -C $$mod test ./...; done

.PHONY: test/race
test/race: ## Run all tests with the race detector
	@set -e; for mod in $(MODULES); do $(GO) -C $$mod test $(RACE) ./...; done

.PHONY: test/postgres
test/postgres: ## Run all tests; a missing PostgreSQL is an error
	PERDURE_REQUIRE=postgres $(GO) test $(RACE) ./...

.PHONY: test/long
test/long: ## Run all tests with many more rounds, for hours; CI does it each night
	PERDURE_LONG=1 $(GO) test -count=1 -timeout 6h ./...

# make test/agents: where npm installs the clients, outside of the repository.
AGENTS   ?= $(HOME)/.cache/perdure-test-agents
CLIENTS   = @anthropic-ai/claude-code@2.1.328 @openai/codex@0.169.0 @google/gemini-cli@0.61.0 opencode-ai@1.18.33 \
            @agentclientprotocol/claude-agent-acp@0.49.0 @agentclientprotocol/codex-acp@2.6.0 node@24
# Their install scripts put the programs into place; newer versions of npm run only the allowed ones.
SCRIPTS   = "@anthropic-ai/claude-code": true, "opencode-ai": true, "node": true

.PHONY: test/agents
test/agents: ## Run the tests with real agents from npm: make test/agents AGENTS=FOLDER
	mkdir -p $(AGENTS)
	echo '{"private": true, "allowScripts": {$(SCRIPTS)}}' > $(AGENTS)/package.json
	npm install --prefix $(AGENTS) --no-audit --no-fund $(CLIENTS)
	PERDURE_TEST_AGENTS=$(AGENTS) $(GO) test -count=1 -timeout 2h -parallel 2 ./agent/command ./agent/acp -run TestReal
	PERDURE_TEST_AGENTS=$(AGENTS) $(GO) test -count=1 -timeout 2h ./e2e -run TestRealAgents

.PHONY: crash
crash: ## Kill at random moments: make crash KILLS=10000 SEED=1
	PERDURE_CRASH_KILLS=$(KILLS) PERDURE_CRASH_SEED=$(SEED) PERDURE_REPL_KILLS=500 \
	$(GO) test -count=1 -v -timeout 0 ./e2e -run 'TestRandomKills|TestKilledWorkers|TestIPCKills|TestVariableKills'

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

.PHONY: bench
bench: ## Run the benchmarks, one JSON line a result: make bench BENCH="flat tree"
	@set -e; for what in $(BENCH); do $(GO) run -C bench . $$what; done

.PHONY: bench-detect
bench-detect: ## Print recall and false alarms of the detectors (fetches released packages)
	$(GO) run -C bench ./detect planted
	$(GO) run -C bench ./detect unseen
	$(GO) run -C bench ./detect mutants
	$(GO) run -C bench ./detect commits
	$(GO) run -C bench ./detect patches
	$(GO) run -C bench ./detect releases
	$(GO) run -C bench ./detect small
	$(GO) run -C bench ./detect latency -n 200

.PHONY: bench-detect/ratchet
bench-detect/ratchet: ## Fail if recall or false alarms of the detectors got worse
	$(GO) run -C bench ./detect ratchet

.PHONY: vet
vet: ## Run go vet
	@set -e; for mod in $(MODULES); do $(GO) -C $$mod vet ./...; done

.PHONY: lint
lint: ## Run golangci-lint (the first time builds it, which takes minutes)
	@set -e; for mod in $(MODULES); do (cd $$mod && $(GOLANGCI_LINT) run ./...); done

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what is used
	@set -e; for mod in $(MODULES); do (cd $$mod && $(GOVULNCHECK) ./...); done

.PHONY: fmt
fmt: ## Format all Go files
	gofmt -w .

.PHONY: fmt/check
fmt/check: ## Fail when a Go file is not formatted
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted:"; echo "$$unformatted"; exit 1; }

.PHONY: tidy
tidy: ## Update every go.mod and go.sum
	@set -e; for mod in $(MODULES); do $(GO) -C $$mod mod tidy; done

.PHONY: tidy/check
tidy/check: ## Fail when a go.mod or go.sum is not tidy
	@for mod in $$(find . -name go.mod -not -path '*/testdata/*'); do \
	  echo "go mod tidy -diff in $$(dirname $$mod)"; $(GO) -C "$$(dirname $$mod)" mod tidy -diff || exit 1; \
	done

.PHONY: generate
generate: ## Regenerate what is generated
	$(GO) generate ./...

.PHONY: docs
docs: ## Check that the examples and the documentation match the code
	$(GO) build ./examples/...
	$(GO) test -count=1 -run 'Example|Docs' ./...

.PHONY: verify
verify: generate ## Fail when modules or generated files are not what they should be
	$(GO) mod verify
	git diff --exit-code
