//! Progress as a client is told it: the server's own, and between its words what the forecast says.
//!
//! A client that waits longer while progress is told is kept waiting by it. Whatever is mixed, `progress` strictly
//! rises, as the protocol demands. Pure: whoever uses it has the clock.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ongoing::OngoingCall;
use crate::jsonrpc::Members;
use crate::jsonrpc::object::{self, Change};

/// The longest silences, if the client's patience is long.
const FIRST: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_secs(5);

/// The smallest rise, as a share of what was told last.
const SMALLEST: f64 = 1e-6;

/// The notifications of one call.
#[derive(Debug)]
pub(super) struct ProgressTeller {
    /// The client's, as it sent it.
    token: Box<RawValue>,
    /// What was told last, and of how much.
    told: Option<(f64, f64)>,
    /// What the server's progress is shifted by, once it told any.
    shift: Option<f64>,
}

impl ProgressTeller {
    /// Of a call whose client sent this token.
    pub(super) fn new(token: Box<RawValue>) -> Self {
        Self { token, told: None, shift: None }
    }

    /// When to tell first, for a client that waits for `patience`, and then how long to be silent at most.
    pub(super) fn rhythm(patience: Duration) -> (Duration, Duration) {
        (FIRST.min(patience / 4), BETWEEN.min(patience / 4))
    }

    /// The notification of the server's progress, whose `params` these are; nothing if it does not rise.
    pub(super) fn relay(&mut self, params: &RawValue) -> Option<String> {
        let members = Members::read(params).ok()?;
        let number = |name: &str| members.get(name).and_then(|raw| raw.get().parse::<f64>().ok());
        let (progress, total) = (number("progress")?, number("total"));
        let shift = *self.shift.get_or_insert_with(|| match (self.told, total) {
            // What was told so far was a fraction of one; the server's whole is made longer by as much.
            (Some((told, _)), Some(total)) if told < 1.0 => told * total.max(0.0) / (1.0 - told),
            (Some((told, _)), _) => told,
            (None, _) => 0.0,
        });
        let shifted = progress + shift;
        if self.told.is_some_and(|(told, _)| shifted <= told) || !shifted.is_finite() {
            return None;
        }
        self.told = Some((shifted, total.map_or(f64::INFINITY, |total| total + shift)));
        let change = |name: &str, _: &RawValue| match name {
            "progressToken" => Change::Set(self.token.get().to_owned()),
            // Verbatim, if nothing was told before.
            "progress" if shift != 0.0 => Change::Set(json!(shifted).to_string()),
            "total" if shift != 0.0 => match total {
                Some(total) => Change::Set(json!(total + shift).to_string()),
                None => Change::Keep,
            },
            _ => Change::Keep,
        };
        let params = object::rewrite(params, change, &[]).ok()?;
        Some(notification(params.get()))
    }

    /// The notification that the call goes on; `share` is how likely it is to have ended by now, 0 to 1.
    pub(super) fn keep_alive(&mut self, share: f64, message: &str) -> Option<String> {
        let (progress, total) = match (self.shift, self.told) {
            // The server told something: only the silence is filled.
            (Some(_), Some((told, total))) => (told + (told.abs() * SMALLEST).max(SMALLEST), total),
            (_, Some((told, _))) => (share.clamp(0.0, 1.0).max(told + (1.0 - told).max(0.0) * 1e-3), 1.0),
            (_, None) => (share.clamp(0.0, 0.999), 1.0),
        };
        if self.told.is_some_and(|(told, _)| progress <= told) || progress > total {
            return None;
        }
        self.told = Some((progress, total));
        let mut params = json!({"progress": progress, "message": message});
        if total.is_finite() {
            params["total"] = if self.shift.is_none() { json!(1) } else { json!(total) };
        }
        let token: Value = serde_json::from_str(self.token.get()).unwrap_or_default();
        params["progressToken"] = token;
        Some(notification(&params.to_string()))
    }
}

/// The notification that a call goes on, as its forecast says it.
pub(super) fn keep_alive(teller: &mut ProgressTeller, call: &OngoingCall) -> Option<String> {
    let elapsed = call.running_for().as_millis() as u64;
    teller.keep_alive(call.forecast.probability_within(elapsed), &standing(call))
}

/// How a call stands, as its forecast says it.
pub(super) fn standing(call: &OngoingCall) -> String {
    let elapsed = call.running_for().as_millis() as u64;
    let share = call.forecast.probability_within(elapsed);
    let [half, most] = call.left_ms();
    if call.sent.get().is_none() {
        format!("waiting for {}", call.tool.server.name)
    } else if share > 0.99 {
        format!("running for {}, longer than 99 in 100 calls", shown(elapsed))
    } else {
        format!("about {} left, {} at most in nine of ten cases", shown(half), shown(most))
    }
}

/// A time for people, with two digits.
pub(super) fn shown(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1} s", ms as f64 / 1000.0),
        10_000..120_000 => format!("{} s", ms.div_ceil(1000)),
        _ => format!("{} min", ms.div_ceil(60_000)),
    }
}

fn notification(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn progress(line: &str) -> f64 {
        serde_json::from_str::<Value>(line).unwrap()["params"]["progress"].as_f64().unwrap()
    }

    #[test]
    fn the_servers_own_is_relayed_as_it_is() {
        let mut teller = ProgressTeller::new(raw(r#""t""#));
        let line = teller.relay(&raw(r#"{"progressToken":7, "progress":1.50,"total":4,"x":[1.0]}"#)).unwrap();
        assert!(line.contains(r#"{"progressToken":"t", "progress":1.50,"total":4,"x":[1.0]}"#), "{line}");
        assert_eq!(teller.relay(&raw(r#"{"progressToken":7,"progress":1}"#)), None, "it does not rise");
        assert_eq!(teller.relay(&raw("[]")), None);
    }

    #[test]
    fn what_was_told_before_the_server_is_taken_into_account() {
        let mut teller = ProgressTeller::new(raw("1"));
        teller.keep_alive(0.5, "m").unwrap();
        let line = teller.relay(&raw(r#"{"progressToken":7,"progress":1,"total":10}"#)).unwrap();
        assert!(line.contains(r#""progress":11.0,"total":20.0"#), "{line}");
        assert!(progress(&teller.keep_alive(0.9, "m").unwrap()) < 11.1, "the silence is filled, no more");
    }

    #[test]
    fn the_rhythm_follows_the_patience() {
        let check = |patience: u64, first: u64, between: u64| {
            let ms = Duration::from_millis;
            assert_eq!(ProgressTeller::rhythm(ms(patience)), (ms(first), ms(between)));
        };
        check(60_000, 1000, 5000);
        check(700, 175, 175);
        check(8000, 1000, 2000);
    }

    proptest! {
        #[test]
        fn whatever_is_mixed_it_rises(
            told in prop::collection::vec((any::<bool>(), -5.0_f64..50.0, prop::option::of(0.0_f64..60.0)), 0..40),
        ) {
            let mut teller = ProgressTeller::new(raw("1"));
            let mut last = f64::NEG_INFINITY;
            for (is_servers, value, total) in told {
                let line = if is_servers {
                    let mut params = json!({"progressToken": 9, "progress": value});
                    if let Some(total) = total {
                        params["total"] = json!(total);
                    }
                    teller.relay(&raw(&params.to_string()))
                } else {
                    teller.keep_alive(value / 50.0, "m")
                };
                if let Some(line) = line {
                    let now = progress(&line);
                    prop_assert!(now > last, "{now} after {last}");
                    last = now;
                }
            }
        }
    }
}
