//! Comma-separated columns under a header, with quotes where a field needs them (RFC 4180).

use std::borrow::Cow;
use std::str::FromStr;

/// A sheet that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SheetError {
    /// 1-based; where the faulty line begins, if quotes stretch it over several.
    pub line: usize,
    pub message: String,
}

pub(super) struct Sheet<'t> {
    header: Vec<Cow<'t, str>>,
    lines: Vec<Fields<'t>>,
}

struct Fields<'t> {
    /// 1-based.
    number: usize,
    fields: Vec<Cow<'t, str>>,
}

/// One line of a [`Sheet`].
pub(super) struct Line<'s> {
    header: &'s [Cow<'s, str>],
    number: usize,
    fields: &'s [Cow<'s, str>],
}

impl<'t> Sheet<'t> {
    pub(super) fn parse(text: &'t [u8]) -> Result<Self, SheetError> {
        let text = std::str::from_utf8(text).map_err(|error| {
            let line = text[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
            SheetError { line, message: "not UTF-8 text".to_owned() }
        })?;
        let mut reader = Reader { rest: text, line: 1 };
        let header = reader.next().transpose()?.map_or_else(Vec::new, |first| first.fields);
        let lines: Vec<Fields<'t>> = reader.collect::<Result<_, _>>()?;
        if let Some(line) = lines.iter().find(|line| line.fields.len() != header.len()) {
            let message = format!("{} fields under a header of {}", line.fields.len(), header.len());
            return Err(SheetError { line: line.number, message });
        }
        Ok(Self { header, lines })
    }

    pub(super) fn require(&self, columns: &[&str]) -> Result<(), SheetError> {
        match columns.iter().find(|column| !self.header.iter().any(|name| name == *column)) {
            Some(column) => Err(SheetError { line: 1, message: format!("the column {column} is missing") }),
            None => Ok(()),
        }
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.lines.iter().map(|line| Line { header: &self.header, number: line.number, fields: &line.fields })
    }
}

impl Line<'_> {
    /// The field of that column, empty if there is none.
    pub(super) fn text(&self, column: &str) -> &str {
        let index = self.header.iter().position(|name| name == column);
        index.map_or("", |index| &self.fields[index])
    }

    pub(super) fn number<N: FromStr>(&self, column: &str) -> Result<N, SheetError> {
        self.optional(column)?.ok_or_else(|| self.error(format!("{column} is empty")))
    }

    pub(super) fn optional<N: FromStr>(&self, column: &str) -> Result<Option<N>, SheetError> {
        match self.text(column) {
            "" => Ok(None),
            text => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.error(format!("{column} is `{text}`, which is no number in its range"))),
            },
        }
    }

    pub(super) fn error(&self, message: String) -> SheetError {
        SheetError { line: self.number, message }
    }
}

/// Takes line by line off a text, passing over empty ones.
struct Reader<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> Iterator for Reader<'t> {
    type Item = Result<Fields<'t>, SheetError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(rest) = self.rest.strip_prefix('\n').or_else(|| self.rest.strip_prefix("\r\n")) {
            self.rest = rest;
            self.line += 1;
        }
        if self.rest.is_empty() {
            return None;
        }
        let number = self.line;
        let mut fields = Vec::new();
        loop {
            match self.field() {
                Ok((field, is_last)) => {
                    fields.push(field);
                    if is_last {
                        return Some(Ok(Fields { number, fields }));
                    }
                }
                Err(message) => {
                    self.rest = "";
                    return Some(Err(SheetError { line: number, message: message.to_owned() }));
                }
            }
        }
    }
}

impl<'t> Reader<'t> {
    /// Takes a field off, with what ends it; the second value is whether that was the line's end.
    fn field(&mut self) -> Result<(Cow<'t, str>, bool), &'static str> {
        let (field, end) = match self.rest.strip_prefix('"') {
            None => {
                let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
                let field = &self.rest[..end];
                let is_line_end = !self.rest[end..].starts_with(',');
                let field = if is_line_end { field.strip_suffix('\r').unwrap_or(field) } else { field };
                (Cow::Borrowed(field), &self.rest[end..])
            }
            Some(quoted) => {
                let length = closing_quote(quoted).ok_or("a quote is not closed")?;
                self.line += quoted[..length].matches('\n').count();
                let end = &quoted[length + 1..];
                let end = if end.starts_with("\r\n") { &end[1..] } else { end };
                (Cow::Owned(quoted[..length].replace("\"\"", "\"")), end)
            }
        };
        let mut end = end.chars();
        let is_last = match end.next() {
            Some(',') => false,
            Some('\n') => {
                self.line += 1;
                true
            }
            None => true,
            Some(_) => return Err("a closed quote is followed by more text"),
        };
        self.rest = end.as_str();
        Ok((field, is_last))
    }
}

/// Where the quote that `text` began in ends: at the first that is not doubled.
fn closing_quote(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find('"')?;
        if !text[at + 1..].starts_with('"') {
            return Some(at);
        }
        from = at + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fault = (usize, &'static str);

    fn check(text: &str, expected: Result<&[(usize, &str, &str)], Fault>) {
        match (Sheet::parse(text.as_bytes()), expected) {
            (Ok(sheet), Ok(expected)) => {
                let lines: Vec<_> = sheet.lines().collect();
                let got: Vec<_> = lines.iter().map(|line| (line.number, line.text("a"), line.text("b"))).collect();
                assert_eq!(got, expected, "reading {text:?}");
            }
            (got, expected) => {
                let got = got.err().map(|error| (error.line, error.message));
                assert_eq!(got, expected.err().map(|(line, message)| (line, message.to_owned())), "reading {text:?}");
            }
        }
    }

    #[test]
    fn fields_are_read_as_written() {
        check("", Ok(&[]));
        check("a,b\n1,2\n\n3,", Ok(&[(2, "1", "2"), (4, "3", "")]));
        check("b,a\r\n1,2\r\n", Ok(&[(2, "2", "1")]));
        check(
            "a,b\n\"x, \"\"y\"\"\nz\",2\r\n3,\"\"\r\n5,6",
            Ok(&[(2, "x, \"y\"\nz", "2"), (4, "3", ""), (5, "5", "6")]),
        );
        check("a,b\n1,\"", Err((2, "a quote is not closed")));
        check("a,b\n1,\"2\"3\n", Err((2, "a closed quote is followed by more text")));
        check("a,b\n1,2\n3\n", Err((3, "1 fields under a header of 2")));
    }
}
