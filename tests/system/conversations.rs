//! Conversations: what a message means after another one, and what a tool that was missed changes.

use std::path::Path;

use serde_json::{Value, json};

use crate::daemon::{Daemon, almanacd, ask, serve_shipped, serve_shipped_on, shipped};

/// Dialogues that the rules were tuned on, and those that were written afterwards.
const DIALOGUES: [&str; 2] = ["dialogues.jsonl", "dialogues_unseen.jsonl"];

fn qualify(daemon: &Daemon, body: &Value) -> Value {
    ask(daemon, "/v1/qualify", body)
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// The place of a tool among those offered, from 0.
fn place(answer: &Value, tool: &str) -> Option<usize> {
    names(&answer["availableTools"]).iter().position(|name| *name == tool)
}

/// The answer to the second message, where the daemon keeps the session, and where the context is sent back.
fn both_ways(daemon: &Daemon, first: &str, second: &str) -> [Value; 2] {
    let session = format!("{first} {second}");
    qualify(daemon, &json!({"message": first, "sessionId": session}));
    let kept = qualify(daemon, &json!({"message": second, "sessionId": session}));
    let context = qualify(daemon, &json!({"message": first}))["intentContext"].clone();
    [kept, qualify(daemon, &json!({"message": second, "intentContext": context}))]
}

#[test]
fn networks_and_assets_replace_their_like_and_leave_the_intent() {
    let (_site, daemon) = serve_shipped();
    let check = |first: &str, second: &str, networks: Value, categories: &[&str], tool: &str| {
        for answer in both_ways(&daemon, first, second) {
            assert_eq!(answer["networks"], networks, "{first} {second}: {answer:#}");
            assert_eq!(answer["stickyFallbackApplied"], true, "{first} {second}: {answer:#}");
            let offered = names(&answer["categories"]);
            assert!(categories.iter().all(|name| offered.contains(name)), "{first} {second}: {offered:?}");
            assert!(place(&answer, tool).is_some_and(|place| place < 5), "{first} {second}: {answer:#}");
            assert_eq!(answer["noToolNeeded"], false);
        }
    };
    check(
        "Show ETH funding rates on Coinglass",
        "and for SOL?",
        json!(["solana"]),
        &["coinglass"],
        "getCoinglassFundingRates",
    );
    check("Bridge 100 USDC from Ethereum to Polygon", "and to Base?", json!(["base"]), &["base"], "bridgeTokens");
    check("swap 2 SOL for USDC", "and on Base?", json!(["base"]), &["base"], "baseSwapTokens");
    // The network that is left is not there any more.
    let [kept, _] = both_ways(&daemon, "swap 2 SOL for USDC", "and on Base?");
    assert!(!names(&kept["categories"]).contains(&"solana"), "{kept:#}");
}

#[test]
fn another_asset_in_any_words_goes_on_with_what_was_asked() {
    let (_site, daemon) = serve_shipped();
    let forms =
        ["doge?", "now xrp", "what about celestia", "wif too", "do avax as well", "sry i meant pepe", "no, ada"];
    for (first, tool) in
        [("funding rates for btc", "getCoinglassFundingRates"), ("who invested in eigenlayer", "getMessariFundraising")]
    {
        for second in forms {
            for answer in both_ways(&daemon, first, second) {
                assert!(place(&answer, tool).is_some_and(|place| place < 5), "{first} {second}: {answer:#}");
                assert_eq!(
                    (&answer["noToolNeeded"], &answer["stickyFallbackApplied"]),
                    (&json!(false), &json!(true)),
                    "{first} {second}: {answer:#}"
                );
            }
        }
    }
    for second in ["no i meant on polygon", "switch to polygon", "wrong chain, polygon"] {
        for answer in both_ways(&daemon, "swap 0.5 eth to usdc on base", second) {
            assert_eq!(place(&answer, "polygonSwapTokens"), Some(0), "{second}: {answer:#}");
            assert_eq!(answer["networks"], json!(["polygon"]), "{second}");
        }
    }
}

#[test]
fn confirmations_mean_what_was_said_before() {
    let (_site, daemon) = serve_shipped();
    let first = "swap 2 SOL for USDC";
    let seconds = [
        "continue",
        "sure",
        "go ahead",
        "yes, do it",
        "make it 2",
        "👍",
        "y",
        "of course",
        "confirmed",
        "resume",
        "2",
        "sí",
        "vas-y",
        "d'accord",
        "ja, mach das",
        "可以",
        "давай",
    ];
    for second in seconds {
        for answer in both_ways(&daemon, first, second) {
            assert_eq!(answer["noToolNeeded"], false, "{second}: {answer:#}");
            assert_eq!(answer["stickyFallbackApplied"], true, "{second}");
            assert_eq!(answer["categories"], json!(["required", "solana"]), "{second}");
            assert!(place(&answer, "solanaSwapTokens").is_some_and(|place| place < 3), "{second}: {answer:#}");
        }
    }
    for second in ["thanks!", "hello, how are you?"] {
        let [kept, echoed] = both_ways(&daemon, first, second);
        assert_eq!((&kept["noToolNeeded"], &echoed["noToolNeeded"]), (&json!(true), &json!(true)), "{second}");
        assert_eq!(kept["intentContext"]["categories"], json!(["required", "solana"]), "{second}");
    }
}

#[test]
fn what_is_called_off_does_not_come_back_and_a_reaction_changes_nothing() {
    let (_site, daemon) = serve_shipped();
    let swaps = |answer: &Value| answer["toolHints"][0] == "solanaSwapTokens";
    let converse = |session: &str, messages: &[&str]| {
        let ask = |message: &&str| qualify(&daemon, &json!({"message": message, "sessionId": session}));
        messages.iter().map(ask).fold(Value::Null, |_, answer| answer)
    };
    let calling_off = ["dont do it", "No, don't send it!", "not now", "nvm forget it", "I changed my mind"];
    for call_off in calling_off.into_iter().chain(["no", "wait no", "stop it", "abort mission", "wrong token!"]) {
        let answer = converse(call_off, &["swap 1 sol to usdc", call_off]);
        assert_eq!(
            (&answer["noToolNeeded"], answer.get("activeIntent")),
            (&json!(true), None),
            "{call_off}: {answer:#}"
        );
        let after = converse(call_off, &["ok"]);
        assert_eq!(after["noToolNeeded"], true, "{call_off}: {after:#}");
    }
    for reaction in ["hmm", "hold on", "wow", "that's insane", "wait", "are you sure?"] {
        let answer = converse(reaction, &["swap 1 sol to usdc", reaction]);
        assert_eq!(answer["noToolNeeded"], true, "{reaction}: {answer:#}");
        assert!(swaps(&converse(reaction, &["yes do it"])), "{reaction}");
    }
    // However often somebody reacted.
    let late = ["swap 1 sol to usdc", "hmm", "wow", "hmm", "wow", "hmm", "wow", "don't do it", "yes do it"];
    assert!(!swaps(&converse("late", &late)));
    for order in ["hey, go ahead", "good morning, please continue"] {
        assert!(swaps(&converse(order, &["swap 1 sol to usdc", order])), "{order}");
    }
}

#[test]
fn a_no_to_what_changes_nothing_leaves_it_as_it_was() {
    let (_site, daemon) = serve_shipped();
    let ask = |message: &str| qualify(&daemon, &json!({"message": message, "sessionId": "s"}));
    assert_eq!(ask("show trending tokens on solana")["toolHints"][0], "solanaTrendingTokens");
    assert_eq!(ask("no, thanks")["noToolNeeded"], true);
    ask("wrong one");
    assert_eq!(ask("what about base?")["toolHints"][0], "baseTrendingTokens");
}

#[test]
fn who_asks_how_it_went_is_offered_what_tells_and_not_the_same_again() {
    let (_site, daemon) = serve_shipped();
    let check = |number: usize, request: &str, question: &str, [does, tells]: [&str; 2]| {
        let ask =
            |message: &str| qualify(&daemon, &json!({"message": message, "sessionId": format!("{number} {question}")}));
        assert_eq!(ask(request)["toolHints"][0], does, "{request}");
        let answer = ask(question);
        let said = format!("{request}; {question}: {answer:#}");
        assert!(place(&answer, tells).is_some_and(|place| place < 3), "{said}");
        assert!(place(&answer, does).is_none_or(|place| place >= 5), "{said}");
        assert_eq!((&answer["noToolNeeded"], answer.get("activeIntent")), (&json!(false), None), "{said}");
        assert_eq!(ask("do it once more")["toolHints"][0], does, "{request}; {question}");
    };
    for question in ["did it go through?", "done?", "did u actually send it", "any update?", "why did it fail?"] {
        check(1, "swap 1 sol to usdc", question, ["solanaSwapTokens", "solanaGetTransaction"]);
        check(2, "bridge 0.1 eth from ethereum to base", question, ["bridgeTokens", "getBridgeStatus"]);
        check(
            3,
            "send 0.05 eth to vitalik.eth on ethereum",
            question,
            ["ethereumTransferTokens", "ethereumGetTransactionStatus"],
        );
    }
}

#[test]
fn who_only_asks_is_not_offered_first_what_changes_something() {
    let (_site, daemon) = serve_shipped();
    let check = |message: &str, tools: &[&str]| {
        let answer = qualify(&daemon, &json!({"message": message}));
        let first = answer["toolHints"][0].as_str().unwrap_or_default();
        assert!(tools.contains(&first), "{message}: {answer:#}");
    };
    check("what's the price of SOL?", &["solanaGetTokenPrice", "getDefillamaTokenPrices"]);
    check("price of toshi on base", &["baseGetTokenPrice"]);
    check("hbar price", &["getDefillamaTokenPrices"]);
    check("whats doge at", &["getDefillamaTokenPrices"]);
    check("how much usdc do i have on base", &["baseGetTokenBalances", "wallet"]);
    check("how many usdt have i got on bsc", &["bscGetTokenBalances", "wallet"]);
    check("is pepe a rug on ethereum", &["ethereumCheckTokenSecurity"]);
    check("buy 2 jup", &["solanaSwapTokens"]);
    check("how do I swap SOL to USDC?", &["solanaSwapTokens", "solanaGetSwapQuote"]);
}

#[test]
fn a_network_s_name_says_where_not_what() {
    let (_site, daemon) = serve_shipped();
    let check = |message: &str, networks: Value, tool: &str| {
        let answer = qualify(&daemon, &json!({"message": message}));
        assert_eq!(answer["networks"], networks, "{message}: {answer:#}");
        assert!(place(&answer, tool).is_some_and(|place| place < 5), "{message}: {answer:#}");
    };
    check("Search GitHub for Solana SDKs", json!(["solana"]), "searchGithub");
    check("ETH ETF flows", json!(["ethereum"]), "getCoinglassEtfFlows");
    check("Which Solana protocols were hacked this year?", json!(["solana"]), "getDefillamaHacks");
    check("swap 2 SOL for USDC", json!(["solana"]), "solanaSwapTokens");
    check("Send 5 USDC to bob.base.eth on Base", json!(["base"]), "baseTransferTokens");
    check("Who is vitalik.eth?", json!(["ethereum"]), "ethereumResolveEnsName");
    check("ape into popcat", json!(["solana"]), "solanaSwapTokens");
    check("search the web for a cake recipe", json!([]), "websearch");
    check("Run npm install @solana/web3.js", json!([]), "shell_execute");
    check("Extract the table from ethereum_report.pdf", json!([]), "parse_document");
    check("Read https://ethereum.org/en/roadmap and summarise it", json!([]), "extractWebPage");
}

#[test]
fn what_is_turned_down_does_not_come_first() {
    let (_site, daemon) = serve_shipped();
    let check = |message: &str, wanted: &str, unwanted: &str| {
        let answer = qualify(&daemon, &json!({"message": message}));
        let hints = names(&answer["toolHints"]);
        assert!(hints.contains(&wanted), "{message}: {hints:?}");
        let before = |tool: &str| hints.iter().position(|name| *name == tool).unwrap_or(hints.len());
        assert!(before(wanted) < before(unwanted), "{message}: {hints:?}");
    };
    let [flows, rates] = ["getCoinglassEtfFlows", "getCoinglassFundingRates"];
    check(&format!("use {rates} instead of {flows}"), rates, flows);
    check(&format!("I don't want {flows} but {rates}"), rates, flows);
    check("I do not want websearch, use deepResearch", "deepResearch", "websearch");
    check(&format!("Don't use {flows}, read the file notes.txt"), "file_read", flows);
    check("Don't use Reddit, search X posts", "searchXPosts", "searchReddit");
}

#[test]
fn a_vague_message_brings_nothing_for_good() {
    let (_site, daemon) = serve_shipped();
    let first = qualify(&daemon, &json!({"message": "What's hot on Polymarket?", "sessionId": "s"}));
    let second = qualify(&daemon, &json!({"message": "show me more", "sessionId": "s"}));
    assert_eq!(second["intentContext"]["categories"], first["intentContext"]["categories"]);
    assert_eq!(second["activeIntent"], first["activeIntent"]);
    let own = |tool: &&str| tool.contains("PolyMarket");
    let leading = names(&second["availableTools"]).into_iter().take(5).filter(own).count();
    assert_eq!(leading, 5, "the context's tools come first: {second:#}");
    assert!(second["toolCount"].as_u64().unwrap() <= 30, "{second:#}");
    // What a weak message brings is offered, and gone with the next.
    let file = qualify(&daemon, &json!({"message": "read the file notes.txt", "sessionId": "s"}));
    assert!(place(&file, "file_read").is_some_and(|place| place < 5), "{file:#}");
    assert!(place(&qualify(&daemon, &json!({"message": "go ahead", "sessionId": "s"})), "file_read").is_some());
}

#[test]
fn a_tool_that_was_missed_is_offered_when_it_is_asked_for_again() {
    let (_site, daemon) = serve_shipped();
    let cases = [
        ("What's hot on Polymarket?", "swellStakeEth"),
        ("swap 2 SOL for USDC", "getDefillamaYieldPools"),
        ("what's the floor price of Pudgy Penguins on OpenSea?", "baseSwapTokens"),
        ("find news about the election", "file_write"),
        ("thanks a lot", "openseaGetListings"),
    ];
    for (number, (message, tool)) in cases.into_iter().enumerate() {
        let session = format!("session {number}");
        let miss = |session: &str| {
            ask(&daemon, "/v1/qualify/miss", &json!({"toolName": tool, "sessionId": session, "message": message}))
        };
        let before = qualify(&daemon, &json!({"message": message, "sessionId": session}));
        assert_eq!(place(&before, tool), None, "{message} offers {tool} already");
        let missed = miss(&session);
        let again = qualify(&daemon, &json!({"message": message, "sessionId": session}));
        assert_eq!(place(&again, tool), Some(0), "{message}: {again:#}");
        assert_eq!(again["noToolNeeded"], false);
        let sent = json!({"message": message, "intentContext": missed["intentContext"]});
        let echoed = qualify(&daemon, &sent);
        assert!(place(&echoed, tool).is_some(), "{message}: {echoed:#}");
        let third = miss(&session);
        assert_eq!(third["events"][1]["retryCount"], 2, "it is the same turn still");
    }
}

#[test]
fn what_three_sessions_missed_is_offered_to_a_fourth() {
    let (_site, daemon) = serve_shipped();
    let (message, tool) = ("What's hot on Polymarket?", "swellStakeEth");
    for session in ["a", "b", "c"] {
        qualify(&daemon, &json!({"message": message, "sessionId": session}));
        ask(&daemon, "/v1/qualify/miss", &json!({"toolName": tool, "sessionId": session}));
    }
    let answer = qualify(&daemon, &json!({"message": message}));
    assert!(place(&answer, tool).is_some(), "{answer:#}");
    let other = qualify(&daemon, &json!({"message": "what's the floor price of Pudgy Penguins on OpenSea?"}));
    assert_eq!(place(&other, tool), None, "{other:#}");
}

#[test]
fn an_intent_is_true_to_its_message() {
    let (_site, daemon) = serve_shipped();
    let intent = |answer: &Value| answer["activeIntent"].as_str().unwrap_or_default().to_lowercase();
    let price = qualify(&daemon, &json!({"message": "What's the price of SOL?", "sessionId": "s"}));
    assert!(intent(&price).contains("price") && !intent(&price).contains("buy"), "{price:#}");
    assert_eq!(qualify(&daemon, &json!({"message": "hello"})).get("activeIntent"), None);
    let next = qualify(&daemon, &json!({"message": "who holds it?", "sessionId": "s"}));
    assert!(intent(&next).contains("hold"), "{next:#}");
    assert_eq!(next["networks"], json!(["solana"]), "what is pointed at is on the network still");
    // What keeps a context without leaning on it may be after anything, and its guess is kept by nobody.
    let first = qualify(&daemon, &json!({"message": "write the report into summary.md", "sessionId": "report"}));
    let other = qualify(&daemon, &json!({"message": "send an email to bob", "sessionId": "report"}));
    assert_eq!(other["stickyFallbackApplied"], true, "{other:#}");
    assert_eq!(other.get("activeIntent"), None, "{other:#}");
    assert_eq!(other["intentContext"]["activeIntent"], first["activeIntent"], "{other:#}");
    // A use case that fits speaks for its tool, whatever another is not for.
    let held = qualify(&daemon, &json!({"message": "what tokens do I hold on solana"}));
    assert_eq!(held["toolHints"][0], "solanaGetWalletHoldings", "{held:#}");
}

#[test]
fn plurals_of_abbreviations_are_understood() {
    let (_site, daemon) = serve_shipped();
    for message in ["compare the APYs of aave and compound", "what are the APYs?", "show APYs"] {
        assert_eq!(
            place(&qualify(&daemon, &json!({"message": message})), "getDefillamaYieldPools"),
            Some(0),
            "{message}"
        );
    }
}

#[test]
fn what_is_required_is_there_at_any_limit() {
    let (_site, daemon) = serve_shipped();
    let message = "What's hot on Polymarket?";
    let all = qualify(&daemon, &json!({"message": message}));
    assert_eq!(all.get("cutTools"), None);
    for limits in [json!({"maxTools": 1}), json!({"maxTools": 12}), json!({"minConfidence": 1.0})] {
        let mut body = json!({"message": message});
        body.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
        let answer = qualify(&daemon, &body);
        for tool in ["wallet", "websearch", "createMemory", "currentUnixTimestamp"] {
            assert!(place(&answer, tool).is_some(), "{limits}: {answer:#}");
        }
        if let Some(most) = limits["maxTools"].as_u64() {
            assert!(answer["toolCount"].as_u64().unwrap() <= most.max(11 + most.min(5)), "{limits}");
            assert_eq!(answer["availableTools"][0], all["availableTools"][0], "{limits}");
            let cut = names(&answer["cutTools"]);
            assert!(!cut.is_empty() && cut.iter().all(|tool| place(&answer, tool).is_none()), "{limits}: {cut:?}");
            assert!(answer["reasoning"].as_str().unwrap().contains(cut[0]), "{answer:#}");
        }
    }
}

/// The figures of `eval dialogues` over a file of the fixtures.
fn evaluated(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(file);
    let output =
        almanacd().args(["eval", "dialogues", "--json"]).arg(path).arg("--tool-metadata").arg(shipped()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn dialogues_are_offered_what_they_need() {
    let all = DIALOGUES.map(evaluated);
    for way in ["session", "echoed"] {
        let sum = |figure: &str| all.iter().map(|figures| figures[way][figure].as_u64().unwrap()).sum::<u64>();
        let tools = |figures: &Value| {
            figures[way]["mean_tools"].as_f64().unwrap() * figures[way]["dialogues"].as_f64().unwrap()
        };
        assert_eq!(sum("dialogues"), 30);
        assert!(sum("offered") >= 28, "{way}: {all:#?}");
        assert!(sum("first_five") >= 24, "{way}: {all:#?}");
        assert_eq!(sum("no_tool_needed"), 0, "{way}: {all:#?}");
        assert!(all.iter().map(tools).sum::<f64>() / 30.0 <= 30.0, "{way}: {all:#?}");
    }
}

#[test]
fn ten_languages_find_their_tools() {
    let figures = evaluated("languages.jsonl");
    let session = &figures["session"];
    assert_eq!(session["dialogues"], 20);
    assert!(session["first_three"].as_u64().unwrap() >= 16, "{figures:#}");
    assert_eq!(session["no_tool_needed"], 0, "{figures:#}");
}

#[test]
fn who_asks_for_more_gets_more_of_the_same() {
    let (_site, daemon) = serve_shipped();
    for (first, tool) in [
        ("Which protocols have the highest TVL?", "getDefillamaChainsTvl"),
        ("Get me recent fundraising rounds from Messari", "getMessariFundraising"),
        ("Show me NFT collections on OpenSea with the biggest volume", "openseaGetTrendingCollections"),
    ] {
        for second in ["any others?", "show me more", "more", "what else is there?", "next page please"] {
            let asked = qualify(&daemon, &json!({"message": first}));
            let before = place(&asked, tool);
            let answer = qualify(&daemon, &json!({"message": second, "intentContext": asked["intentContext"]}));
            let own = names(&asked["intentContext"]["categories"]);
            let best = answer["availableTools"][0].as_str().unwrap();
            assert!(answer["stickyFallbackApplied"].as_bool().unwrap(), "{second}: {own:?} {best}");
            assert!(
                before.is_none() || place(&answer, tool).is_some_and(|place| place <= before.unwrap_or_default() + 5),
                "{first} {second}: {before:?} {answer:#}"
            );
        }
    }
}

#[test]
fn a_session_goes_on_after_a_restart() {
    let site = crate::daemon::Site::new();
    let mut daemon = serve_shipped_on(&site);
    qualify(&daemon, &json!({"message": "swap 0.5 ETH for USDC on Base", "sessionId": "s"}));
    ask(&daemon, "/v1/qualify/miss", &json!({"toolName": "swellStakeEth", "sessionId": "s"}));
    daemon.signal("TERM");
    daemon.wait();
    drop(daemon);
    let daemon = serve_shipped_on(&site);
    let answer = qualify(&daemon, &json!({"message": "yes, do it", "sessionId": "s"}));
    assert_eq!(place(&answer, "swellStakeEth"), Some(0), "{answer:#}");
    assert!(place(&answer, "baseSwapTokens").is_some_and(|place| place < 5), "{answer:#}");
}
