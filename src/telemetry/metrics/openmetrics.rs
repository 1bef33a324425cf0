//! OpenMetrics 1.0, written from the text exposition format: families without `_total`, a time of creation for what is
//! counted, and exemplars.

use std::borrow::Cow;
use std::fmt::Write;

use super::exemplars::{Exemplars, LABEL};

/// How the format is called where it is asked for and answered.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The media type without its parameters.
const MEDIA_TYPE: &str = "application/openmetrics-text";

/// Whether a request that accepts these media types (RFC 9110, 12.5.1) rather has this format than plain text.
pub(super) fn is_preferred(accept: &str) -> bool {
    let weight_of = |wanted: &[&str]| {
        let ranges = accept.split(',').map(|range| range.split(';').map(str::trim));
        let weights = ranges.filter_map(|mut parts| {
            wanted.contains(&parts.next()?).then(|| {
                let weight = parts.find_map(|parameter| parameter.strip_prefix("q="));
                weight.map_or(1.0, |weight| weight.parse::<f64>().unwrap_or(0.0))
            })
        });
        weights.fold(0.0, f64::max)
    };
    let (ours, plain) = (weight_of(&[MEDIA_TYPE]), weight_of(&["text/plain", "text/*"]));
    ours > 0.0 && ours >= plain
}

/// The same metrics. What is counted was so since `created`, in seconds since the epoch; `exemplars` belong to the
/// buckets of the family of that name.
pub(super) fn translate(text: &str, created: f64, exemplars: (&str, &Exemplars)) -> String {
    let mut translation = Translation {
        out: String::with_capacity(text.len() + text.len() / 4),
        family: Family::default(),
        created,
        exemplars,
    };
    for line in text.lines() {
        translation.line(line);
    }
    translation.out.push_str("# EOF\n");
    translation.out
}

#[derive(Default)]
struct Family<'t> {
    /// As the text format calls it, `_total` included.
    name: &'t str,
    help: &'t str,
    kind: Kind,
    /// Labels of the series whose creation was told last.
    told: Option<&'t str>,
}

#[derive(Default, PartialEq, Eq, Clone, Copy)]
enum Kind {
    #[default]
    Gauge,
    Counter,
    Histogram,
}

struct Translation<'t, 'e> {
    out: String,
    family: Family<'t>,
    created: f64,
    exemplars: (&'e str, &'e Exemplars),
}

// Writing to a string does not fail.
impl<'t> Translation<'t, '_> {
    fn line(&mut self, line: &'t str) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or((rest, ""));
            self.family = Family { name, help, ..Family::default() };
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, ""));
            self.head(name, kind);
        } else if !line.is_empty() && !line.starts_with('#') {
            self.sample(line);
        }
    }

    fn head(&mut self, name: &'t str, kind: &str) {
        if self.family.name != name {
            self.family = Family { name, ..Family::default() };
        }
        self.family.kind = match kind {
            "counter" => Kind::Counter,
            "histogram" => Kind::Histogram,
            _ => Kind::Gauge,
        };
        let family = self.base_name();
        let _ = writeln!(self.out, "# TYPE {family} {kind}");
        if !self.family.help.is_empty() {
            let _ = writeln!(self.out, "# HELP {family} {}", self.family.help.replace('"', "\\\""));
        }
    }

    fn base_name(&self) -> &'t str {
        match self.family.kind {
            Kind::Counter => self.family.name.strip_suffix("_total").unwrap_or(self.family.name),
            Kind::Gauge | Kind::Histogram => self.family.name,
        }
    }

    fn sample(&mut self, line: &'t str) {
        // Values have no space and no timestamp follows them; labels may have both.
        let Some((series, value)) = line.rsplit_once(' ') else { return };
        let (name, labels) = series.find('{').map_or((series, ""), |at| series.split_at(at));
        match self.family.kind {
            Kind::Gauge => {
                let _ = writeln!(self.out, "{line}");
            }
            Kind::Counter => {
                let _ = writeln!(self.out, "{}_total{labels} {value}", self.base_name());
                self.creation(labels);
            }
            Kind::Histogram if name.ends_with("_bucket") => self.bucket(name, labels, value),
            Kind::Histogram => {
                let _ = writeln!(self.out, "{line}");
                if name.ends_with("_count") {
                    self.creation(labels);
                }
            }
        }
    }

    fn creation(&mut self, labels: &'t str) {
        if self.family.told != Some(labels) {
            self.family.told = Some(labels);
            let _ = writeln!(self.out, "{}_created{labels} {}", self.base_name(), self.created);
        }
    }

    fn bucket(&mut self, name: &str, labels: &str, value: &str) {
        // The bound stands last.
        let bound = labels.rsplit_once("le=\"").and_then(|(before, rest)| Some((before, rest.strip_suffix("\"}")?)));
        let Some((before, bound)) = bound else { return };
        let _ = write!(self.out, "{name}{before}le=\"{}\"}} {value}", as_float(bound));
        let of_bound = bound.parse().ok().and_then(|bound| {
            let (family, exemplars) = self.exemplars;
            let label = before.split('"').nth(1).filter(|_| family == self.family.name)?;
            exemplars.of(label).latest(bound)
        });
        if let Some(exemplar) = of_bound {
            let id = exemplar.request_id.replace('\\', "\\\\").replace('"', "\\\"");
            let at = exemplar.at.as_millis() as f64 / 1e3;
            let _ = write!(self.out, " # {{{LABEL}=\"{id}\"}} {} {at}", exemplar.seconds);
        }
        self.out.push('\n');
    }
}

/// A bound as the format wants it: one without a fraction has `.0`.
fn as_float(bound: &str) -> Cow<'_, str> {
    if bound.bytes().all(|byte| byte.is_ascii_digit()) {
        Cow::Owned(format!("{bound}.0"))
    } else {
        Cow::Borrowed(bound)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn it_is_preferred_when_it_is_asked_for_at_least_as_much() {
        let check = |accept: &str, expected: bool| assert_eq!(is_preferred(accept), expected, "{accept}");
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        check(prometheus, true);
        check("application/openmetrics-text", true);
        check("application/openmetrics-text;q=0.5, text/plain", false);
        check("application/openmetrics-text;q=0", false);
        check("application/openmetrics-text; q=x", false);
        check("text/plain;version=0.0.4", false);
        check("*/*", false);
        check("", false);
    }

    #[test]
    fn each_kind_is_written_as_the_format_has_it() {
        let exemplars = Exemplars::new(&[0.5, 1.0]);
        exemplars.want();
        exemplars.of("/a").observe(0.25, || UNIX_EPOCH + Duration::from_millis(7500), "x\"y");
        let check = |text: &str, expected: &str| {
            let translated = translate(text, 12.5, ("took", &exemplars));
            assert_eq!(translated.strip_suffix("# EOF\n").unwrap(), expected);
        };
        check("", "");
        check(
            "# HELP calls_total The \"calls\".\n# TYPE calls_total counter\ncalls_total{tool=\"a b\"} 3\n",
            "# TYPE calls counter\n# HELP calls The \\\"calls\\\".\ncalls_total{tool=\"a b\"} 3\n\
             calls_created{tool=\"a b\"} 12.5\n",
        );
        check("# HELP open Open.\n# TYPE open gauge\nopen 1.5\n", "# TYPE open gauge\n# HELP open Open.\nopen 1.5\n");
        check(
            "# HELP took Took.\n# TYPE took histogram\ntook_bucket{route=\"/a\",le=\"0.5\"} 1\n\
             took_bucket{route=\"/a\",le=\"1\"} 1\ntook_bucket{route=\"/a\",le=\"+Inf\"} 1\n\
             took_sum{route=\"/a\"} 0.25\ntook_count{route=\"/a\"} 1\n",
            "# TYPE took histogram\n# HELP took Took.\n\
             took_bucket{route=\"/a\",le=\"0.5\"} 1 # {request_id=\"x\\\"y\"} 0.25 7.5\n\
             took_bucket{route=\"/a\",le=\"1.0\"} 1\ntook_bucket{route=\"/a\",le=\"+Inf\"} 1\n\
             took_sum{route=\"/a\"} 0.25\ntook_count{route=\"/a\"} 1\ntook_created{route=\"/a\"} 12.5\n",
        );
    }
}
