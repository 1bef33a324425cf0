//! What each view lists, how much of it, and who is told when it changes.

use serde_json::json;

use super::client::{LEGACY, Session, Stream};
use super::served::{Served, configure, names};
use crate::daemon::{Site, wait_for, wait_until};
use crate::mcp_fixture::server;

/// What the default list may weigh, in bytes: 1,500 tokens of four.
const BUDGET: usize = 6000;

#[test]
fn a_view_lists_what_it_selects() {
    let servers = format!("    a: {}}}\n    b_c: {}, category: files}}\n", server("legacy"), server("legacy more"));
    let views = "  anonymous_calls: true\n  views:\n    \
        work: {servers: [b_c], tools: ['*_read', '*_write', a_*], own: [recall]}\n    \
        meta: {meta: true, pinned: [a_echo]}\n    \
        files: {categories: [files], tools: ['*_echo']}\n";
    let served = Served::new(&servers, views);
    let check = |path: &str, expected: &[&str]| {
        assert_eq!(names(&served.ask(path, "tools/list", json!({}))), expected, "{path}");
    };
    check("/mcp/work", &["recall", "b-c_read", "b-c_write"]);
    check("/mcp/meta", &["find_tools", "call_tool", "call_tool_read_only", "get_result", "a_echo"]);
    check("/mcp/files", &["b-c_echo"]);
    check("/mcp/server/a", &["ask", "die", "echo", "noise", "progress", "sleep"]);
    let all = names(&served.ask("/mcp/all", "tools/list", json!({})));
    assert!(all.contains(&"remember".to_owned()) && all.contains(&"b-c_long".to_owned()), "{all:?}");
    assert!(!all.contains(&"call_tool".to_owned()));
    // What a view has not is not called by it, and is not found by it.
    let foreign = served.ask("/mcp/work", "tools/call", json!({"name": "a_echo"}));
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    let own = served.ask("/mcp/server/a", "tools/call", json!({"name": "echo", "arguments": {"text": "x"}}));
    assert_eq!(own["result"]["content"][0]["text"], "x", "{own}");
    wait_until("the record", || served.recorded("a_echo") == 1);
    let instructions = served.ask("/mcp", "server/discover", json!({}))["result"]["instructions"].clone();
    let said = instructions.as_str().unwrap();
    assert!(said.contains("a, b_c") && said.chars().count() <= 600, "{said}");
    assert_eq!(served.ask("/mcp/server/a", "server/discover", json!({}))["result"]["instructions"], "legacy fixture");
}

#[test]
fn the_default_list_stays_small_and_others_come_in_pages() {
    let served = Served::one("legacy tools=1200");
    let listed = served.ask("/mcp", "tools/list", json!({}));
    assert_eq!(names(&listed), ["find_tools", "call_tool", "call_tool_read_only", "get_result"]);
    assert!(listed["result"]["tools"].to_string().len() <= BUDGET, "{}", listed["result"]["tools"].to_string().len());
    let (mut all, mut cursor, mut pages) = (Vec::new(), json!(null), 0);
    loop {
        let page = served.ask("/mcp/server/a", "tools/list", json!({"cursor": cursor}));
        all.extend(names(&page));
        pages += 1;
        cursor = page["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((all.len(), pages), (1206, 3));
    assert!(all.is_sorted());
    let wrong = served.ask("/mcp/server/a", "tools/list", json!({"cursor": "nonsense"}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
}

#[test]
fn only_who_sees_another_list_is_told() {
    let pair =
        |says: &str| format!("    a: {}}}\n    b: {}}}\n", server("legacy"), server(&format!("legacy says={says}")));
    let views = "  anonymous_calls: true\n  views:\n    work: {servers: [a]}\n";
    let served = Served::new(&pair("old"), views);
    let session = Session::begin(&served.daemon, &[], LEGACY);
    let mut told = session.listen(&served.daemon);
    let before = served.ask("/mcp/work", "tools/list", json!({}));
    configure(&served.site, &pair("new"), views);
    assert_eq!(served.daemon.admin("POST", "/-/reload", b"").status, 200);
    assert_eq!(told.next().unwrap()["method"], "notifications/tools/list_changed");
    let all = served.ask("/mcp/all", "tools/list", json!({})).to_string();
    assert!(all.contains(r#""description":"new""#), "{all}");
    assert_eq!(served.ask("/mcp/work", "tools/list", json!({})), before);
    // A view that is added is there, one that is removed is not.
    configure(&served.site, &pair("new"), "  anonymous_calls: true\n  views:\n    other: {servers: [b]}\n");
    assert_eq!(served.daemon.admin("POST", "/-/reload", b"").status, 200);
    wait_until("the view", || served.ask("/mcp/other", "tools/list", json!({}))["result"].is_object());
    assert!(served.ask("/mcp/work", "tools/list", json!({}))["error"].is_object());
}

#[test]
fn lists_are_there_before_a_server_answers() {
    let site = Site::new();
    let fast = format!("    a: {}}}\n", server("legacy"));
    let slow = format!("    a: {}}}\n", server("legacy start=3000"));
    let mut served = Served::start(site, &fast, "  anonymous_calls: true\n");
    served.await_server("a");
    let before = served.ask("/mcp/all", "tools/list", json!({}));
    served.daemon.signal("TERM");
    assert!(served.daemon.wait().success());
    let served = Served::start(served.site, &slow, "  anonymous_calls: true\n");
    assert_eq!(served.ask("/mcp/all", "tools/list", json!({})), before);
    assert_eq!(served.daemon.json("/v1/tools/a_echo")["backend"], "mcp:a");
    // A call waits for the server.
    assert_eq!(served.call("a_echo", json!({"text": "there"}))["content"][0]["text"], "there");
}

#[test]
fn a_servers_own_address_has_all_that_it_offers() {
    let served = Served::one("legacy");
    let at = |method: &str, params: serde_json::Value| served.ask("/mcp/server/a", method, params);
    let can = at("server/discover", json!({}))["result"]["capabilities"].clone();
    assert!(can["prompts"].is_object() && can["resources"].is_object() && can["completions"].is_null(), "{can}");
    assert_eq!(at("prompts/list", json!({}))["result"]["prompts"], json!([{"name": "greet"}]));
    let resources = at("resources/list", json!({}))["result"].clone();
    assert_eq!(resources["resources"], json!([{"uri": "test://a", "name": "a"}]));
    assert_eq!((&resources["resultType"], &resources["ttlMs"]), (&json!("complete"), &json!(300_000)));
    let templates = at("resources/templates/list", json!({}))["result"]["resourceTemplates"].clone();
    assert_eq!(templates, json!([{"uriTemplate": "test://{x}", "name": "x"}]));
    let prompt = at("prompts/get", json!({"name": "greet", "arguments": {"who": "you"}}))["result"].clone();
    assert_eq!(prompt["messages"][0]["content"]["text"], "hello you", "{prompt}");
    let read = super::served::ask_about(&served.daemon, "/mcp/server/a", "resources/read", "test://a");
    assert_eq!(read["result"]["contents"][0]["text"], "content of test://a", "{read}");
    assert_eq!((&read["result"]["ttlMs"], &read["result"]["cacheScope"]), (&json!(0), &json!("private")));
    let missing = super::served::ask_about(&served.daemon, "/mcp/server/a", "resources/read", "test://none");
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
    for method in ["completion/complete", "nonsense"] {
        assert_eq!(at(method, json!({}))["error"]["code"], -32601, "{method}");
    }
    assert_eq!(served.ask("/mcp", "prompts/list", json!({}))["error"]["code"], -32601);
    // Older clients have a way to follow resources, which this server has not.
    let hello = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string();
    let greeted = super::client::post(&served.daemon, "/mcp/server/a", &[], &hello);
    let session = greeted.header("mcp-session-id").unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "test://a"}});
    let headers = [("mcp-session-id", session)];
    let refused = super::client::post(&served.daemon, "/mcp/server/a", &headers, &body.to_string()).json();
    let message = "the server `a` does not tell of changed resources";
    assert_eq!((&refused["error"]["code"], &refused["error"]["message"]), (&json!(-32601), &json!(message)));
}

#[test]
fn two_tools_of_one_name_are_told_apart() {
    let servers = format!("    a: {}, prefix: x}}\n    b: {}, prefix: x}}\n", server("legacy"), server("legacy"));
    let served = Served::new(&servers, "  anonymous_calls: true\n");
    // Whichever is listed first has the name.
    let (first, second) = wait_for("the finding", || {
        let found = served.daemon.json("/v1/catalog");
        let mut found = found["diagnostics"].as_array().unwrap().iter().map(ToString::to_string);
        let found = found.find(|text| text.contains("another tool is called `x_echo` already"))?;
        Some(if found.contains("mcp:b") { ("a", "b") } else { ("b", "a") })
    });
    // As its server's alone it is called all the same.
    let path = format!("/mcp/server/{second}");
    let hidden = served.ask(&path, "tools/call", json!({"name": "echo", "arguments": {"text": "2"}}));
    assert_eq!(hidden["result"]["_meta"]["dev.almanac/metadata"]["call"]["server"], second, "{hidden}");
    let called = served.call("x_echo", json!({"text": "1"}));
    assert_eq!(called["_meta"]["dev.almanac/metadata"]["call"]["server"], first);
}

#[test]
fn of_two_tools_of_one_name_the_same_is_called_after_a_restart() {
    let (a, b) = ("    a: ", "    b: ");
    let of = |line: &str, words: &str| format!("{line}{}, prefix: x}}\n", server(words));
    let more = "  anonymous_calls: true\n";
    let mut served = Served::new(&of(b, "legacy"), more);
    let both = of(a, "legacy") + &of(b, "legacy");
    configure(&served.site, &both, more);
    assert_eq!(served.daemon.admin("POST", "/-/reload", b"").status, 200);
    served.await_server("a");
    let answers = |served: &Served| {
        let called = served.call("x_echo", json!({"text": "1"}));
        called["_meta"]["dev.almanac/metadata"]["call"]["server"].clone()
    };
    // `b` had the name first, whatever the order of the two.
    assert_eq!(answers(&served), "b");
    served = served.restart(&both, more);
    served.await_server("a");
    served.await_server("b");
    assert_eq!(answers(&served), "b");
    // Even if what it listed is lost, and the other one is there before it.
    let lost = served.site.path("state/mcp/b.json");
    assert!(lost.is_file());
    let slow = of(a, "legacy") + &of(b, "legacy start=1000");
    served = served.restart_after(&slow, more, || std::fs::remove_file(&lost).unwrap());
    served.await_server("a");
    let early = served.ask("/mcp/all", "tools/list", json!({}));
    served.await_server("b");
    assert_eq!(answers(&served), "b", "{early}");
}

#[test]
fn a_view_has_what_its_servers_offer_beside_tools() {
    let servers = format!("    a: {}}}\n    b: {}}}\n", server("legacy says=one"), server("legacy"));
    let views = "  anonymous_calls: true\n  views:\n    work: {servers: [b]}\n";
    let served = Served::new(&servers, views);
    let at = |path: &str, method: &str, params: serde_json::Value| served.ask(path, method, params);
    for path in ["/mcp/all", "/mcp/work"] {
        let can = at(path, "server/discover", json!({}))["result"]["capabilities"].clone();
        assert!(can["prompts"].is_object() && can["resources"].is_object() && can["completions"].is_object(), "{can}");
    }
    let prompts = |path: &str| at(path, "prompts/list", json!({}))["result"]["prompts"].clone();
    assert_eq!(prompts("/mcp/all"), json!([{"name": "a_greet"}, {"name": "b_greet"}]));
    assert_eq!(prompts("/mcp/work"), json!([{"name": "b_greet"}]));
    let get = |path: &str, name: &str| at(path, "prompts/get", json!({"name": name, "arguments": {"who": "you"}}));
    assert_eq!(get("/mcp/all", "a_greet")["result"]["messages"][0]["content"]["text"], "hello you");
    assert_eq!(get("/mcp/work", "a_greet")["error"]["code"], -32602);
    // The first server has the resource, whoever else lists it.
    let listed = at("/mcp/all", "resources/list", json!({}))["result"]["resources"].clone();
    assert_eq!(listed, json!([{"uri": "test://a", "name": "a"}]));
    let templates = at("/mcp/all", "resources/templates/list", json!({}))["result"]["resourceTemplates"].clone();
    assert_eq!(templates.as_array().unwrap().len(), 1, "{templates}");
    let read = |uri: &str| super::served::ask_about(&served.daemon, "/mcp/all", "resources/read", uri);
    assert_eq!(read("test://a")["result"]["contents"][0]["text"], "content of test://a");
    assert_eq!(read("test://other")["result"]["contents"][0]["text"], "content of test://other", "by its template");
    assert_eq!(read("test://none")["error"]["code"], -32602, "the server does not have it");
    let nowhere = read("other://x");
    assert_eq!((&nowhere["error"]["code"], &nowhere["error"]["data"]["uri"]), (&json!(-32602), &json!("other://x")));
    // The first address has tools alone, and says so.
    let can = at("/mcp", "server/discover", json!({}))["result"]["capabilities"].clone();
    assert_eq!(can, json!({"tools": {"listChanged": true}, "extensions": {"io.modelcontextprotocol/tasks": {}}}));
}

#[test]
fn changed_prompts_and_resources_are_told_to_who_sees_them() {
    let servers = format!("    a: {}}}\n    b: {}}}\n", server("legacy grows"), server("legacy"));
    let views = "  anonymous_calls: true\n  views:\n    other: {servers: [b]}\n";
    let served = Served::new(&servers, views);
    for path in ["/mcp/server/a", "/mcp/all"] {
        let can = served.ask(path, "server/discover", json!({}))["result"]["capabilities"].clone();
        for list in ["prompts", "resources"] {
            assert_eq!(can[list]["listChanged"], true, "{can}");
        }
    }
    let begin = |path: &str| {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let reply = super::client::post(&served.daemon, path, &[], &body.to_string());
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        let mut connection = served.daemon.connect();
        connection.request("GET", path, &[("accept", "text/event-stream"), ("mcp-session-id", &session)], b"");
        Stream::of(connection)
    };
    let listen = |path: &str| {
        let wanted = json!({"promptsListChanged": true, "resourcesListChanged": true});
        let params = json!({"_meta": super::client::meta(), "notifications": wanted});
        let body = json!({"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params});
        let headers = [
            ("content-type", "application/json"),
            super::client::BOTH,
            ("mcp-protocol-version", super::client::MODERN),
            ("mcp-method", "subscriptions/listen"),
        ];
        let mut connection = served.daemon.connect();
        connection.request("POST", path, &headers, body.to_string().as_bytes());
        let mut stream = Stream::of(connection);
        (stream.next().unwrap()["params"]["notifications"].clone(), stream)
    };
    let (mut old, mut elsewhere) = (begin("/mcp/server/a"), begin("/mcp/other"));
    let (agreed, mut modern) = listen("/mcp/all");
    assert_eq!(agreed, json!({"promptsListChanged": true, "resourcesListChanged": true}));
    assert_eq!(listen("/mcp").0, json!({}), "that address has tools alone");
    for what in ["prompts", "resources"] {
        served.call("a_grow", json!({"what": what}));
        let method = format!("notifications/{what}/list_changed");
        assert_eq!(old.next().unwrap()["method"], *method);
        let told = modern.next().unwrap();
        assert_eq!(told["method"], *method);
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5, "{told}");
        let listed = served.ask("/mcp/all", &format!("{what}/list"), json!({}))["result"][what].clone();
        let new = if what == "prompts" { "a_part" } else { "new" };
        assert!(listed.as_array().unwrap().iter().any(|item| item["name"] == new), "{listed}");
    }
    // What its own server changes is the first that the other hears of.
    configure(&served.site, &servers.replace("legacy'", "legacy says=new'"), views);
    assert_eq!(served.daemon.admin("POST", "/-/reload", b"").status, 200);
    assert_eq!(elsewhere.next().unwrap()["method"], "notifications/tools/list_changed");
}
