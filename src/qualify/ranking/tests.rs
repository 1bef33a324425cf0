use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::catalog::document::UseCase;
use crate::catalog::{Catalog, ToolMetadata};

fn index(tools: &[(&str, &str, &str)]) -> Index {
    let mut catalog = Catalog::default();
    for (name, description, not_for) in tools {
        let case = UseCase { title: "t".into(), not_for: (*not_for).into(), ..UseCase::default() };
        let document = ToolMetadata {
            name: (*name).into(),
            description: (*description).into(),
            use_cases: vec![UseCase { when_to_use: (*description).into(), ..case }],
            ..ToolMetadata::default()
        };
        catalog.add(Arc::new(Entry::new(&document, Path::new("x").into())));
    }
    Index::build(&Arc::new(catalog), None)
}

const TOOLS: [(&str, &str, &str); 4] = [
    ("file_read", "Reads a file from the disk.", ""),
    ("get_weather", "The weather forecast of a city.", "The climate of past centuries, for historians."),
    ("send_email", "Sends an email to a recipient.", ""),
    ("swap_tokens", "Swaps one crypto token for another.", ""),
];

fn check(message: &str, expected: &str) {
    let index = index(&TOOLS);
    let nothing = Usage::new();
    let best = Ranking::new(&index, &Message::new(message), &nothing).best(1);
    assert_eq!(&**best[0].entry.name(), expected, "for {message:?}");
}

#[test]
fn what_changes_something_stands_lower_where_a_message_only_asks() {
    let index = index(&TOOLS);
    let nothing = Usage::new();
    let message = Message::new("what is the price of a crypto token?");
    assert!(message.only_asks);
    let score =
        |message: &Message, tool: &str| Ranking::new(&index, message, &nothing).score(index.number(tool).unwrap());
    let orders = Message { only_asks: false, ..message.clone() };
    for (tool, lower) in [("swap_tokens", UNASKED), ("send_email", UNASKED), ("get_weather", 0.0)] {
        let difference = score(&orders, tool) - score(&message, tool);
        assert!((difference - lower).abs() < 1e-4, "{tool}: {difference}");
    }
}

#[test]
fn more_requests_load_more_tools() {
    let tools: Vec<(String, String)> = (0..60)
        .map(|number| (format!("archive_{number}"), format!("Keeps records of the year {}.", 1900 + number)))
        .collect();
    let tools: Vec<(&str, &str, &str)> = tools.iter().map(|(name, text)| (&**name, &**text, "")).collect();
    let (index, nothing) = (index(&[&TOOLS, &*tools].concat()), Usage::new());
    let loaded = |text: &str| Ranking::new(&index, &Message::new(text), &nothing).loaded(100);
    let one = loaded("Send an email to Ann.");
    let both = loaded("Send an email to Ann. Will it rain in Paris tomorrow?");
    assert!(one.len() < both.len(), "{} and {}", one.len(), both.len());
    for tool in ["send_email", "get_weather"] {
        assert!(both.iter().any(|loaded| **loaded.entry.name() == *tool), "{tool}");
    }
}

#[test]
fn the_best_tool_is_first() {
    check("please open that file for me", "file_read");
    check("will it rain in Paris tomorrow?", "get_weather");
    check("write a message to my boss by mail", "send_email");
    check("swap my coins for another token", "swap_tokens");
    check("", "file_read");
}

/// Prose as people paste it, of so many sentences.
fn pasted(sentences: usize) -> String {
    let prose = [
        "The river rises in the hills and reaches the sea after ninety miles.",
        "In 1911 a railway was built along its banks, which closed again in 1964.",
        "Its upper valley is known for sheep, for slate and for a chapel of the twelfth century.",
        "The council sold the old mill to a trust, and volunteers have restored the wheel since.",
    ];
    prose.iter().copied().cycle().take(sentences).collect::<Vec<_>>().join(" ")
}

#[test]
fn text_around_a_request_does_not_hide_it() {
    for sentences in [1, 4, 12, 200] {
        check(&format!("{}\n\nWill it rain in Paris tomorrow?", pasted(sentences)), "get_weather");
        check(&format!("Send an email to my boss, please.\n{}", pasted(sentences)), "send_email");
    }
}

#[test]
fn each_of_several_requests_brings_its_tool() {
    let (index, nothing) = (index(&TOOLS), Usage::new());
    let message = Message::new("Read the file notes.txt, then email it to Ann. Also, will it rain tomorrow?");
    let mut ranking = Ranking::new(&index, &message, &nothing);
    let best: Vec<Arc<str>> = ranking.best(3).iter().map(|tool| Arc::clone(tool.entry.name())).collect();
    assert!(!best.iter().any(|name| **name == *"swap_tokens"), "{best:?}");
}

#[test]
fn a_name_that_is_said_is_first() {
    check("run `swap_tokens` for the weather in Paris", "swap_tokens");
    check("use file_read on the email about the weather", "file_read");
    check("get weather for the email to my boss", "get_weather");
}

#[test]
fn what_is_turned_down_is_not_first() {
    check("I do NOT want the weather, I want to send an email", "send_email");
    check("swap my tokens instead of reading a file", "swap_tokens");
}

#[test]
fn choices_among_some_tools_do_not_hide_the_others() {
    let index = index(&TOOLS);
    let mut usage = Usage::new();
    for week in 0..60 {
        usage.learn(&index, &Message::new(&format!("could you send the figures of week {week} to Ann?")), "send_email");
        usage.learn(&index, &Message::new(&format!("please open the notes of week {week}")), "file_read");
    }
    for (message, expected) in [("will it rain in Paris?", "get_weather"), ("please swap my token", "swap_tokens")] {
        let best = Ranking::new(&index, &Message::new(message), &usage).best(1);
        assert_eq!(&**best[0].entry.name(), expected, "for {message:?}");
    }
}

#[test]
fn an_empty_catalog_has_no_tools() {
    let (index, nothing) = (index(&[]), Usage::new());
    let mut ranking = Ranking::new(&index, &Message::new("anything"), &nothing);
    assert!(ranking.best(5).is_empty() && ranking.loaded(100).is_empty());
    assert!(ranking.confidence_of([]) < 0.01);
}

#[test]
fn what_a_tool_is_not_for_counts_against_it() {
    let (index, nothing) = (index(&TOOLS), Usage::new());
    let ranking = Ranking::new(&index, &Message::new("the climate of past centuries, for historians"), &nothing);
    assert_eq!(ranking.excluded().collect::<Vec<_>>(), [1]);
}

#[test]
fn choices_turn_the_order() {
    let index = index(&TOOLS);
    let mut usage = Usage::new();
    for _ in 0..4 {
        usage.learn(&index, &Message::new("quarterly zebra figures"), "send_email");
    }
    let best = Ranking::new(&index, &Message::new("zebra figures"), &usage).best(1);
    assert_eq!(&**best[0].entry.name(), "send_email");
    assert!(usage.learn(&index, &Message::new("x"), "gone").is_none());
    assert_eq!(usage.choices(), 4);
}

proptest! {
    #[test]
    fn choices_that_are_read_back_teach_what_they_taught(
        choices in prop::collection::vec(("[abc]{1,2}( [abc]{1,2}){0,3}", 0..TOOLS.len()), 0..40),
        apart in 0_usize..40,
    ) {
        let index = index(&TOOLS);
        let choices: Vec<(Message, &str)> =
            choices.iter().map(|(text, tool)| (Message::new(text), TOOLS[*tool].0)).collect();
        let mut learnt = Usage::new();
        let learn = |(message, tool): &(Message, &str)| learnt.learn(&index, message, tool).unwrap();
        let trusts: Vec<_> = choices.iter().map(learn).collect();
        let mut read = Usage::new().with_adaptation(learnt.adaptation());
        let all: Vec<_> = choices.iter().zip(trusts).map(|((message, tool), trust)| (message, *tool, trust)).collect();
        let (earlier, later) = all.split_at(apart.min(all.len()));
        read.add_all(&index, earlier.iter().copied());
        read.add_all(&index, later.iter().copied());
        prop_assert_eq!(read.choices(), learnt.choices());
        let scores = |usage| Ranking::new(&index, &Message::new("a b cc"), usage).scores;
        prop_assert_eq!(scores(&learnt), scores(&read));
    }

    #[test]
    fn any_message_ranks_all_tools_with_probabilities(text in "\\PC{0,80}") {
        let (index, nothing) = (index(&TOOLS), Usage::new());
        let mut ranking = Ranking::new(&index, &Message::new(&text), &nothing);
        let all = ranking.best(10);
        prop_assert_eq!(all.len(), TOOLS.len());
        for pair in all.windows(2) {
            prop_assert!(ranking.score(pair[0].number) >= ranking.score(pair[1].number));
            prop_assert!(pair[0].confidence >= pair[1].confidence, "a better match is never less likely");
        }
        prop_assert!(all.iter().all(|tool| (0.0..=1.0).contains(&tool.confidence)));
        let loaded = ranking.loaded(3);
        prop_assert!(!loaded.is_empty() && loaded.len() <= 3);
        prop_assert!(ranking.confidence_of(0..TOOLS.len()) >= all[0].confidence);
    }
}

proptest! {
    #[test]
    fn the_best_come_first(scores in prop::collection::vec(score(), 0..40), share in 0.0..=1.0_f64) {
        let compare = |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then_with(|| a.cmp(b));
        let mut expected: Vec<u32> = (0..scores.len() as u32).collect();
        expected.sort_by(compare);
        let mut order: Vec<u32> = (0..scores.len() as u32).rev().collect();
        let count = (share * scores.len() as f64) as usize;
        put_first(&scores, &mut order, count);
        prop_assert_eq!(&order[..count], &expected[..count]);
        order.sort_by(compare);
        prop_assert_eq!(order, expected, "all are there");
    }
}

/// Any float, and few that are equal.
fn score() -> impl Strategy<Value = f32> {
    prop_oneof![any::<f32>(), prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NAN])]
}
