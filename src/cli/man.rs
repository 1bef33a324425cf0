//! `almanacd man`: the manual pages, one for each command, with what every page of a service has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;

use super::output::Output;
use super::{CliError, Exit};

const EXIT_STATUS: &str = "\
.SH \"EXIT STATUS\"
.TP
\\fB0\\fR
Done, or drained.
.TP
\\fB1\\fR
Failed, or a check failed.
.TP
\\fB64\\fR
Called wrongly.
.TP
\\fB78\\fR
Configured wrongly. A service manager should not start it again.
";

const FILES: &str = "\
.SH FILES
.TP
\\fI./config/almanac.yaml\\fR, \\fI/etc/almanac/almanac.yaml\\fR
The configuration; the first that is there. Beside it may stand \\fIcategories.yaml\\fR,
\\fItiming-defaults.yaml\\fR and \\fIpresets/\\fR.
.TP
\\fI/etc/almanac/tool_metadata\\fR
Tool documents. As long as there are none, those of \\fI/usr/share/almanac/tool_metadata\\fR stand in.
.TP
\\fI/etc/almanac/tokens\\fR
Hashes of tokens.
.TP
\\fI/var/lib/almanac\\fR
The store: \\fIalmanac.db\\fR and its journal. \\fI./state\\fR in a directory that has one, or a
\\fI./tool_metadata\\fR.
.TP
\\fI/run/almanac/admin.sock\\fR, \\fI/run/almanac-mcp/mcp.sock\\fR
The sockets of administrators and of MCP clients.
.TP
\\fI/usr/lib/almanac/plugins\\fR
Rule libraries.
";

/// Writes the page of the whole program to standard output, or one page for each command into a directory.
pub(super) fn man(command: Command, out: Option<&Path>, output: &mut Output) -> Result<Exit, CliError> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(directory) = out else {
        output.raw(&page(&command).map_err(|source| write(Path::new("standard output"), source))?);
        return Ok(Exit::Success);
    };
    fs::create_dir_all(directory).map_err(|source| write(directory, source))?;
    for (file, page) in pages(&command).map_err(|source| write(directory, source))? {
        let file = directory.join(file);
        fs::write(&file, page).map_err(|source| write(&file, source))?;
    }
    Ok(Exit::Success)
}

fn write(file: &Path, source: io::Error) -> CliError {
    CliError::Write { file: file.display().to_string(), source }
}

fn pages(command: &Command) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut pages = vec![(Man::new(command.clone()).get_filename().into(), page(command)?)];
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        pages.extend(self::pages(inner)?);
    }
    Ok(pages)
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let examples = command.get_after_help().map(ToString::to_string);
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(examples) = examples {
        page.extend_from_slice(b".SH EXAMPLES\n.nf\n");
        for line in examples.lines().filter(|line| *line != "Examples:") {
            page.extend_from_slice(format!("{}\n", escaped(line.trim_start())).as_bytes());
        }
        page.extend_from_slice(b".fi\n");
    }
    page.extend_from_slice(EXIT_STATUS.as_bytes());
    page.extend_from_slice(FILES.as_bytes());
    Ok(page)
}

/// A line as it stands: a backslash, and a dot or a quotation mark at its beginning, mean something to roff.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::examples::with_examples;

    #[test]
    fn every_page_has_its_sections() {
        let mut command = with_examples(Cli::command()).disable_help_subcommand(true);
        command.build();
        let pages = pages(&command).unwrap();
        let names: Vec<String> = pages.iter().map(|(file, _)| file.display().to_string()).collect();
        assert!(
            names.contains(&"almanacd.1".to_owned()) && names.contains(&"almanacd-ctl-reload.1".to_owned()),
            "{names:?}"
        );
        for (file, page) in &pages {
            let text = String::from_utf8(page.clone()).unwrap();
            for section in [".SH NAME", ".SH SYNOPSIS", ".SH \"EXIT STATUS\"", ".SH FILES"] {
                assert!(text.contains(section), "{} has no {section}", file.display());
            }
        }
        let (_, check) = pages.iter().find(|(file, _)| file.ends_with("almanacd-check.1")).unwrap();
        let check = String::from_utf8(check.clone()).unwrap();
        assert!(check.contains(".SH EXAMPLES\n.nf\nalmanacd check\n"), "{check}");
    }
}
