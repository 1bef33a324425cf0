//! `almanacd check`: everything that is wrong with the configuration and the documents, with its lines.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use clap::Args;
use serde_json::json;

use super::output::Output;
use super::{CliError, Exit};
use crate::access::Tokens;
use crate::access::issue::service_group;
use crate::catalog::load::{LoadOptions, Loaded, load};
use crate::config::{self, DaemonOverrides, Overrides};
use crate::daemon::Config;
use crate::qualify::categories::file::CategoryFile;
use crate::strict::LoadError;
use crate::strict::diagnostic::{self, Diagnostic};
use crate::suggest::presets::directory::PresetDirectory;
use crate::upstream;

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Directory of documents, or one document [default: the configuration and all it names]
    path: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
}

pub(super) fn run(args: &CheckArgs, output: &mut Output) -> Result<Exit, CliError> {
    let (loaded, mut diagnostics) = match &args.path {
        Some(path) => {
            let loaded = load(LoadOptions::directory(path));
            let diagnostics = loaded.diagnostics.to_vec();
            (loaded, diagnostics)
        }
        None => configured(&args.overrides)?,
    };
    // One document alone cannot have the tools it speaks of beside it.
    if args.path.as_ref().is_some_and(|path| path.is_file()) {
        diagnostics.retain(|finding| finding.code != "dangling-relation");
    }
    let documents = loaded.documents.good + loaded.documents.bad;
    if documents == 0 && diagnostics.is_empty() {
        let place = args.path.clone().unwrap_or_default();
        diagnostics.push(Diagnostic::warning(&place, "no-documents", "no document (.yaml or .yml) was found"));
    }
    shorten(&mut diagnostics);
    let errors = diagnostic::errors(&diagnostics);
    let warnings = diagnostics.len() - errors;
    let tools = loaded.catalog.len();
    let report = json!({
        "documents": documents, "tools": tools, "errors": errors, "warnings": warnings, "diagnostics": diagnostics,
    });
    output.show(&report, |out| {
        for finding in &diagnostics {
            out.line(&explain(finding, out.has_colour()));
        }
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let counts =
            [count(documents, "document"), count(tools, "tool"), count(errors, "error"), count(warnings, "warning")];
        out.line(&out.bold(&counts.join(", ")));
    });
    Ok(if errors == 0 { Exit::Success } else { Exit::Failure })
}

/// The configuration, its tokens, presets, categories and documents. A faulty configuration is an error of its own
/// kind.
fn configured(overrides: &Overrides) -> Result<(Loaded, Vec<Diagnostic>), CliError> {
    let config = match Config::load(overrides, &DaemonOverrides::default()) {
        Ok(config) => config,
        Err(LoadError::Faulty { diagnostics, .. }) => return Ok((Loaded::default(), diagnostics)),
        Err(error) => return Err(error.into()),
    };
    let loaded = load(config.documents());
    let mut diagnostics = loaded.diagnostics.to_vec();
    let mut presets = PresetDirectory::new(config.presets.clone());
    presets.read();
    diagnostics.extend(presets.current(|tool| loaded.catalog.get(tool).is_some()).1);
    let mut categories = CategoryFile::new(config.categories.clone());
    categories.read();
    diagnostics.extend(categories.current().1);
    let file = config::file(overrides).unwrap_or_default();
    diagnostics.extend(upstream::check(&config.mcp.upstream, &file));
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

/// The finding with the line it is about.
fn explain(finding: &Diagnostic, colour: bool) -> String {
    let level = if finding.is_error() { Level::ERROR } else { Level::WARNING };
    let title = level.primary_title(finding.message.as_str()).id(finding.code.as_str());
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let text = if finding.line == 0 { None } else { fs::read_to_string(&finding.file).ok() };
    let place = text.as_deref().and_then(|text| span(text, finding.line, finding.column));
    let group = match (&text, place) {
        (Some(text), Some(span)) => title.element(
            Snippet::source(text.as_str()).path(finding.file.as_str()).annotation(AnnotationKind::Primary.span(span)),
        ),
        _ => title.element(annotate_snippets::Origin::path(finding.file.as_str())),
    };
    let group = match &finding.hint {
        Some(hint) => group.element(Level::HELP.message(hint.as_str())),
        None => group,
    };
    renderer.render(&[group])
}

/// The word at a 1-based place, as a range of bytes.
fn span(text: &str, line: usize, column: usize) -> Option<std::ops::Range<usize>> {
    let start_of_line: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let line = text.get(start_of_line..)?.lines().next().unwrap_or_default();
    let before: usize = line.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
    let word = line[before..].find([' ', ':', ',', ']', '}']).unwrap_or(line.len() - before);
    let start = start_of_line + before;
    Some(start..start + word.max(usize::from(before < line.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_becomes_the_word_there() {
        let text = "name: x\ncategorie: ünü web\n";
        let check = |line, column, expected: &str| assert_eq!(&text[span(text, line, column).unwrap()], expected);
        check(1, 1, "name");
        check(2, 1, "categorie");
        check(2, 16, "web");
        check(2, 19, "");
        check(9, 1, "");
    }
}
