use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits::of_bytes(256 * 1024);

#[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
fn check(text: &str, expected: Result<Node, (UnreadableKind, usize)>) {
    let got = yaml(text.as_bytes(), &LIMITS).map_err(|error| (error.kind, error.line));
    assert_eq!(got, expected, "reading {:?}", text.chars().take(200).collect::<String>());
}

fn string(text: &str) -> Node {
    Node::String(text.to_owned())
}

#[test]
fn two_escapes_are_one_character() {
    check("{\"a\": \"\\ud83d\\ude00!\"}", Ok(Node::Map(vec![("a".to_owned(), string("\u{1F600}!"))])));
    check("\"\\\\ud83d\\\\ude00\"", Ok(string("\\ud83d\\ude00")));
    check("'\\ud83d\\ude00'", Ok(string("\\ud83d\\ude00")));
    check("a: \"\\ud83d\"", Err((UnreadableKind::Syntax, 1)));
    check("a: \"\\ud83d\\u0041\"", Err((UnreadableKind::Syntax, 1)));
    let both = "{\"a\": \"\\ud83d\\ude00\"}";
    assert_eq!(json(both.as_bytes(), &LIMITS), yaml(both.as_bytes(), &LIMITS));
}

#[test]
fn reads_yaml_1_2() {
    let map = |key: &str, value| Ok(Node::Map(vec![(key.to_owned(), value)]));
    check("a: yes", map("a", string("yes")));
    check("a: true", map("a", Node::Bool(true)));
    check("a: 0o17", map("a", Node::Number(15.into())));
    check("a: ~", map("a", Node::Null));
    check("1: x", map("1", string("x")));
    check("a: 'true'", map("a", string("true")));
    check("a: &x [1]\nb: *x", {
        let one = Node::List(vec![Node::Number(1.into())]);
        Ok(Node::Map(vec![("a".into(), one.clone()), ("b".into(), one)]))
    });
}

#[test]
fn refuses_with_the_line() {
    use UnreadableKind::{DuplicateKey, Syntax, TooDeep, TooManyNodes};
    check("a: 1\nb: 2\na: 3", Err((DuplicateKey, 3)));
    check("a:\n  b: 1\n  b: 2", Err((DuplicateKey, 3)));
    check("a: [1, 2\nb: 3", Err((Syntax, 2)));
    check("a: .inf", Err((Syntax, 1)));
    check("a: !tag x", Err((Syntax, 1)));
    check("a: 1\n---\nb: 2", Err((Syntax, 2)));
    check("# c\n---\na: 1\n---\nb: 2", Err((Syntax, 4)));
    check("a: 1\n...\n# c\n\nb: 2", Err((Syntax, 5)));
    check(&"[".repeat(64), Err((TooDeep, 1)));
    check(&format!("a:\n  {}", "[a, ".repeat(65_000)), Err((TooDeep, 2)));
    check(&format!("a: {}", "{a: ".repeat(65_000)), Err((TooDeep, 1)));
    let many: String = (0..40).map(|i| format!("k{i}: 0\n")).chain(["k7: 1\n".to_owned()]).collect();
    check(&many, Err((DuplicateKey, 41)));
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c \
        [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]";
    assert_eq!(yaml(bomb.as_bytes(), &LIMITS).unwrap_err().kind, TooManyNodes);
}

#[test]
fn a_byte_order_mark_says_nothing() {
    let map = || Ok(Node::Map(vec![("a".to_owned(), Node::Number(1.into()))]));
    check("\u{feff}a: 1", map());
    check("\u{feff}a: 1\nb: [", Err((UnreadableKind::Syntax, 3)));
    check("\u{feff}{\"a\": 1}", map());
    assert_eq!(json("\u{feff}{\"a\": 1}".as_bytes(), &LIMITS).map_err(|error| (error.kind, error.line)), map());
}

#[test]
fn merge_keys_are_refused_by_one_sentence() {
    let text = "a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n";
    let error = yaml(text.as_bytes(), &LIMITS).unwrap_err();
    assert_eq!((error.kind, error.line, error.column), (UnreadableKind::Syntax, 3, 3));
    assert!(error.message.contains("merge keys"), "{}", error.message);
    assert!(json(br#"{"<<": 1}"#, &LIMITS).is_ok(), "JSON has none, so the key is one like others");
}

#[test]
fn a_repeated_long_string_is_charged_by_its_length() {
    let text = format!("a: &a {}\nb: [{}]", "x".repeat(200_000), vec!["*a"; 1000].join(","));
    assert_eq!(yaml(text.as_bytes(), &LIMITS).unwrap_err().kind, UnreadableKind::TooManyNodes);
}

#[test]
fn size_and_encoding_come_first() {
    assert_eq!(yaml(&vec![b'['; 1 << 20], &LIMITS).unwrap_err().kind, UnreadableKind::TooLarge);
    let error = yaml(b"a: 1\nb: \xff", &LIMITS).unwrap_err();
    assert_eq!((error.kind, error.line, error.column), (UnreadableKind::Encoding, 2, 4));
}

#[test]
fn json_is_held_to_the_same_rules() {
    let kind = |text: &str| json(text.as_bytes(), &LIMITS).unwrap_err().kind;
    assert_eq!(kind(r#"{"a":1,"a":2}"#), UnreadableKind::DuplicateKey);
    assert_eq!(kind(r#"{"a":1} x"#), UnreadableKind::Syntax);
    assert_eq!(kind(&"[".repeat(100)), UnreadableKind::TooDeep);
    let message = |text: &str| json(text.as_bytes(), &LIMITS).unwrap_err().message;
    for (text, expected) in [("", "is empty"), (" \n ", "is empty"), (r#"{"a":"#, "ends where a value should stand")] {
        assert_eq!((kind(text), message(text)), (UnreadableKind::Syntax, format!("the text {expected}")));
    }
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        Just(Node::Null),
        any::<bool>().prop_map(Node::Bool),
        any::<i64>().prop_map(|value| Node::Number(value.into())),
        "[ -~äé✓\\n]{0,12}".prop_map(Node::String),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Node::List),
            prop::collection::btree_map("[a-zA-Z0-9 :#-]{1,8}", inner, 0..6)
                .prop_map(|map| Node::Map(map.into_iter().collect())),
        ]
    })
}

/// serde_json's numbers are of no use to another library.
fn as_yaml(node: &Node) -> serde_yaml::Value {
    match node {
        Node::Number(number) => number.as_i64().unwrap().into(),
        Node::List(items) => items.iter().map(as_yaml).collect(),
        Node::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.as_str().into(), as_yaml(value)));
            serde_yaml::Value::Mapping(entries.collect())
        }
        scalar => serde_yaml::to_value(serde_json::Value::from(scalar.clone())).unwrap(),
    }
}

/// Places, how many characters go there, and what comes instead.
fn edits() -> impl Strategy<Value = Vec<(f64, usize, String)>> {
    prop::collection::vec((0.0..1.0, 0_usize..3, "[\\[\\]{}\",:\\\\ 017antrue\n#&*'-]{0,2}"), 0..3)
}

fn edited(mut text: String, edits: &[(f64, usize, String)]) -> String {
    for (place, length, new) in edits {
        let from = text.floor_char_boundary((text.len() as f64 * place) as usize);
        let to = text.ceil_char_boundary((from + length).min(text.len()));
        text.replace_range(from..to, new);
    }
    text
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(node in node()) {
        let value = serde_json::Value::from(node.clone());
        let text = serde_yaml::to_string(&as_yaml(&node)).unwrap();
        prop_assert_eq!(yaml(text.as_bytes(), &LIMITS).unwrap(), node.clone());
        prop_assert_eq!(json(value.to_string().as_bytes(), &LIMITS).unwrap(), node);
    }

    #[test]
    fn json_is_what_the_parser_takes_but_for_equal_keys_and_endless_numbers(node in node(), edits in edits()) {
        let text = edited(serde_json::Value::from(node).to_string(), &edits);
        let parsed = serde_json::from_str::<serde_json::Value>(&text);
        match json(text.as_bytes(), &LIMITS) {
            Ok(node) => prop_assert_eq!(serde_json::Value::from(node), parsed.unwrap()),
            Err(error) if error.kind == UnreadableKind::DuplicateKey => {}
            Err(error) if error.message.ends_with("is not a finite number") => {}
            Err(error) => prop_assert!(parsed.is_err(), "{}: {}", text, error),
        }
    }

    #[test]
    fn a_fault_has_its_place_in_the_text(node in node(), edits in edits()) {
        let text = edited(serde_yaml::to_string(&as_yaml(&node)).unwrap(), &edits);
        let read = [yaml(text.as_bytes(), &LIMITS), json(text.as_bytes(), &LIMITS)];
        for fault in read.into_iter().filter_map(Result::err) {
            // The end may stand on a line of its own.
            prop_assert!(fault.line <= text.split('\n').count() + 1, "{}: {:?}", text, fault);
            let place = format!(" at line {} column {}", fault.line, fault.column);
            prop_assert!(!fault.message.is_empty() && !fault.message.ends_with(&place), "{}", fault.message);
        }
    }
}

#[test]
fn directives_are_few() {
    let of = |count: usize| {
        let tags: String = (0..count).map(|number| format!("%TAG !t{number}! tag:t,2024:\n")).collect();
        yaml(format!("# tags\n{tags}---\na: 1\n").as_bytes(), &Limits::of_bytes(1 << 20))
    };
    assert!(of(MAX_DIRECTIVES).is_ok());
    let error = of(8000).unwrap_err();
    assert_eq!((error.kind, error.line), (UnreadableKind::TooManyNodes, MAX_DIRECTIVES + 2));
}
