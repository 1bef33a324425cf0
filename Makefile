# The two that matter: `make run` and `make test`.

.PHONY: run test fault bench lint deb assets clean

run: ## Build the daemon and run it on the documents of this directory
	cargo run --release -- serve

test: ## Run all tests
	cargo test --workspace

fault: ## Kill the daemon at random a hundred times under 16 writers, and look for every acknowledged record
	ALMANAC_FAULT_ROUNDS=100 cargo test --test system -- fault --nocapture

bench: ## Measure against peers of the same run, and print the table of ratios
	cargo bench --bench ratios

lint: ## What the continuous integration holds the code to
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings

assets: ## Manual pages and completions
	cargo build --profile dist
	target/dist/almanacd man --out target/assets/man
	mkdir -p target/assets/completions
	target/dist/almanacd completions bash > target/assets/completions/almanacd.bash
	target/dist/almanacd completions zsh > target/assets/completions/_almanacd
	target/dist/almanacd completions fish > target/assets/completions/almanacd.fish

deb: assets ## Build the Debian package (needs cargo-deb: cargo install cargo-deb)
	cargo deb --no-build --output target/debian/

clean:
	cargo clean
