//! A finding as people read it: with its line, and what to do.

use std::fs;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::strict::load;
use crate::strict::{Diagnostic, Severity};

/// The finding with the line it is about, of `given` or else of the file that it names.
pub(super) fn explain(finding: &Diagnostic, colour: bool, given: Option<&str>) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Hint => Level::NOTE,
    };
    let title = level.primary_title(finding.message.as_str()).id(finding.code.as_str());
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let read = || {
        let file = Path::new(&finding.file);
        fs::read(file).ok().map(|content| load::text_of(file, &content))
    };
    let text = if finding.line == 0 { None } else { given.map(str::to_owned).or_else(read) };
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
