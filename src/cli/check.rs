//! `almanacd check`: everything that is wrong with the configuration and the documents, with its lines.

mod explain;
mod lint;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use clap::Args;
use serde_json::json;

use super::output::{Output, counted};
use super::{CliError, Exit};
use crate::access::Tokens;
use crate::access::issue::service_group;
use crate::catalog::load::{self as documents, Documents, LoadOptions, Loaded};
use crate::catalog::reload::{Reloader, Sources};
use crate::catalog::{self, Settings};
use crate::config::{self, DATABASE_URL, DaemonOverrides, HomelessError, Overrides, UserFiles};
use crate::daemon::{Config, DaemonError, SocketError, check_sockets, database_options};
use crate::qualify::categories::file::CategoryFile;
use crate::strict::diagnostic::{self, Diagnostic};
use crate::strict::{LoadError, Severity, load};
use crate::suggest::presets::directory::PresetDirectory;
use crate::telemetry::logging;
use crate::timing::Defaults;
use crate::{llm, mcp, upstream};

/// The path that stands for standard input, as elsewhere.
const STDIN: &str = "-";

/// What standard input is called in findings.
const STDIN_NAME: &str = "<stdin>";

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Directories of documents, documents, or `-` for standard input [default: the configuration and all it names]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Check again whenever something changes, until interrupted
    #[arg(long)]
    watch: bool,
    /// Check what `serve --user` serves: your own configuration and documents
    #[arg(long, conflicts_with = "paths")]
    user: bool,
    #[command(flatten)]
    overrides: Overrides,
}

/// What to look at.
struct Subject<'a> {
    paths: &'a [PathBuf],
    overrides: Overrides,
    daemon: DaemonOverrides,
}

fn environment() -> Result<DaemonOverrides, CliError> {
    DaemonOverrides::of_environment().map_err(|error| CliError::Arguments(error.to_string()))
}

impl<'a> Subject<'a> {
    fn of(args: &'a CheckArgs) -> Result<Self, CliError> {
        let (mut overrides, mut daemon) = (args.overrides.clone(), environment()?);
        if args.user {
            daemon.user = true;
            UserFiles::find().ok_or(DaemonError::Homeless(HomelessError))?.fill(&mut overrides, &mut daemon);
        }
        Ok(Self { paths: &args.paths, overrides, daemon })
    }

    /// The configuration's file, if there is one.
    fn file(&self) -> Option<PathBuf> {
        if self.daemon.user { self.overrides.config.clone() } else { config::file(&self.overrides) }
    }

    fn config(&self) -> Result<Config, LoadError> {
        Config::load(&self.overrides, &self.daemon)
    }
}

/// What was looked at, and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    documents: usize,
    tools: usize,
    diagnostics: Vec<Diagnostic>,
    /// What came from standard input, if anything did.
    given: Option<String>,
}

pub(super) fn run(args: &CheckArgs, output: &mut Output) -> Result<Exit, CliError> {
    let is_given = args.paths.iter().any(|path| path.as_os_str() == STDIN);
    if is_given && (args.paths.len() > 1 || args.watch) {
        let message = "`-` is one document from standard input: it stands alone, and cannot be watched";
        return Err(CliError::Arguments(message.to_owned()));
    }
    let subject = Subject::of(args)?;
    if args.watch {
        return watch(&subject, output);
    }
    let found = if is_given { from_stdin(&subject)? } else { look(&subject)? };
    Ok(show(&found, output))
}

fn show(found: &Found, output: &mut Output) -> Exit {
    let Found { documents, tools, diagnostics, given } = found;
    let errors = diagnostic::errors(diagnostics);
    let warnings = diagnostic::warnings(diagnostics);
    let hints = diagnostic::of(diagnostics, Severity::Hint);
    let report = json!({
        "documents": documents, "tools": tools, "errors": errors, "warnings": warnings, "hints": hints,
        "diagnostics": diagnostics,
    });
    output.show(&report, |out| {
        for finding in diagnostics {
            let given = given.as_deref().filter(|_| finding.file == STDIN_NAME);
            // What it shows of files has no control characters left, and the rest is its own colours.
            out.raw(format!("{}\n", explain::explain(finding, out.has_colour(), given)).as_bytes());
        }
        let count = |count: usize, what: &str| counted(count as u64, what);
        let mut counts = vec![
            count(*documents, "document"),
            count(*tools, "tool"),
            count(errors, "error"),
            count(warnings, "warning"),
        ];
        counts.extend((hints > 0).then(|| count(hints, "hint")));
        out.line(&out.bold(&counts.join(", ")));
    });
    if errors == 0 { Exit::Success } else { Exit::Failure }
}

fn look(subject: &Subject<'_>) -> Result<Found, CliError> {
    let paths = subject.paths;
    let (loaded, mut diagnostics) = if paths.is_empty() {
        configured(subject)?
    } else {
        let options = LoadOptions { max_document_bytes: limit(subject)?, ..LoadOptions::directory("") };
        let loaded = documents::load(LoadOptions { roots: paths.to_vec(), ..options });
        let diagnostics = loaded.diagnostics.to_vec();
        (loaded, diagnostics)
    };
    // Documents alone cannot have the tools they speak of beside them.
    if !paths.is_empty() && paths.iter().all(|path| path.is_file()) {
        diagnostics.retain(|finding| finding.code != "dangling-relation");
    }
    diagnostics.extend(left_out(&loaded));
    let Documents { good, bad, .. } = loaded.documents;
    let documents = good + bad;
    if documents == 0 && diagnostics.is_empty() {
        let configured = || subject.config().ok()?.documents().roots.first().cloned();
        let place = paths.first().cloned().or_else(configured).unwrap_or_default();
        let warning = Diagnostic::warning(&place, "no-documents", "no document (.yaml, .yml or .json) was found");
        diagnostics.push(warning.with_hint("files with other endings are not read"));
    }
    shorten(&mut diagnostics);
    diagnostics.sort_by(|a, b| (&a.file, a.severity, a.line, a.column).cmp(&(&b.file, b.severity, b.line, b.column)));
    Ok(Found { documents, tools: loaded.catalog.len(), diagnostics, given: None })
}

/// What the documents leave out that they are found by.
fn left_out(loaded: &Loaded) -> Vec<Diagnostic> {
    let of = |entry: &catalog::Entry| {
        let content = fs::read(entry.file()).unwrap_or_default();
        lint::lint(&entry.document(), entry.file(), &load::text_of(entry.file(), &content))
    };
    loaded.catalog.iter().flat_map(|entry| of(entry)).collect()
}

/// The largest document that the configuration takes. A configuration that nobody named may be faulty: documents are
/// looked at alone.
fn limit(subject: &Subject<'_>) -> Result<usize, CliError> {
    match subject.config() {
        Ok(config) => Ok(config.catalog.max_document_bytes),
        Err(error) if subject.overrides.config.is_some() => Err(error.into()),
        Err(_) => Ok(Settings::default().max_document_bytes),
    }
}

fn from_stdin(subject: &Subject<'_>) -> Result<Found, CliError> {
    let limit = limit(subject)?;
    let mut content = Vec::new();
    let read = io::stdin().lock().take(limit as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| CliError::Read { file: STDIN_NAME.to_owned(), source: error.into() })?;
    let file = Path::new(STDIN_NAME);
    let text = load::text_of(file, &content);
    let (tools, diagnostics) = match documents::parse(file, &content, limit) {
        Ok(document) => (1, lint::lint(&document, file, &text)),
        Err(faults) => (0, faults),
    };
    Ok(Found { documents: 1, tools, diagnostics, given: Some(text) })
}

/// Looks again after every change, and says what it found if that is something else.
fn watch(subject: &Subject<'_>, output: &mut Output) -> Result<Exit, CliError> {
    let roots = if subject.paths.is_empty() { named(subject) } else { subject.paths.to_vec() };
    let sources = Sources { options: LoadOptions { roots, ..LoadOptions::directory("") }, ..Sources::directory("") };
    let (sender, changes) = mpsc::channel();
    // Kept, since the watch ends with it.
    let (_reloader, _) = Reloader::start(sources, move |_| {
        // If it fails, nobody watches any more.
        let _ = sender.send(());
    })
    .map_err(CliError::Runtime)?;
    let mut last = None;
    while changes.recv().is_ok() {
        let found = look(subject)?;
        if last.as_ref() != Some(&found) {
            show(&found, output);
            if output.failure().is_some() {
                break;
            }
        }
        last = Some(found);
    }
    Ok(Exit::Success)
}

/// The files and directories that the configuration is made of.
fn named(subject: &Subject<'_>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = subject.file().into_iter().collect();
    if let Ok(config) = subject.config() {
        paths.extend(config.documents().roots);
        paths.extend(config.presets.clone().into_iter().chain(config.categories.clone()).chain(config.auth.file()));
    }
    paths
}

/// The configuration, its tokens, presets, categories and documents. A faulty configuration is an error of its own
/// kind.
fn configured(subject: &Subject<'_>) -> Result<(Loaded, Vec<Diagnostic>), CliError> {
    let config = match subject.config() {
        Ok(config) => config,
        Err(LoadError::Faulty { diagnostics, .. }) => return Ok((Loaded::default(), diagnostics)),
        Err(error) => return Err(error.into()),
    };
    let options = config.documents();
    let absent: Vec<String> =
        options.roots.iter().filter(|root| !root.exists()).map(|root| root.display().to_string()).collect();
    let loaded = documents::load(options);
    let mut diagnostics = loaded.diagnostics.to_vec();
    if subject.daemon.user {
        // `serve --user` makes the first directory, and does without the others.
        diagnostics.retain(|finding| !absent.contains(&finding.file));
    }
    let mut presets = PresetDirectory::new(config.presets.clone());
    presets.read();
    diagnostics.extend(presets.current(|tool| loaded.catalog.get(tool).is_some()).1);
    let mut categories = CategoryFile::new(config.categories.clone());
    categories.read();
    diagnostics.extend(categories.current().1);
    let file = subject.file().unwrap_or_default();
    if let Err(error) = Defaults::read(config.timing_defaults.as_deref()) {
        diagnostics.extend(error.into_diagnostics());
    }
    let has_tokens = config.auth.file().is_some() || config.auth.issuer.issuer.is_some();
    match check_sockets(&config, has_tokens) {
        Ok(()) => {}
        // The service may be given what is not known here.
        Err(error @ SocketError::Exposed { .. }) => {
            let hint = "a service may have them from a credential, ALMANAC_TOKEN_FILE or ALMANAC_FIRST_TOKEN";
            diagnostics.push(Diagnostic::warning(&file, "socket", error.to_string()).with_hint(hint));
        }
        Err(error) => diagnostics.push(Diagnostic::error(&file, "socket", error.to_string())),
    }
    diagnostics.extend(config.qualifier.llm.as_ref().and_then(|settings| llm::check(settings, &file)));
    diagnostics.extend(upstream::check(&config.mcp.upstream, &file));
    diagnostics.extend(mcp::check(&config.mcp.door, &upstream::configured(&config.mcp.upstream), &file));
    let doubts = logging::doubts(&config.log.level).into_iter();
    diagnostics.extend(doubts.map(|doubt| Diagnostic::warning(&file, "log-level", format!("`log.level`: {doubt}"))));
    if config.state_dir.exists() && !config.state_dir.is_dir() {
        let said = format!("{} is no directory, so nothing can be kept there", config.state_dir.display());
        diagnostics.push(Diagnostic::error(&file, "state-dir", said));
    }
    if let Err(error) = database_options(&config, &subject.daemon) {
        diagnostics.push(Diagnostic::error(Path::new(DATABASE_URL), "bad-value", error.to_string()));
    }
    let libraries = config.plugins.troubles().into_iter();
    diagnostics.extend(libraries.map(|trouble| Diagnostic::warning(&file, "rule-library", trouble)));
    diagnostics.extend(config.auth.file().map(|file| tokens(&file)).unwrap_or_default());
    Ok((loaded, diagnostics))
}

/// What is wrong with the tokens; for root also whether the service, which is somebody else, can read them.
fn tokens(file: &Path) -> Vec<Diagnostic> {
    if let Err(error) = Tokens::read(file) {
        return error.into_diagnostics();
    }
    let Ok(metadata) = fs::metadata(file) else { return Vec::new() };
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    match service_group() {
        Some(group) if is_root && metadata.gid() != group && metadata.mode() & 0o004 == 0 => {
            let fault = Diagnostic::error(file, "unreadable", "the service cannot read it");
            vec![fault.with_hint("chgrp almanac, and chmod 640; `systemd-tmpfiles --create almanacd.conf` does both")]
        }
        _ => Vec::new(),
    }
}

/// Paths below the working directory are shown as a person there would write them.
fn shorten(diagnostics: &mut [Diagnostic]) {
    let Ok(here) = std::env::current_dir() else { return };
    for finding in diagnostics {
        if let Ok(short) = Path::new(&finding.file).strip_prefix(&here) {
            finding.file = short.display().to_string();
        }
    }
}
