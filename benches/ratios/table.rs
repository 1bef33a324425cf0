//! Rows as a table for people, or as JSON.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is what this program is for")]

use serde_json::{Value, json};

use crate::row::Row;

const HEAD: [&str; 7] = ["id", "what", "almanac", "beside", "ratio (quartiles)", "bar", ""];

/// Says on standard error what is being measured, since it takes a while.
pub(crate) fn announce(rows: &[&str]) {
    eprintln!("measuring {} …", rows.join(", "));
}

pub(crate) fn print(rows: &[Row], json: bool) {
    if json {
        println!("{:#}", Value::from(rows.iter().map(object).collect::<Vec<_>>()));
        return;
    }
    let lines: Vec<[String; 7]> = [HEAD.map(str::to_owned)].into_iter().chain(rows.iter().map(cells)).collect();
    let widths: [usize; 7] =
        std::array::from_fn(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default());
    for line in lines {
        let padded: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        println!("{}", padded.join("  ").trim_end());
    }
}

fn cells(row: &Row) -> [String; 7] {
    let id = row.id.to_owned();
    let measured = match &row.measured {
        Ok(measured) => measured,
        Err(why) => {
            return [id, why.clone(), String::new(), String::new(), String::new(), String::new(), String::new()];
        }
    };
    let (spread, unit) = (measured.figure, measured.bar.unit);
    let figure = format!("{:.2}{unit} ({:.2}–{:.2})", spread.median, spread.low, spread.high);
    let verdict = measured.verdict().to_owned();
    [id, row.what.clone(), measured.ours.clone(), measured.theirs.clone(), figure, measured.bar.to_string(), verdict]
}

fn object(row: &Row) -> Value {
    match &row.measured {
        Ok(measured) => json!({
            "id": row.id,
            "what": row.what,
            "almanac": measured.ours,
            "beside": measured.theirs,
            "figure": measured.figure.median,
            "low": measured.figure.low,
            "high": measured.figure.high,
            "unit": measured.bar.unit.trim(),
            "bar": measured.bar.to_string(),
            "verdict": measured.verdict(),
        }),
        Err(why) => json!({"id": row.id, "verdict": why}),
    }
}
