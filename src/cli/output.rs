//! What a command prints: text for people, or JSON. Colour only on a terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// Standard output and standard error. A reader that went away is no fault.
#[derive(Debug)]
pub(super) struct Output {
    json: bool,
    colour: bool,
    failure: Option<io::Error>,
}

/// How bold text begins and ends.
const BOLD: [&str; 2] = ["\x1b[1m", "\x1b[0m"];

/// Text without the characters that show it in another order, or order the terminal about: somebody else's name could
/// hide what stands behind it. They are escaped as in JSON, where the text may stand.
fn in_order(text: &str) -> Cow<'_, str> {
    let is_order = |character: char| {
        matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            || character.is_control() && !matches!(character, '\n' | '\t')
    };
    if !text.contains(is_order) {
        return text.into();
    }
    let shown = text.char_indices().map(|(at, character)| match character {
        '\x1b' if BOLD.iter().any(|bold| text[at..].starts_with(bold)) => character.to_string(),
        order if is_order(order) => format!("\\u{:04x}", u32::from(order)),
        other => other.to_string(),
    });
    shown.collect()
}

/// So many of something, in words.
pub(super) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[expect(clippy::unused_self, reason = "whoever prints does so through it")]
impl Output {
    pub(super) fn new(json: bool) -> Self {
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { json, colour, failure: None }
    }

    /// Prints `value` as JSON, or whatever `text` prints.
    pub(super) fn show(&mut self, value: &impl Serialize, text: impl FnOnce(&mut Self)) {
        if self.json {
            let rendered =
                serde_json::to_string_pretty(value).expect("what is shown has string keys and finite numbers");
            self.line(&rendered);
        } else {
            text(self);
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        self.raw(format!("{}\n", in_order(text)).as_bytes());
    }

    /// For people, beside what a script reads.
    pub(super) fn note(&mut self, text: &str) {
        let _ = writeln!(io::stderr(), "{}", in_order(text));
    }

    pub(super) fn error(&mut self, text: &str) {
        self.note(&format!("almanacd: {text}"));
    }

    /// How far something is, in the terminal's last line, which the next word about it replaces; empty clears it. Says
    /// nothing where there is no terminal.
    pub(super) fn progress(&mut self, text: &str) {
        let mut errors = io::stderr();
        if errors.is_terminal() {
            let _ = write!(errors, "\r\x1b[K{text}").and_then(|()| errors.flush());
        }
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        let mut out = io::stdout();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.failure.get_or_insert(error);
        }
    }

    /// Why not all was printed, if so.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    pub(super) fn bold(&self, text: &str) -> String {
        let [begin, end] = BOLD;
        if self.colour { format!("{begin}{text}{end}") } else { text.to_owned() }
    }

    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    pub(super) fn has_colour(&self) -> bool {
        self.colour
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_turn_a_line_around() {
        let check = |text: &str, shown: &str| assert_eq!(in_order(text), shown);
        check("plain → 日本\n\tmore", "plain → 日本\n\tmore");
        check("a\u{202e}b\u{2066}c", "a\\u202eb\\u2066c");
        check("\x1b[1mbold\x1b[0m \x1b[31mred\r", "\x1b[1mbold\x1b[0m \\u001b[31mred\\u000d");
    }
}
