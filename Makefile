# The two that matter: `make run` and `make test`.

.PHONY: run test fuzz soak fault bench bench-memories eval correction lint deny minimum deb assets dist client console console-shots clean

HISTORIES ?= ../shared/data/timing
SELECTIONS ?= ../shared/data/selection
ANSWERS ?= ../shared/reference/timing/vectors.csv
# Kernels of this processor have pages of 4, 16 or 64 KiB; what is built for it is to run on all.
ifneq ($(filter aarch64%,$(shell uname -m) $(TARGET)),)
export JEMALLOC_SYS_WITH_LG_PAGE := 16
endif
MINIMUM_RUST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

run: ## Build the daemon and its rule library, and run it on the documents of this directory
	cargo build --release
	cargo run --release -- serve

# What tests start is built by itself: its dependencies change nobody else's features.
TESTED = --workspace --exclude almanac-rmcp

test: ## Run all tests
	cargo build --package almanac-reasoning
	cargo build --package almanac-rmcp
	@if cargo nextest --version >/dev/null 2>&1; then \
		echo cargo nextest run $(TESTED); cargo nextest run $(TESTED) && cargo test $(TESTED) --doc; \
	else \
		echo cargo test $(TESTED); cargo test $(TESTED); \
	fi

FUZZ_SECONDS ?= 30

fuzz: ## Feed all that reads foreign bytes with made-up ones, FUZZ_SECONDS (30) each, six at once at most
	BOLERO_RANDOM_TEST_TIME_MS=$$(($(FUZZ_SECONDS) * 1000)) BOLERO_RANDOM_ITERATIONS=1000000000 \
		cargo test --package almanacd --lib -- fuzz_ --nocapture

soak: ## Mixed load for ALMANAC_SOAK_SECONDS (600): memory, descriptors, threads and the journal must not grow
	ALMANAC_SOAK_SECONDS=$${ALMANAC_SOAK_SECONDS:-600} cargo test --package almanacd --test system -- soak:: --nocapture

fault: ## Kill a daemon a hundred times under 16 writers, and those of a fleet or its server thirty; look for every record
	ALMANAC_FAULT_ROUNDS=100 ALMANAC_FLEET_FAULT_ROUNDS=30 cargo test --test system -- fault --nocapture

bench-memories: ## Keep ten thousand memories, a hundred thousand and a million, and measure finding and keeping them
	for count in 10000 100000 1000000; do cargo bench --bench memories -- $$count || exit 1; done

bench: ## Measure against peers of the same run, and print the table of ratios
	cargo bench --bench ratios

eval: ## Replay recorded histories and judged messages: how good forecasts and selections are
	@set -e; if [ ! -d $(HISTORIES) ]; then echo "eval: there is no $(HISTORIES) with histories to replay"; else \
	for history in $(HISTORIES)/*.csv; do \
		[ -f "$$history" ] || continue; echo "== $$history"; cargo run --release --quiet -- eval timing "$$history"; \
	done; fi; \
	if [ -f $(ANSWERS) ] && [ -f $(HISTORIES)/agent_tools.csv ]; then \
		echo "== $(HISTORIES)/agent_tools.csv against $(ANSWERS)"; \
		cargo run --release --quiet -- eval timing $(HISTORIES)/agent_tools.csv --answers $(ANSWERS); \
	fi; \
	if [ ! -d $(SELECTIONS) ]; then echo "eval: there is no $(SELECTIONS) with judged messages"; exit 0; fi; \
	for tools in $(SELECTIONS)/*_tools.jsonl; do \
		[ -f "$$tools" ] || continue; name=$$(basename "$$tools" _tools.jsonl); documents=target/selection/$$name; \
		rm -rf "$$documents"; python3 benches/selection_documents.py "$$tools" "$$documents"; \
		echo "== $$name, cold"; \
		cargo run --release --quiet -- eval qualify $(SELECTIONS)/$${name}_queries.jsonl --tool-metadata "$$documents"; \
		echo "== $$name, learning from its first half"; \
		cargo run --release --quiet -- eval qualify $(SELECTIONS)/$${name}_queries.jsonl --tool-metadata "$$documents" --learn; \
		echo "== $$name, tools that were never chosen while forty others were"; \
		cargo run --release --quiet -- eval qualify $(SELECTIONS)/$${name}_queries.jsonl --tool-metadata "$$documents" \
			--learn --tools 40; \
	done; \
	python3 benches/selection_variants.py $(SELECTIONS) target/selection/variants; \
	for tools in target/selection/variants/*_tools.jsonl; do \
		name=$$(basename "$$tools" _tools.jsonl); documents=target/selection/$$name; \
		rm -rf "$$documents"; python3 benches/selection_documents.py "$$tools" "$$documents"; \
		echo "== $$name, cold"; \
		cargo run --release --quiet -- eval qualify target/selection/variants/$${name}_queries.jsonl \
			--tool-metadata "$$documents"; \
	done

CORRECTION = src/timing/estimator/correction/trees.txt

correction: ## Fit the correction of forecasts to recorded histories anew, and say what it does to those it was not fitted on (needs PyPI)
	@ls $(HISTORIES)/*.csv >/dev/null 2>&1 || { echo "correction: there is no $(HISTORIES) with histories to fit it to" >&2; exit 1; }
	cargo build --release
	python3 -m venv target/correction
	target/correction/bin/pip install --quiet --requirement benches/requirements.txt
	rm -f target/correction/*.csv
	for history in $(HISTORIES)/*.csv; do \
		target/release/almanacd eval timing "$$history" --features target/correction/$$(basename "$$history") >/dev/null || exit 1; \
	done
	target/correction/bin/python benches/forecast_correction.py fit target/correction/*.csv > target/correction/trees.txt
	cp target/correction/trees.txt $(CORRECTION)
	target/correction/bin/python benches/forecast_correction.py validate target/correction/*.csv

lint: ## What the continuous integration holds the code to
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings

deny: ## Look for licences, sources and advisories that are not wanted (needs cargo-deny: cargo install cargo-deny)
	cargo deny check

minimum: ## Build with the oldest Rust that Cargo.toml names (needs rustup)
	rustup toolchain install --profile minimal $(MINIMUM_RUST)
	cargo +$(MINIMUM_RUST) check $(TESTED) --quiet --target-dir target/minimum

assets: ## Manual pages and completions
	cargo build --profile dist
	target/dist/almanacd man --out target/assets/man
	mkdir -p target/assets/completions
	target/dist/almanacd completions bash > target/assets/completions/almanacd.bash
	target/dist/almanacd completions zsh > target/assets/completions/_almanacd
	target/dist/almanacd completions fish > target/assets/completions/almanacd.fish

deb: assets ## Build the Debian package (needs cargo-deb: cargo install cargo-deb)
	cargo deb --no-build --output target/debian/

HOST = $(shell rustc -vV | sed -n 's/^host: //p')
TARGET ?= $(HOST)
# What links and compiles C for another processor: gcc by its Debian name, unless Cargo's variables say otherwise.
CROSS_GCC = $(firstword $(subst -, ,$(TARGET)))-linux-gnu-gcc
CROSS_NAME = $(subst -,_,$(TARGET))
CROSS_CC = $(or $(CC_$(CROSS_NAME)),$(CROSS_GCC))
CROSS_LINKER = CARGO_TARGET_$(shell echo $(CROSS_NAME) | tr a-z A-Z)_LINKER

dist: ## Make an archive of a release with its checksum, in target/archives; TARGET=aarch64-unknown-linux-gnu for another processor
ifeq ($(TARGET),$(HOST))
	cargo build --profile dist --package almanacd --package almanac-reasoning
	packaging/dist.sh target/dist $(HOST) target/archives
else
	@rustc --print target-list | grep --quiet --line-regexp --fixed-strings '$(TARGET)' || \
		{ echo "make dist: Rust knows no target $(TARGET); 'rustc --print target-list' lists them" >&2; exit 1; }
	@ls "$$(rustc --print target-libdir --target $(TARGET))"/libstd-*.rlib >/dev/null 2>&1 || \
		{ echo "make dist: Rust's library for $(TARGET) is missing: rustup target add $(TARGET)" >&2; exit 1; }
	@command -v $(CROSS_CC) >/dev/null || \
		{ echo "make dist: $(CROSS_CC) is missing, which links for $(TARGET): apt install gcc-$(subst _,-,$(firstword $(subst -, ,$(TARGET))))-linux-gnu" >&2; exit 1; }
	CC_$(CROSS_NAME)=$(CROSS_CC) $(CROSS_LINKER)=$${$(CROSS_LINKER):-$(CROSS_CC)} \
		cargo build --profile dist --target $(TARGET) --package almanacd --package almanac-reasoning
	packaging/dist.sh target/$(TARGET)/dist $(TARGET) target/archives
endif

client: ## Make the TypeScript client's types anew, after a change of the daemon's calls (needs npm)
	cargo build
	npm ci --prefix clients/typescript --silent
	npm run --prefix clients/typescript --silent generate

console: ## Make the console's files anew, after a change in console/ or of the client (needs npm)
	npm ci --prefix console --silent
	npm run --prefix console --silent build

console-shots: ## Take the pictures of docs/console (needs npm, Chromium, and pngquant for small files)
	cargo build --package almanacd --package almanac-reasoning
	npm ci --prefix tests/console --silent
	CONSOLE_LIBRARY=$(CURDIR)/target/debug/libalmanac_reasoning.so npm run --prefix tests/console --silent shots

clean:
	cargo clean
