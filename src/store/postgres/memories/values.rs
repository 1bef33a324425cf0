//! Values of a statement that is put together: each has its number.

use tokio_postgres::types::{ToSql, Type};

use crate::store::postgres::session::StatementValue;

#[derive(Debug, Clone)]
enum Value {
    Text(String),
    Texts(Vec<String>),
    Whole(i64),
    Real(f64),
    Truth(bool),
    Wholes(Vec<i64>),
}

/// They are named in the order in which they are put.
#[derive(Debug, Clone, Default)]
pub(super) struct StatementValues(Vec<Value>);

impl StatementValues {
    fn put(&mut self, value: Value) -> String {
        self.0.push(value);
        format!("${}", self.0.len())
    }

    pub(super) fn text(&mut self, text: &str) -> String {
        self.put(Value::Text(text.to_owned()))
    }

    pub(super) fn texts(&mut self, texts: &[String]) -> String {
        self.put(Value::Texts(texts.to_vec()))
    }

    pub(super) fn whole(&mut self, number: i64) -> String {
        self.put(Value::Whole(number))
    }

    pub(super) fn wholes(&mut self, numbers: &[i64]) -> String {
        self.put(Value::Wholes(numbers.to_vec()))
    }

    pub(super) fn real(&mut self, number: f64) -> String {
        self.put(Value::Real(number))
    }

    pub(super) fn truth(&mut self, truth: bool) -> String {
        self.put(Value::Truth(truth))
    }

    pub(super) fn parameters(&self) -> Vec<StatementValue<'_>> {
        self.0.iter().map(parameter).collect()
    }
}

fn parameter(value: &Value) -> StatementValue<'_> {
    let (value, kind): (&(dyn ToSql + Sync), Type) = match value {
        Value::Text(text) => (text, Type::TEXT),
        Value::Texts(texts) => (texts, Type::TEXT_ARRAY),
        Value::Whole(number) => (number, Type::INT8),
        Value::Real(number) => (number, Type::FLOAT8),
        Value::Truth(truth) => (truth, Type::BOOL),
        Value::Wholes(numbers) => (numbers, Type::INT8_ARRAY),
    };
    (value, kind)
}
