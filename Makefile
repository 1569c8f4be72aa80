# Everything the project does, it does by one of these targets; CI too.
SHELL := /bin/bash
GO    ?= go
CACHE ?= $(CURDIR)/.cache
BIN   := $(CACHE)/bin
LINT_VERSION := v2.15.0
GOTESTSUM_VERSION := v1.13.0
RACE  ?= -race
LONG  := ./test/e2e ./consumer ./outbox/relay ./test/kill ./cdc ./consumer/transform ./test/cli ./outbox/tables ./logistica/web ./test/... ./logistica/... # begun first, so that none is alone at the end
DIR   ?= .waybill
KILLS ?= 30
# How often a test that fails runs again, alone, before it counts: CI sets 1, for
# machines that are shared are slow at times. What passed only then is told at the
# end, to be mended. A data race is never run again, nor more than three failures.
AGAIN ?= 0
GOTEST = $(BIN)/gotestsum --format pkgname-and-test-fails --hide-summary skipped --rerun-fails=$(AGAIN) --rerun-fails-max-failures=3 --rerun-fails-abort-on-data-race
KAFKA_KILLS ?= 30
# How often a test that fails runs again, alone, before it counts: CI sets 1, for
# machines that are shared are slow at times. What passed only then is told at the
# end, to be mended. A data race is never run again, nor more than three failures.
AGAIN ?= 0
GOTEST = $(BIN)/gotestsum --format pkgname-and-test-fails --hide-summary skipped --rerun-fails=$(AGAIN) --rerun-fails-max-failures=3 --rerun-fails-abort-on-data-race

.PHONY: test-sagas up build test lint bench bench-relay bench-peers schema-check demo-evolution e2e setup clean test-kafka test-kill test-ledger test-ledger-nightly test-failover test-peers test-interop test-clickhouse fuzz fuzz-brief fuzz-nightly generate fmt picture demo-saga demo-outage

## up: build and start everything in one process, data in $(DIR)
up: build
	@bin/waybill up --dir $(DIR) $(ARGS)

## build: bin/waybill
build:
	@$(GO) build -trimpath -o bin/waybill ./cmd/waybill

## test: every test that needs no Kafka, under the race detector
test: setup build $(BIN)/gotestsum
	WAYBILL_TEST_SAGAS=200 WAYBILL_TEST_PROGRAM=$(CURDIR)/bin/waybill $(GOTEST) --packages="$(LONG) ./..." -- -count=1 $(RACE) -vet=off -ldflags=-w -p 3 -timeout 15m # lint vets; cached results know nothing of the program that test/... builds

## e2e: the whole product in a real browser, and kill -9 under load
e2e: setup
	$(GO) test -count=1 -timeout 20m ./test/...

## test-kill: kill -9 the process KILLS times under load, embedded broker
test-kill: setup
	WAYBILL_TEST_KILLS=$(KILLS) $(GO) test -count=1 -timeout 60m -run Kill -v ./test/kill/

## test-ledger: kill -9 of relays, broker and Postgres KILLS times in each mode; what is lost, late or twice
test-ledger: setup
	WAYBILL_TEST_KILLS=$(KILLS) $(GO) test -count=1 -timeout 60m -v ./test/ledger/

## test-ledger-nightly: the same with 200 kills
test-ledger-nightly:
	@$(MAKE) test-ledger KILLS=200

## test-sagas: a thousand orders at once find their couriers under faults, embedded broker (test-kafka has them on Kafka)
test-sagas: setup
	$(GO) test -count=1 -timeout 20m -run ManySagas -v ./test/assignment/

## test-failover: failover slots on Postgres 17 and 18, and the other tests of outbox and cdc there
test-failover: $(BIN)/gotestsum
	@test/setup.sh postgres
	pg/pgtest/fetch.sh 17 18
	for major in 17 18; do \
		WAYBILL_TEST_POSTGRES=$$major $(GOTEST) --packages="./pg/pgtest/ ./pg/wal/ ./outbox/... ./cdc/" -- -count=1 -timeout 15m || exit 1; \
	done

## test-kafka: the broker's, relay's, consumer's, modules' and end-to-end tests on a real Kafka
test-kafka: $(BIN)/gotestsum
	@test/setup.sh kafka
	test/kafka/kafka.sh env WAYBILL_TEST_KILLS=$(KAFKA_KILLS) $(GOTEST) --packages="\
		./broker/ ./registry/... ./outbox/... ./cdc/ ./consumer/... ./queue/... ./lag/ ./push/... \
		./logistica/orders/ ./logistica/couriers/ ./logistica/billing/ ./logistica/dispatch/ ./logistica/tracking/ ./test/..." \
		-- -count=1 -timeout 30m -p 1

## test-interop: other people's clients (Python, Java, kcat) on broker, registry and Kafka; our client on Apicurio's registry
test-interop:
	@test/setup.sh interop
	@test/interop/setup.sh >/dev/null
	WAYBILL_INTEROP=required $(GO) test -count=1 -timeout 10m ./test/interop/
	test/kafka/kafka.sh env WAYBILL_INTEROP=required $(GO) test -count=1 -timeout 10m ./test/interop/

## test-clickhouse: analytics on ClickHouse's own engine, as PyPI has it
test-clickhouse:
	@test/setup.sh interop
	@test/clickhouse/setup.sh >/dev/null
	WAYBILL_CLICKHOUSE=required $(GO) test -count=1 -timeout 10m ./projection/clickhouse/ ./logistica/analytics/

## bench: create→seen at 100 and 500 orders a second
bench: build
	bin/waybill bench e2e --rate 100 --seconds 10
	bin/waybill bench e2e --rate 500 --seconds 10

## bench-relay: from the outbox to the log, 300,000 events, beside pg_recvlogical
bench-relay: build
	bin/waybill bench relay $(ARGS)

## test-peers: what the comparison with others counts and prints
test-peers: build setup
	cd bench/peers && $(GO) test -count=1 -timeout 10m ./...

## bench-peers: the same work by Waybill, and by Watermill, River, Mercure and Centrifuge; ARGS='--only relay|consume|queue|push'
bench-peers: build
	cd bench/peers && $(GO) build -o ../../bin/bench-peers .
	bin/bench-peers $(ARGS)

## schema-check: no contract breaks what it was in any commit before
schema-check:
	@if [ "$$(git rev-parse --is-shallow-repository 2>/dev/null)" = false ]; then \
		$(GO) run ./cmd/waybill schema check logistica/contracts --git HEAD; \
	else echo "no history here: contracts are not compared with it"; fi

## demo-evolution: a contract changes while programs of both versions run; what would break one is refused
demo-evolution: build
	bin/waybill demo evolution

## demo-saga: an order that gets its courier, and one that is taken back, with their timelines and books
demo-saga: build
	bin/waybill demo saga

## demo-outage: billing is killed under load, and catches up
demo-outage: build
	bin/waybill demo outage

## lint: static checks, formatting and contracts; that generated code is up to date is a test
lint: $(BIN)/golangci-lint schema-check
	$(BIN)/golangci-lint run --allow-parallel-runners ./...
	$(GO) vet ./...
	cd bench/peers && $(BIN)/golangci-lint run --allow-parallel-runners ./...

$(BIN)/golangci-lint:
	@mkdir -p $(BIN)
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

$(BIN)/gotestsum:
	@mkdir -p $(BIN)
	GOBIN=$(BIN) $(GO) install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)

## picture: docs/img from a real run
picture: setup
	WAYBILL_PICTURES=$(CURDIR)/docs/img $(GO) test -count=1 -run Look ./test/e2e/

## fmt: format the code as lint wants it
fmt: $(BIN)/golangci-lint
	$(BIN)/golangci-lint fmt ./...

## generate: Go types from the contracts
generate:
	$(GO) generate ./...

## fuzz: each parser of bytes for FUZZTIME; FUZZ='Frame|Request' chooses some
FUZZTIME ?= 30s
FUZZ     ?= .
fuzz:
	@grep -rl --include=*_test.go '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		grep -rhoE '^func Fuzz[A-Za-z0-9]+' $$dir/*_test.go | cut -c6- | while read -r target; do \
			[[ $$target =~ $(FUZZ) ]] || continue; \
			echo "== $$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir </dev/null || exit 1; \
		done || exit 1; \
	done

## fuzz-nightly: the same with ten minutes each
fuzz-nightly:
	@$(MAKE) fuzz FUZZTIME=10m

## fuzz-brief: what strangers reach, for seconds; the whole in fuzz-nightly
fuzz-brief:
	@$(MAKE) fuzz FUZZTIME=3s FUZZ='^Fuzz(Frame|Batch|Records|Request|Apply|SchemaText|Body|ReadHeaders|OpenCursor|Decode|DecodeChanges|Split|SignatureHeader|URL)$$$$'

## setup: what tests need that a bare Debian or Ubuntu lacks
setup:
	@test/setup.sh

clean:
	rm -rf bin .waybill
