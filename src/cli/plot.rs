//! A picture of forecasts beside what happened, as one SVG file that needs nothing else.

use std::fmt::Display;

use crate::timing::Outcome;
use crate::timing::evaluate::{Point, Track};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 540.0;
/// The area of the data: left, top, right and bottom edge.
const FRAME: [f64; 4] = [88.0, 92.0, 936.0, 476.0];
/// Most characters of a name.
const LONGEST_NAME: usize = 50;
/// Most numbers along the x axis.
const CALL_TICKS: usize = 10;

const STYLE: &str = "\
text{font-family:'Helvetica Neue',Arial,'DejaVu Sans',sans-serif;font-size:13px;fill:#333}\
.title{font-size:18px;font-weight:bold;fill:#111}\
.about{fill:#555}\
.grid{stroke:#e3e3e3;stroke-width:1}\
.frame{fill:none;stroke:#888;stroke-width:1}\
.band{fill:#9ecae1;fill-opacity:.55}\
.median{fill:none;stroke:#08519c;stroke-width:1.8;stroke-linejoin:round}\
.ended{fill:#d94801;fill-opacity:.85}\
.censored{fill:#fff;stroke:#d94801;stroke-width:1.4}";

/// Draws the calls of one key: number against duration, the latter on a logarithmic axis.
pub(super) fn svg(track: &Track) -> String {
    let scale = Scale::of(&track.points);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n",
        escape(&format!("Forecast and actual duration of {}", track.key)),
    );
    heading(track, &mut svg);
    axes(&scale, &mut svg);
    data(&track.points, &scale, &mut svg);
    svg += "</svg>\n";
    svg
}

fn heading(track: &Track, svg: &mut String) {
    let [left, top, right, _] = FRAME;
    *svg += &text(left, 32.0, "title", "start", &format!("{}: forecast and actual duration", shorten(&track.key)));
    let mut about = match (track.points.first(), track.points.last()) {
        (Some(first), Some(last)) => {
            format!("calls {} to {} of {}", thousands(first.call), thousands(last.call), thousands(track.calls))
        }
        _ => "no calls".to_owned(),
    };
    if !track.host.is_empty() {
        about += &format!(" on {}", shorten(&track.host));
    }
    let ended: Vec<&Point> = track.points.iter().filter(|point| !is_censored(point)).collect();
    let within =
        ended.iter().filter(|point| (point.p05_ms..=point.p95_ms).contains(&point.observation.duration_ms)).count();
    if !ended.is_empty() {
        about += &format!("; {:.1} % of those that ended lie in the band", 100.0 * within as f64 / ended.len() as f64);
    }
    *svg += &text(left, 52.0, "about", "start", &about);

    // The legend, right above the frame.
    let y = top - 16.0;
    let mut x = right - 462.0;
    let mut entry = |mark: &dyn Fn(f64) -> String, width: f64, label: &str| {
        *svg += &mark(x);
        *svg += &text(x + 30.0, y + 4.5, "", "start", label);
        x += width;
    };
    entry(
        &|x| format!("<rect class=\"band\" x=\"{x}\" y=\"{}\" width=\"24\" height=\"12\"/>\n", y - 6.0),
        114.0,
        "P05 to P95",
    );
    entry(&|x| format!("<path class=\"median\" d=\"M{x} {y}h24\"/>\n"), 76.0, "P50");
    entry(&|x| format!("<circle class=\"ended\" cx=\"{}\" cy=\"{y}\" r=\"4\"/>\n", x + 18.0), 100.0, "call ended");
    entry(
        &|x| format!("<circle class=\"censored\" cx=\"{}\" cy=\"{y}\" r=\"4\"/>\n", x + 18.0),
        0.0,
        "given up: took longer",
    );
}

fn axes(scale: &Scale, svg: &mut String) {
    let [left, top, right, bottom] = FRAME;
    for ms in scale.duration_ticks() {
        let y = scale.y(ms);
        *svg += &format!("<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/>\n");
        *svg += &text(left - 8.0, y + 4.5, "", "end", &thousands(ms.round() as usize));
    }
    for call in scale.call_ticks() {
        let x = scale.x(call);
        *svg += &format!("<path class=\"grid\" d=\"M{x:.1} {top}V{bottom}\"/>\n");
        *svg += &text(x, bottom + 20.0, "", "middle", &thousands(call));
    }
    let (width, height) = (right - left, bottom - top);
    *svg += &format!("<rect class=\"frame\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/>\n");
    *svg += &text(f64::midpoint(left, right), bottom + 46.0, "", "middle", "call number");
    let middle = f64::midpoint(top, bottom);
    *svg += &format!(
        "<text x=\"22\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 22 {middle})\">\
         duration in ms, logarithmic</text>\n"
    );
}

fn data(points: &[Point], scale: &Scale, svg: &mut String) {
    let [left, top, right, bottom] = FRAME;
    let (width, height) = (right - left, bottom - top);
    *svg += &format!(
        "<clipPath id=\"frame\"><rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/></clipPath>\n\
         <g clip-path=\"url(#frame)\">\n"
    );
    let place = |point: &Point, ms: u64| format!("{:.1} {:.1}", scale.x(point.call), scale.y(ms as f64));
    let along = |of: fn(&Point) -> u64| points.iter().map(move |point| place(point, of(point)));
    if !points.is_empty() {
        let back = points.iter().rev().map(|point| place(point, point.p05_ms));
        let band: Vec<String> = along(|point| point.p95_ms).chain(back).collect();
        *svg += &format!("<path class=\"band\" d=\"M{}Z\"/>\n", band.join("L"));
        let median: Vec<String> = along(|point| point.p50_ms).collect();
        *svg += &format!("<path class=\"median\" d=\"M{}\"/>\n", median.join("L"));
    }
    for point in points {
        let class = if is_censored(point) { "censored" } else { "ended" };
        let (x, y) = (scale.x(point.call), scale.y(point.observation.duration_ms as f64));
        *svg += &format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.8\"/>\n");
    }
    *svg += "</g>\n";
}

fn is_censored(point: &Point) -> bool {
    matches!(point.observation.outcome, Outcome::Timeout | Outcome::Cancelled)
}

/// Where calls and durations lie in the frame.
struct Scale {
    /// First and last call.
    calls: (usize, usize),
    /// Shortest and longest duration that is shown, in log10(ms).
    durations: (f64, f64),
}

impl Scale {
    /// All actual durations are shown, and all of the bands but for a few wide ones, as they are of first calls.
    fn of(points: &[Point]) -> Self {
        let calls = (points.first().map_or(1, |point| point.call), points.last().map_or(1, |point| point.call));
        let sorted = |of: fn(&Point) -> u64| {
            let mut all: Vec<f64> = points.iter().map(|point| log(of(point) as f64)).collect();
            all.sort_unstable_by(f64::total_cmp);
            all
        };
        let few = points.len() / 50;
        let (low, high) = (sorted(|point| point.p05_ms), sorted(|point| point.p95_ms));
        let actual = sorted(|point| point.observation.duration_ms);
        let (Some(low), Some(high)) = (low.get(few), high.iter().rev().nth(few)) else {
            return Self { calls, durations: (0.0, 3.0) };
        };
        let low = actual.first().map_or(*low, |actual| low.min(*actual));
        let high = actual.last().map_or(*high, |actual| high.max(*actual));
        // Noise of a few ms does not fill the frame.
        let high = high.max(low + 0.4);
        let margin = (high - low) * 0.06;
        Self { calls, durations: (low - margin, high + margin) }
    }

    fn x(&self, call: usize) -> f64 {
        let [left, _, right, _] = FRAME;
        let (first, last) = self.calls;
        // Half a call is free at both ends.
        left + (right - left) * (call as f64 - first as f64 + 0.5) / (last as f64 - first as f64 + 1.0)
    }

    fn y(&self, ms: f64) -> f64 {
        let [_, top, _, bottom] = FRAME;
        let (low, high) = self.durations;
        bottom - (bottom - top) * (log(ms) - low) / (high - low)
    }

    /// Round durations in ms: powers of ten, and steps between them where there is room.
    fn duration_ticks(&self) -> Vec<f64> {
        let (low, high) = self.durations;
        let steps: &[u32] = match high - low {
            ..0.7 => &[10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90],
            ..2.5 => &[10, 20, 50],
            ..4.5 => &[10, 30],
            _ => &[10],
        };
        let decades = low.floor().max(0.0) as i32..=high.ceil() as i32;
        // Less than 1 ms is not measured.
        let ticks = decades.flat_map(|decade| steps.iter().map(move |step| f64::from(*step) * 10f64.powi(decade - 1)));
        ticks.filter(|ms| (low..=high).contains(&ms.log10()) && (ms - ms.round()).abs() < 1e-6).collect()
    }

    fn call_ticks(&self) -> Vec<usize> {
        let (first, last) = self.calls;
        let mut steps = (0..).flat_map(|decade| [1, 2, 5].map(|step| step * 10_usize.pow(decade)));
        let step = steps.find(|step| (last - first) / step < CALL_TICKS).unwrap_or(1);
        (first.next_multiple_of(step)..=last).step_by(step).collect()
    }
}

/// Durations of less than 1 ms lie where 1 ms does.
fn log(ms: f64) -> f64 {
    ms.max(1.0).log10()
}

fn text(x: f64, y: f64, class: &str, anchor: &str, content: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<text{class} x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n", escape(content))
}

/// As much of a name as there is room for.
fn shorten(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Text as it may stand in XML, which has no place for control characters.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            char if char.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            char => escaped.push(char),
        }
    }
    escaped
}

/// 12345 as 12,345.
fn thousands(number: impl Display) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Observation;

    fn track(key: &str, durations: &[u64]) -> Track {
        let point = |(at, &duration_ms): (usize, &u64)| Point {
            call: 1995 + at,
            p05_ms: duration_ms / 2,
            p50_ms: duration_ms,
            p95_ms: duration_ms * 2,
            observation: Observation {
                duration_ms,
                outcome: if at % 3 == 1 { Outcome::Timeout } else { Outcome::Success },
            },
        };
        let points = durations.iter().enumerate().map(point).collect();
        Track { host: "h&m".to_owned(), key: key.to_owned(), calls: 1994 + durations.len(), points }
    }

    /// Every element that is opened is closed in turn.
    #[track_caller]
    fn check_balance(svg: &str) {
        let mut open = Vec::new();
        for part in svg.split('<').skip(1) {
            let (tag, _) = part.split_once('>').expect("a tag ends");
            assert_eq!(tag.matches('"').count() % 2, 0, "quotes of <{tag}>");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "</{name}>");
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap());
            }
        }
        assert!(open.is_empty(), "{open:?} stay open");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn a_picture_is_well_formed_whatever_the_names_and_durations() {
        let many: Vec<u64> = (0..300).map(|call| 100 + call * 37 % 9000).collect();
        for durations in [&[][..], &[0], &[1, 1], &[86_400_000, 0], &many] {
            let svg = svg(&track("<a b=\"c\">&'\u{1}]]>/m", durations));
            check_balance(&svg);
            assert!(svg.contains("&lt;a b=&quot;c&quot;&gt;&amp;'\u{fffd}]]&gt;/m"), "{svg}");
            assert!(svg.contains("h&amp;m"), "{svg}");
        }
        let long = svg(&track(&"ü".repeat(300), &[1]));
        assert!(long.contains(&format!(">{}…: ", "ü".repeat(LONGEST_NAME))), "{long}");
    }

    #[test]
    fn calls_are_dots_and_hollow_if_given_up() {
        let svg = svg(&track("a", &[1000, 2000, 3000, 4000]));
        let count = |class: &str| svg.matches(&format!("<circle class=\"{class}\"")).count();
        assert_eq!((count("ended"), count("censored")), (3 + 1, 1 + 1), "with the legend's");
        for part in
            ["a: forecast and actual duration", "calls 1,995 to 1,998 of 1,998 on h&amp;m", ">2,000<", ">1,996<"]
        {
            assert!(svg.contains(part), "{part} is not in\n{svg}");
        }
    }

    #[test]
    fn ticks_are_round_and_few() {
        for durations in [&[5, 9][..], &[1, 86_400_000], &[700, 900], &[100, 20_000], &[0, 0]] {
            let ticks = Scale::of(&track("a", durations).points).duration_ticks();
            assert!((2..=14).contains(&ticks.len()), "{durations:?}: {ticks:?}");
        }
        assert_eq!(Scale { calls: (1, 1), durations: (0.0, 1.0) }.call_ticks(), [1]);
        assert_eq!(Scale { calls: (3, 41), durations: (0.0, 1.0) }.call_ticks(), [5, 10, 15, 20, 25, 30, 35, 40]);
    }
}
