//! Reading a recorded history.

use super::sheet::{Line, Sheet, SheetError};
use crate::timing::complexity::Complexity;
use crate::timing::key::Key;
use crate::timing::outcome::{Observation, Outcome};

/// Calls in the order they began.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    pub rows: Vec<Row>,
    /// Does every row say when its call began? If not, rows are in the order of the file.
    pub is_timed: bool,
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// When it began, in ms since any moment; nothing unless all rows of the stream say it.
    pub at_ms: Option<i64>,
    /// The daemon that recorded it.
    pub host: Box<str>,
    pub tool: Box<str>,
    /// Its mode, empty for none.
    pub mode: Box<str>,
    pub observation: Observation,
    /// How much it had to do.
    pub complexity: Complexity,
}

impl Row {
    /// The key that the call belongs to.
    pub fn key(&self) -> Key<'_> {
        Key::new(&self.tool, &self.mode).ended_in(self.observation.outcome)
    }
}

impl Stream {
    /// Reads `text`. The columns tool and duration_ms must be there; others are taken as empty, unknown ones are passed
    /// over.
    pub fn parse(text: &[u8]) -> Result<Self, SheetError> {
        let sheet = Sheet::parse(text)?;
        sheet.require(&["tool", "duration_ms"])?;
        let mut rows: Vec<Row> = sheet.lines().map(|line| Row::read(&line)).collect::<Result<_, _>>()?;
        let is_timed = rows.iter().all(|row| row.at_ms.is_some());
        if is_timed {
            rows.sort_by_key(|row| row.at_ms);
        } else {
            for row in &mut rows {
                row.at_ms = None;
            }
        }
        Ok(Self { rows, is_timed })
    }

    /// The calls whose duration is known.
    pub(super) fn ended(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.observation.outcome.is_censored())
    }
}

impl Row {
    fn read(line: &Line<'_>) -> Result<Self, SheetError> {
        let tool = line.text("tool");
        if tool.is_empty() {
            return Err(line.error("the tool has no name".to_owned()));
        }
        let outcome = match line.text("outcome") {
            "" => Outcome::Success,
            spelling => Outcome::parse(spelling).ok_or_else(|| {
                line.error(format!("`{spelling}` is no outcome; expected success, error, timeout or cancelled"))
            })?,
        };
        let duration: f64 = line.number("duration_ms")?;
        if !(duration.is_finite() && duration >= 0.0) {
            return Err(line.error(format!("a call does not take {duration} ms")));
        }
        Ok(Self {
            at_ms: line.optional::<f64>("ts_ms")?.map(|at| at as i64),
            host: line.text("host").into(),
            tool: tool.into(),
            mode: line.text("mode").into(),
            observation: Observation { duration_ms: duration.round() as u64, outcome },
            complexity: Complexity {
                content_length: line.optional("content_length")?,
                num_perspectives: line.optional("num_perspectives")?,
                num_branches: line.optional("num_branches")?,
                thinking_budget: line.optional("thinking_budget")?,
                context_tokens: line.optional("context_tokens")?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<usize, (usize, &str)>) {
        let got = Stream::parse(text.as_bytes()).map(|stream| stream.rows.len());
        let got = got.map_err(|error| (error.line, error.message));
        let got = got.as_ref().map(|rows| *rows).map_err(|(line, message)| (*line, message.as_str()));
        assert_eq!(got, expected, "reading {text:?}");
    }

    #[test]
    fn a_fault_is_found_at_its_line() {
        check("tool,duration_ms\na,1\n\nb,2.0\n", Ok(2));
        check("", Err((1, "the column tool is missing")));
        check(
            "tool,duration_ms\r\n\"a, or\nb\",1\r\nb,x\r\n",
            Err((4, "duration_ms is `x`, which is no number in its range")),
        );
        check("tool,mode\n", Err((1, "the column duration_ms is missing")));
        check("tool,duration_ms\na,1\nb\n", Err((3, "1 fields under a header of 2")));
        check("tool,duration_ms\na,x\n", Err((2, "duration_ms is `x`, which is no number in its range")));
        check("tool,duration_ms\na,-1\n", Err((2, "a call does not take -1 ms")));
        check("tool,duration_ms\na,NaN\n", Err((2, "a call does not take NaN ms")));
        check("tool,duration_ms\n,1\n", Err((2, "the tool has no name")));
        check("tool,duration_ms\na,\n", Err((2, "duration_ms is empty")));
        let unknown = "`ok` is no outcome; expected success, error, timeout or cancelled";
        check("tool,duration_ms,outcome\na,1,\na,1,ok\n", Err((3, unknown)));
        let negative = "num_branches is `-1`, which is no number in its range";
        check("tool,duration_ms,num_branches\na,1,-1\n", Err((2, negative)));
    }

    #[test]
    fn a_row_is_read_whole() {
        let text = "ts_ms,host,tool,mode,duration_ms,outcome,content_length,num_perspectives,num_branches,\
                    thinking_budget,context_tokens\n\
                    1,h,t,m,7,error,1,2,,4,5\n";
        let stream = Stream::parse(text.as_bytes()).unwrap();
        let complexity = Complexity {
            content_length: Some(1),
            num_perspectives: Some(2),
            num_branches: None,
            thinking_budget: Some(4),
            context_tokens: Some(5),
        };
        let observation = Observation { duration_ms: 7, outcome: Outcome::Error };
        let row = Row { at_ms: Some(1), host: "h".into(), tool: "t".into(), mode: "m".into(), observation, complexity };
        assert_eq!(stream.rows, [row]);
        assert_eq!(stream.rows[0].key().shown_mode(), "m#error");
    }
}
