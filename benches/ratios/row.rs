//! One line of the table.

use std::fmt;

use crate::sample::Spread;

/// What was measured, of what, and what is asked of it.
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) what: String,
    pub(crate) measured: Result<Measured, String>,
}

pub(crate) struct Measured {
    pub(crate) ours: String,
    pub(crate) theirs: String,
    /// What is held to the bar: a ratio, or a difference in [`Bar::unit`].
    pub(crate) figure: Spread,
    pub(crate) bar: Bar,
}

/// What the figure must be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bar {
    kind: Kind,
    value: f64,
    /// Empty for a ratio.
    pub(crate) unit: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    AtMost,
    AtLeast,
    /// For comparison only.
    Open,
}

impl Bar {
    /// A bar for comparison only.
    pub(crate) const OPEN: Self = Self { kind: Kind::Open, value: 0.0, unit: "" };

    pub(crate) const fn at_most(value: f64) -> Self {
        Self { kind: Kind::AtMost, value, unit: "" }
    }

    pub(crate) const fn at_least(value: f64) -> Self {
        Self { kind: Kind::AtLeast, value, unit: "" }
    }

    /// The figure is no ratio, but a difference in `unit`.
    pub(crate) const fn of(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    fn verdict(self, figure: f64) -> &'static str {
        match self.kind {
            Kind::AtMost if figure <= self.value => "met",
            Kind::AtLeast if figure >= self.value => "met",
            Kind::Open => "",
            _ => "MISSED",
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.kind {
            Kind::AtMost => "≤",
            Kind::AtLeast => "≥",
            Kind::Open => return Ok(()),
        };
        write!(formatter, "{sign} {:.2}{}", self.value, self.unit)
    }
}

impl Row {
    pub(crate) fn new(id: &'static str, what: impl Into<String>, measured: Measured) -> Self {
        Self { id, what: what.into(), measured: Ok(measured) }
    }

    /// A row without figures, and why.
    pub(crate) fn unmeasured(id: &'static str, why: String) -> Self {
        Self { id, what: String::new(), measured: Err(why) }
    }
}

impl Measured {
    pub(crate) fn verdict(&self) -> &'static str {
        self.bar.verdict(self.figure.median)
    }
}
