use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::catalog::document::{Conflict, ConflictSeverity, UseCase};
use crate::catalog::{Entry, ToolMetadata};

const CATEGORIES: &str = "
networks: [{name: solana, aliases: [SOL]}, {name: base, aliases: [Base, on base]}]
categories:
- {name: required, description: d, always: true}
- {name: solana, description: d, aliases: [SOL], networks: [solana]}
- {name: base, description: d, aliases: [Base, on base], networks: [base]}
- {name: mail, description: d, keywords: [email]}
";

const TOOLS: [(&str, &str, &str); 7] = [
    ("baseSwap", "base", "Swaps one token for another on the Base network."),
    ("fetch_page", "web", "Fetches a page of the web and returns its text."),
    ("mailRead", "mail", "Reads the emails of an inbox."),
    ("mailSend", "mail", "Sends an email to a recipient."),
    ("scrape_page", "web", "Fetches a page of the web, with its tables."),
    ("solanaSwap", "solana", "Swaps one token for another on the Solana network."),
    ("wallet", "required", "The user's own wallet."),
];

/// Tools without a category.
const SHOP: [(&str, &str, &str); 3] = [
    ("shop_list_orders", "", "Lists the orders of a customer of the shop."),
    ("shop_refund_order", "", "Refunds an order of the shop."),
    ("shop_sales_report", "", "Makes a report of the sales of a year."),
];

fn selector() -> Selector {
    selector_of(&TOOLS)
}

fn selector_of(tools: &[(&str, &str, &str)]) -> Selector {
    let mut catalog = Catalog::default();
    for &(name, category, description) in tools {
        let mut document = ToolMetadata {
            name: name.into(),
            category: category.into(),
            description: description.into(),
            ..ToolMetadata::default()
        };
        if name == "scrape_page" {
            let severity = Some(ConflictSeverity::High);
            document.conflicts = vec![Conflict { tool: "fetch_page".into(), severity, ..Conflict::default() }];
        }
        catalog.add(Arc::new(Entry::new(&document, Path::new("x").into())));
    }
    let categories = Categories::parse(Path::new("c"), CATEGORIES.as_bytes()).unwrap();
    Selector::build(&Arc::new(catalog), &Arc::new(categories), None)
}

fn ask(selector: &Selector, question: &Question<'_>) -> Qualification {
    selector.qualify(&Question { max_tools: 100, ..question.clone() }, &Usage::new())
}

#[test]
fn of_categories_that_nobody_names_the_best_are_offered_together() {
    let names = |begin: &str| (0..20).map(|number| format!("{begin}{number:02}")).collect::<Vec<_>>();
    let (mail, news, lamps) = (names("mail"), names("news"), names("lamp"));
    let of = |names: &'static str, description: &'static str| move |name| (name, names, description);
    let tools = mail.iter().map(String::as_str).map(of("mail", "Reads the emails of an inbox."));
    let tools = tools.chain(news.iter().map(String::as_str).map(of("news", "Reads the headlines of the day.")));
    let tools = tools.chain(lamps.iter().map(String::as_str).map(of("lamps", "Turns a lamp on or off.")));
    let selector = selector_of(&tools.collect::<Vec<_>>());
    let offered = |question: &Question<'_>| {
        let answer = ask(&selector, question);
        let is_of_both = |name: &str| name.starts_with("mail") || name.starts_with("news");
        answer.available.iter().filter(|tool| is_of_both(tool.entry.name())).count()
    };
    let both = ["mail", "news"].map(str::to_owned);
    assert_eq!(offered(&Question { selected_categories: &both, ..says("read them to me") }), 40);
    let context = IntentContext { categories: both.to_vec(), last_confidence: 0.9, ..IntentContext::default() };
    assert_eq!(offered(&Question { context: Some(&context), ..says("show me more of them") }), offer::MOST_OF_LIKELY);
}

#[test]
fn a_category_that_holds_most_tools_tells_nothing() {
    let named = |category: &'static str| {
        let tools = [
            ("addTodo", "Adds an entry to the list of things to do."),
            ("convertUnits", "Converts lengths and weights to other units."),
            ("playMusic", "Plays a song or an album on the speakers."),
            ("readMail", "Reads the emails of an inbox."),
            ("runSql", "Runs a query on the database of orders."),
            ("turnOnLight", "Turns a light on or off."),
            ("weather", "Tells the weather of a place."),
        ];
        tools.map(|(name, description)| (name, category, description))
    };
    let answers =
        ["general", ""].map(|category| ask(&selector_of(&named(category)), &says("turn on the kitchen light")));
    let offered = answers.each_ref().map(|answer| answer.available.len());
    assert!(offered[0] == offered[1] && offered[0] < 7, "{offered:?}");
    assert!((answers[0].confidence - answers[1].confidence).abs() < 1e-6);
    assert_eq!(answers[0].categories, Vec::<String>::new());
    // It may still be asked for.
    let selected = ["general".to_owned()];
    let question = Question { selected_categories: &selected, ..says("turn on the kitchen light") };
    assert_eq!(ask(&selector_of(&named("general")), &question).available.len(), 7);
}

#[test]
fn how_it_went_is_told_in_a_small_catalog_as_well() {
    let tools = [
        ("mailSearch", "mail", "Finds emails that were sent or received."),
        ("mailSend", "mail", "Sends an email to a recipient."),
        ("weather", "", "Tells the weather of a place."),
    ];
    let selector = selector_of(&tools);
    let before = ask(&selector, &says("send an email to Ann"));
    assert_eq!(&**before.available[0].entry.name(), "mailSend");
    let said = ["send an email to Ann".to_owned()];
    let check = |message: &str, expected: &str| {
        let answer = ask(&selector, &Question { context: Some(&before.context), said: &said, ..says(message) });
        assert_eq!(&**answer.available[0].entry.name(), expected, "{message}");
    };
    for question in ["did it go through?", "has the email been sent yet?", "done?"] {
        check(question, "mailSearch");
    }
    check("yes, do it", "mailSend");
}

#[test]
fn a_tool_that_is_called_like_a_file_is_heard() {
    let tools = [("door.lock", "", "Closes a gate."), ("mailSend", "", "Sends an email to a recipient.")];
    let answer = ask(&selector_of(&tools), &says("send an email to a recipient by door.lock"));
    assert_eq!(&**answer.available[0].entry.name(), "door.lock");
}

#[test]
fn a_diary_before_a_request_does_not_hide_it() {
    let diary = "We got to the cabin late, long after dark. The lake was like glass in the morning, and I swam until \
                 my arms hurt. In the evening we sat by the fire and talked about the old house. Mum cried a bit when \
                 that song came on. It was one of those weekends that feel like a month.";
    let selector = selector();
    let check = |text: &str, needs_none: bool| {
        let answer = ask(&selector, &says(text));
        assert_eq!(answer.no_tool_probability > 0.5, needs_none, "{text}: {}", answer.no_tool_probability);
    };
    check(diary, true);
    check(&format!("{diary} Read the emails of my inbox."), false);
    check(&format!("Read the emails of my inbox. {diary}"), false);
}

#[test]
fn small_talk_is_told_among_few_tools() {
    let selector = selector();
    for message in ["hello there", "write a poem about autumn", "hola, ¿qué tal?"] {
        let answer = ask(&selector, &says(message));
        assert!(answer.no_tool_needed && answer.no_tool_probability >= 0.6, "{message}: {answer:#?}");
    }
    for message in ["send an email to Ann", "swap 2 SOL for USDC", "read my inbox"] {
        let answer = ask(&selector, &says(message));
        assert!(!answer.no_tool_needed && answer.no_tool_probability < 0.6, "{message}: {answer:#?}");
    }
}

#[test]
fn a_tool_whose_name_is_said_is_offered_first() {
    let selector = selector();
    for (message, tool) in [
        ("use `baseSwap`", "baseSwap"),
        ("call solanaSwap", "solanaSwap"),
        ("please run baseSwap for me", "baseSwap"),
        ("mailSend", "mailSend"),
        ("use fetch_page on the emails of my inbox", "fetch_page"),
    ] {
        let answer = ask(&selector, &says(message));
        assert!(!answer.no_tool_needed && &*answer.tool_hints[0] == tool, "{message}: {answer:#?}");
        assert_eq!(&**answer.available[0].entry.name(), tool, "{message}");
    }
}

#[test]
fn a_network_that_is_turned_down_is_not_named() {
    for message in [
        "use Base rather than SOL to swap 1 token",
        "instead of SOL swap my token on Base",
        "swap my token on Base, not on solana",
    ] {
        let answer = ask(&selector(), &says(message));
        let names: Vec<&str> = answer.available.iter().map(|tool| &**tool.entry.name()).collect();
        assert!(names.contains(&"baseSwap") && !names.contains(&"solanaSwap"), "{message}: {names:?}");
        assert_eq!(answer.networks, ["base"], "{message}");
    }
}

#[test]
fn what_was_chosen_elsewhere_hides_nothing_here() {
    let selector = selector();
    let mut usage = Usage::new();
    for _ in 0..20 {
        usage.learn(selector.index(), &Message::new("is this token a honeypot"), "baseSwap").unwrap();
    }
    let networks = ["solana".to_owned()];
    let question = Question { networks: &networks, max_tools: 100, ..says("is this token a honeypot") };
    let answer = selector.qualify(&question, &usage);
    let names: Vec<&str> = answer.available.iter().map(|tool| &**tool.entry.name()).collect();
    assert!(names.contains(&"solanaSwap"), "{names:?}");
}

#[test]
fn what_a_tool_was_chosen_for_once_may_need_one() {
    let selector = selector();
    let mut usage = Usage::new();
    usage.learn(selector.index(), &Message::new("write a poem about autumn"), "fetch_page").unwrap();
    let probability = |message: &str| selector.qualify(&says(message), &usage).no_tool_probability;
    assert!(probability("write a poem about autumn") < 0.2);
    assert!(probability("hello there") >= 0.75, "another message stays what it is");
    assert!(probability("write a poem about spring in the mountains") >= 0.75, "a part of the words is not enough");
}

#[test]
fn tools_without_a_category_are_what_a_conversation_is_about() {
    for selector in [selector_of(&SHOP), selector_of(&[&TOOLS[..], &SHOP].concat())] {
        let first = "generate the yearly sales report";
        let answer = ask(&selector, &says(first));
        assert!(answer.confidence >= 0.5 && &*answer.tool_hints[0] == "shop_sales_report", "{answer:#?}");
        let said = [first.to_owned()];
        let next = Question { context: Some(&answer.context), said: &said, ..says("yes, do it") };
        let next = ask(&selector, &next);
        assert!(next.sticky && !next.no_tool_needed && &*next.tool_hints[0] == "shop_sales_report", "{next:#?}");
        let solana = IntentContext {
            networks: vec!["solana".to_owned()],
            categories: vec!["solana".to_owned()],
            last_confidence: 0.9,
            ..IntentContext::default()
        };
        let answer = ask(&selector, &Question { context: Some(&solana), ..says("list the orders of customer anna") });
        assert!(!answer.sticky && !answer.categories.contains(&"solana".to_owned()), "{answer:#?}");
        assert_eq!(&*answer.tool_hints[0], "shop_list_orders");
    }
}

#[test]
fn a_few_words_change_what_was_asked_unless_they_stand_alone() {
    let selector = selector_of(&[&TOOLS[..], &SHOP].concat());
    let first = "generate the yearly sales report";
    let before = ask(&selector, &says(first)).context;
    let said = [first.to_owned()];
    let check = |message: &str, expected: &str, is_sticky: bool| {
        let answer = ask(&selector, &Question { context: Some(&before), said: &said, ..says(message) });
        assert_eq!(answer.tool_hints.first().map(|tool| &**tool), Some(expected), "{message}: {answer:#?}");
        assert!(answer.sticky == is_sticky && !answer.no_tool_needed, "{message}: {answer:#?}");
    };
    check("larger amounts", "shop_sales_report", true);
    check("2019 is better", "shop_sales_report", true);
    check("refund an order", "shop_refund_order", false);
    let thanks = Question { context: Some(&before), said: &said, ..says("thanks, have a great weekend!") };
    assert!(ask(&selector, &thanks).no_tool_needed);
}

#[test]
fn one_tool_alone_is_not_sure_of_every_message() {
    let selector = selector_of(&[("get_weather", "general", "Says what the weather is in a city, now and tomorrow.")]);
    let check = |message: &str, expected: std::ops::Range<f32>| {
        let answer = ask(&selector, &says(message));
        assert!(expected.contains(&answer.confidence), "{message}: {answer:#?}");
        assert!(answer.available[0].confidence <= answer.confidence + 1e-6, "{message}: {answer:#?}");
    };
    for other in ["open the garage door", "delete all my emails", "order a pizza"] {
        check(other, 0.0..0.3);
    }
    check("what will the weather be in Oslo tomorrow?", 0.8..1.01);
    check("use get_weather", 0.8..1.01);
}

#[test]
fn what_is_like_an_example_needs_a_tool() {
    let message = "how is the little dog doing";
    let probability = |example: &str| {
        let case = UseCase { example: example.into(), ..UseCase::default() };
        let document = ToolMetadata {
            name: "coin_price".into(),
            description: "The price of a coin.".into(),
            use_cases: vec![case],
            ..ToolMetadata::default()
        };
        let mut catalog = Catalog::default();
        catalog.add(Arc::new(Entry::new(&document, Path::new("x").into())));
        let selector = Selector::build(&Arc::new(catalog), &Arc::new(Categories::default()), None);
        ask(&selector, &says(message)).no_tool_probability
    };
    let (like, unlike) = (probability("How is the little dog doing?"), probability("What does the coin cost?"));
    assert!(like < 0.1 && unlike > 2.0 * like, "{like} and {unlike}");
}

fn says(message: &str) -> Question<'_> {
    Question { message, ..Question::default() }
}

fn check(question: &Question<'_>, categories: &[&str], networks: &[&str]) {
    let answer = ask(&selector(), question);
    assert_eq!(answer.categories, categories, "{question:?}: {answer:#?}");
    assert_eq!(answer.networks, networks, "{question:?}");
}

#[test]
fn names_decide_and_networks_hold_back() {
    check(&says("swap my SOL"), &["required", "solana"], &["solana"]);
    check(&says("swap a token on Base"), &["required", "base"], &["base"]);
    check(&says("send an email to my boss"), &["required", "mail"], &[]);
    let base = ["base".to_owned()];
    check(&Question { networks: &base, ..says("swap a token for another") }, &["required", "base"], &["base"]);
    // Without a network no network's category is guessed, and of its tools those that fit best.
    let answer = ask(&selector(), &says("swap a token for another"));
    assert!(!answer.categories.iter().any(|name| name == "solana" || name == "base"), "{answer:#?}");
    let hints: Vec<&str> = answer.tool_hints.iter().map(|name| &**name).collect();
    assert!(hints.contains(&"solanaSwap") && hints.contains(&"baseSwap") && answer.networks.is_empty(), "{answer:#?}");
    assert!(answer.reasoning.contains("of networks' own tools only the best"), "{}", answer.reasoning);
    let answer = ask(&selector(), &says("swap a token for another on Base"));
    assert!(!answer.available.iter().any(|tool| &**tool.entry.name() == "solanaSwap"), "{answer:#?}");
    let answer = ask(&selector(), &says("send an email to my boss"));
    assert!(!answer.available.iter().any(|tool| tool.entry.name().ends_with("Swap")), "{answer:#?}");
}

#[test]
fn of_two_in_high_conflict_the_better_is_offered() {
    let answer = ask(&selector(), &says("which tables has that page of the web?"));
    let names: Vec<&str> = answer.available.iter().map(|tool| &**tool.entry.name()).collect();
    assert!(names.contains(&"scrape_page"), "{names:?}");
    let selected = ["web".to_owned()];
    let both = ask(&selector(), &Question { selected_categories: &selected, ..says("tables") });
    assert_eq!(both.available.len(), 3, "a category that was selected is offered whole");
}

#[test]
fn what_the_caller_says_holds() {
    let (exact, excluded) = (["mailRead".to_owned(), "gone".to_owned()], ["wallet".to_owned()]);
    let question = Question { exact_tools: &exact, ignore_other_tools: true, ..says("swap my SOL") };
    let names = |question: &Question<'_>| -> Vec<String> {
        ask(&selector(), question).available.iter().map(|tool| tool.entry.name().to_string()).collect()
    };
    assert_eq!(names(&question), ["mailRead"]);
    assert_eq!(names(&Question { ignore_other_tools: false, ..question.clone() })[0], "mailRead");
    assert!(!names(&Question { excluded_tools: &excluded, ..says("swap my SOL") }).contains(&"wallet".to_owned()));
}

proptest! {
    #[test]
    fn whatever_is_said_the_answer_is_of_the_catalog(
        message in "\\PC{0,60}",
        categories in prop::collection::vec("[a-z]{1,8}|solana|required", 0..6),
        turns in any::<u64>(),
        confidence in 0.0_f32..=1.0,
    ) {
        let selector = selector();
        let context = IntentContext { categories, turns_since_update: turns, last_confidence: confidence,
            ..IntentContext::default() };
        let answer = ask(&selector, &Question { context: Some(&context), ..says(&message) });
        prop_assert_eq!(answer.categories.first().map(String::as_str), Some("required"));
        prop_assert!(answer.categories.iter().all(|name| selector.category_index().names().any(|known| known == name)));
        prop_assert!((0.0..=1.0).contains(&answer.confidence));
        prop_assert!(!answer.reasoning.is_empty());
        prop_assert!(answer.available.iter().any(|tool| &**tool.entry.name() == "wallet"));
        let again = ask(&selector, &Question { context: Some(&context), ..says(&message) });
        prop_assert_eq!(again.reasoning, answer.reasoning);
    }
}
