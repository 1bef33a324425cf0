//! What is wrong with the configured servers, without starting any.

use std::collections::BTreeMap;
use std::path::Path;

use super::directory::Directory;
use super::open::{doubt, find};
use super::secret::{self, Mask};
use super::settings::{ServerSettings, Settings};
use crate::strict::Diagnostic;

/// All servers of the configuration and of the directory beside it.
pub fn configured(settings: &Settings) -> BTreeMap<String, ServerSettings> {
    let mut directory = Directory::default();
    directory.read(&settings.directory);
    let mut all = directory.servers().clone();
    all.extend(settings.servers.clone());
    all
}

/// All findings about the servers of the configuration in `file` and of the directory beside it.
pub fn check(settings: &Settings, file: &Path) -> Vec<Diagnostic> {
    let mut directory = Directory::default();
    directory.read(&settings.directory);
    let mut found = directory.findings().to_vec();
    for (name, server) in &settings.servers {
        check_server(name, server, file, &mut found);
    }
    for (name, server) in directory.servers() {
        if settings.servers.contains_key(name) {
            let message = format!("the server `{name}` is in the configuration, too, which counts");
            found.push(Diagnostic::warning(&settings.directory, "duplicate-server", message));
        } else {
            check_server(name, server, &settings.directory, &mut found);
        }
    }
    found
}

fn check_server(name: &str, server: &ServerSettings, file: &Path, found: &mut Vec<Diagnostic>) {
    for (key, text) in server.texts() {
        if secret::is_secret_key(key) && !text.is_empty() && !secret::refers(text) {
            let message = format!("`{key}` of the server `{name}` looks like a secret that stands here in clear");
            let hint = "write ${env:NAME} or ${credential:NAME}; whoever reads this file has it otherwise";
            found.push(Diagnostic::warning(file, "literal-secret", message).with_hint(hint));
        }
        if let Err(error) = Mask::default().resolve(text) {
            let message = format!("`{key}` of the server `{name}` cannot be resolved here: {error}");
            found.push(Diagnostic::warning(file, "unresolved-secret", message));
        }
    }
    let Some(program) = server.command.as_ref().and_then(|command| command.first()) else { return };
    let path = server.env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
    let Some(program_file) = find(program, &path, server.cwd.as_deref().unwrap_or(Path::new("/"))) else {
        let message = format!("the program `{program}` of the server `{name}` is not found here");
        found.push(Diagnostic::warning(file, "missing-program", message));
        return;
    };
    if let Some(doubt) = doubt(&program_file) {
        let message = format!("the program of the server `{name}` would not be run: {doubt}");
        let hint = "only root and the user of the daemon may be able to change it and the directories above it";
        found.push(Diagnostic::error(file, "untrusted-program", message).with_hint(hint));
    }
    for place in server.files.iter().flatten().chain(&server.cwd).filter(|place| !place.exists()) {
        let message = format!("{}, which the server `{name}` is to use, is not there", place.display());
        found.push(Diagnostic::warning(file, "missing-path", message));
    }
}
