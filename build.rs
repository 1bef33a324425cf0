//! Notes which compiler builds the daemon, for `almanac_build_info`.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(compiler).arg("--version").output();
    let version = said.ok().and_then(|said| String::from_utf8(said.stdout).ok());
    // `rustc 1.91.0 (hash date)`: the number is enough.
    let number = version.as_deref().and_then(|text| text.split(' ').nth(1)).unwrap_or("unknown");
    println!("cargo::rustc-env=RUSTC_VERSION={number}");
}
