# SPDX-License-Identifier: Apache-2.0

SWIFT ?= swift
# Seconds, or a time with its unit, that the demo runs.
DURATION ?= 30
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=
# A folder of captures with tshark's reading beside them, for check-captures.
DATA ?= Tests/Fixtures/captures
# How long make fuzz runs, all targets together; with RUNS=, how often it runs each instead. TARGETS= names some.
SECONDS ?= 60
RUNS ?=
TARGETS ?=
# The parts of make bench.
PARTS ?= replay publish steady scale footprint decode
# What make test-faults tries (all unless given), from which random numbers, how often, and for which share of the
# lengths that docs/faults.md has.
FAULTS ?=
SEED ?=
KILLS ?= 1000
DAMAGES ?= 2000
SHARE ?= 1

HARNESS := Tests/Harness
BENCHMARKS := Benchmarks
# STRICT=1: a warning is an error. In a folder of its own, because other flags in the same one build everything anew.
ifdef STRICT
BUILD := .build-strict
FLAGS := --scratch-path $(BUILD) -Xswiftc -warnings-as-errors
else
BUILD := .build
FLAGS :=
endif
DEBUG := $(BUILD)/debug/beacond
RELEASE := .build/release/beacond
FORMATTED := Package.swift Sources Tests
# The rest starts programs that are built without a sanitizer, or is about brokers and the kernel.
SANITIZED := ^(CoreTests|ConfigurationTests|StoreTests|SinkTests)[.]
# Arithmetic in safe Swift, which would take half of the time.
UNSANITIZED := (HitModel|Simulation|PresenceModel)
# Those with more than one thread.
THREADED := ^(StoreTests|SinkTests)[.]

.DEFAULT_GOAL := help
# Two builds at once would wait for each other in one folder.
.NOTPARALLEL:
.PHONY: help packages build release demo test unit-tests check-unit check-broker test-radio test-kills check-faults test-faults test-power-loss test-home-assistant check lint format \
	check-linkage check-allocations check-budgets check-captures bench evaluate fuzz sanitize reference \
	install clean

help: ## What can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

packages: # Installs what is missing of Debian's packages
	@.ci/packages

build: packages ## The debug build
	$(SWIFT) build $(FLAGS) --product beacond

release: packages ## The release build, with Swift's library inside, in .build/release
	$(SWIFT) build -c release --static-swift-stdlib --product beacond

demo: build ## Simulated beacons into a private broker, shown and checked; DURATION=30
	@$(HARNESS)/demo.py --beacond $(DEBUG) --scenario Tests/Fixtures/scenarios/demo.json --duration $(DURATION)

test: unit-tests check-unit check-broker check-faults test-radio ## Everything that tests need, then all tests

unit-tests: packages
	$(SWIFT) test $(FLAGS)

check-unit: build
	$(HARNESS)/check_unit.sh $(DEBUG)

check-broker: build
	$(HARNESS)/broker_kills.py --beacond $(DEBUG) --quick

test-radio: release ## beacond with virtual controllers, and in a virtual machine with a real kernel
	Tests/VirtualRadio/test_radio.sh $(RELEASE)

test-kills: release ## 20 kills of the broker and a black hole of a minute
	$(HARNESS)/broker_kills.py --beacond $(RELEASE)

check-faults: packages release # The part of test-faults that fits into a minute
	$(HARNESS)/faults/faults.py --beacond $(RELEASE) --quick --jobs 6 $(if $(SEED),--seed $(SEED)) $(FAULTS)

test-faults: packages release ## What can go wrong around it, docs/faults.md; FAULTS="F1 F6" SEED= KILLS= DAMAGES= SHARE=0.1 WRITE=1
	$(SWIFT) build $(FLAGS) --build-tests
	SWIFT_TEST="$(SWIFT) test $(FLAGS) --skip-build" $(HARNESS)/faults/faults.py --beacond $(RELEASE) --kills $(KILLS) \
		--damages $(DAMAGES) --share $(SHARE) $(if $(SEED),--seed $(SEED)) --results .build/faults.json \
		$(if $(WRITE),--write docs/faults.md) $(FAULTS)

# RUNS is that of make fuzz as well, and has no default there.
test-power-loss: packages release ## The power of a virtual machine with a gateway cut 50 times; RUNS= SEED= WRITE=1
	@.ci/packages radio
	@.ci/guest
	$(HARNESS)/faults/power_loss.py --beacond $(RELEASE) --verbose --runs $(or $(RUNS),50) $(if $(SEED),--seed $(SEED)) \
		--results .build/faults.json $(if $(WRITE),--write docs/faults.md)

test-home-assistant: packages release ## Real releases of Home Assistant (made once, gigabytes); RELEASES="2026.11.0" QUICK=1 PICTURE=file
	$(HARNESS)/home_assistant/home_assistant.py --beacond $(RELEASE) $(if $(QUICK),--quick) \
		$(if $(PICTURE),--picture $(PICTURE)) $(RELEASES)

check: lint ## Before a commit: format, warnings as errors, unit tests, linkage
	$(MAKE) unit-tests STRICT=1
	$(MAKE) check-linkage

lint: ## Whether the sources are formatted
	$(SWIFT) format lint --strict --parallel --recursive $(FORMATTED)

format: ## Formats the sources
	$(SWIFT) format format --in-place --parallel --recursive $(FORMATTED)

reference: build ## The tables of docs/configuration.md, from the declarations
	@$(DEBUG) schema --markdown >.build/keys.md
	sed -i -e '/^<!-- keys -->$$/r .build/keys.md' -e '/^<!-- keys -->$$/,/^<!-- end of keys -->$$/{//!d}' docs/configuration.md

check-linkage: release ## No Foundation in the release binary, and its size
	$(HARNESS)/check_linkage.sh $(RELEASE)

check-allocations: release ## No allocation in the second half of a replay of a million packets, and none for a line of decode
	$(HARNESS)/allocations/check_allocations.sh $(RELEASE)
	$(BENCHMARKS)/decode.py --beacond $(RELEASE) --only-allocations

check-budgets: release ## Instructions, system calls, memory and size within Benchmarks/budgets.json; RECORD=1 sets them
	@.ci/packages bench
	$(BENCHMARKS)/budgets.py --beacond $(RELEASE) $(if $(RECORD),--record)

bench: release ## How fast it is, beside others; QUICK=1 within two minutes, WRITE=1 into docs/performance.md, PARTS="replay"
	@.ci/packages bench
	@.ci/peers
	@.ci/venv bench
	set -e; for part in $(PARTS); do \
		$(BENCHMARKS)/$$part.py --beacond $(RELEASE) $(if $(QUICK),--quick) $(if $(WRITE),--write docs/performance.md); done

evaluate: release ## How right presence is: worlds with known truth, and the data in DATA=; QUICK=1, DAYS=5, WRITE=1 into docs
	@.ci/venv evaluate
	.cache/venv-evaluate/bin/python $(BENCHMARKS)/evaluate/evaluate.py --beacond $(RELEASE) $(if $(QUICK),--quick) \
		$(if $(filter command line,$(origin DAYS)),--days $(DAYS)) \
		$(if $(filter command line,$(origin DATA)),--data $(DATA)) $(if $(WRITE),--write docs)

check-captures: release ## Captures against tshark, report by report; DATA=folder
	$(HARNESS)/compare_capture.py --beacond $(RELEASE) $(DATA)

fuzz: packages ## Hostile input to every reader; SECONDS=60 or RUNS=10000000, TARGETS="hci outbox"
	Tests/Fuzz/fuzz.py $(if $(RUNS),--runs $(RUNS),--seconds $(SECONDS)) $(TARGETS)

sanitize: packages ## Unit tests under the address and the thread sanitizer
	LSAN_OPTIONS=suppressions=$(CURDIR)/Tests/Fuzz/leaks.txt:print_suppressions=0 $(SWIFT) test --sanitize=address \
		--scratch-path .build-asan --disable-xctest --filter '$(SANITIZED)' --skip '$(UNSANITIZED)'
	mkdir -p .build-tsan
	clang -O2 -fPIC -shared Tests/Fuzz/mutex.c -o .build-tsan/mutex.so -ldl
	LD_PRELOAD=$(CURDIR)/.build-tsan/mutex.so $(SWIFT) test --sanitize=thread \
		--scratch-path .build-tsan --disable-xctest --filter '$(THREADED)'

install: ## After make release: program, unit and sample; PREFIX=/usr/local DESTDIR=
	@test -x $(RELEASE) || { echo "make release comes first (without sudo)"; exit 1; }
	install -D --strip --mode=755 $(RELEASE) $(DESTDIR)$(PREFIX)/bin/beacond
	install -D --mode=644 README.md $(DESTDIR)$(PREFIX)/share/doc/beacond/README.md
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's#/usr/local/#$(PREFIX)/#; s#/etc/beacond/#$(SYSCONFDIR)/beacond/#' systemd/beacond.service \
		>$(DESTDIR)$(PREFIX)/lib/systemd/system/beacond.service
	@# A configuration that is there is somebody's work.
	test -e $(DESTDIR)$(SYSCONFDIR)/beacond/plugins.json || \
		install -D --mode=644 plugins.json $(DESTDIR)$(SYSCONFDIR)/beacond/plugins.json

clean: ## Removes what was built
	rm -rf .build .build-strict .build-fuzz .build-asan .build-tsan
