//! The command line.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::{Site, almanacd, document, shipped};

/// Exit code, standard output and standard error.
fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_directory_that_is_not_there_is_no_empty_catalog() {
    for command in [&["tools"][..], &["qualify", "search"], &["suggest", "web_search"]] {
        let output = almanacd().args(command).args(["--tool-metadata", "/nowhere"]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("note: /nowhere: cannot be listed"), "{command:?}: {error}");
    }
}

#[test]
fn check_shows_the_line_and_the_way_out() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("a.yaml");
    fs::write(&file, document("a", "t").replace("category", "categry")).unwrap();
    let (code, out, _) = run(almanacd().arg("check").arg("a.yaml").current_dir(&directory));
    assert_eq!(code, 1);
    for part in [
        "error[unknown-key]",
        "unknown key `categry`",
        "a.yaml:4:1",
        "4 | categry: test",
        "^^^^^^^",
        "did you mean `category`?",
    ] {
        assert!(out.contains(part), "{part:?} is not in\n{out}");
    }
    assert!(out.ends_with("1 document, 0 tools, 2 errors, 0 warnings\n"), "{out}");
    let (code, out, _) = run(almanacd().args(["check", "--json"]).arg(&file));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["errors"]), (1, &Value::from(2)));
    assert!(report["diagnostics"][0]["source"].is_string(), "{report}");
}

#[test]
fn check_finds_authorities_that_are_none() {
    let directory = TempDir::new().unwrap();
    let config = directory.path().join("almanac.yaml");
    let check = |authorities: &str, part: &str| {
        let llm = format!("url: 'https://127.0.0.1:1/v1', model: m, ca_file: '{authorities}'");
        fs::write(&config, format!("qualifier: {{llm: {{{llm}}}}}\n")).unwrap();
        let (code, out, _) = run(almanacd().args(["check", "--config"]).arg(&config).current_dir(&directory));
        assert!(code == 1 && out.contains("error[no-trust]") && out.contains(part), "{out}");
    };
    check("/nowhere/ca.pem", "cannot read the certificates in /nowhere/ca.pem");
    check(&config.display().to_string(), "has no certificate of an authority");
}

#[test]
fn check_reads_the_environment() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("almanac.yaml"), "").unwrap();
    let mut command = almanacd();
    command.args(["check", "--config", "almanac.yaml"]).env("ALMANAC_DATABASE_URL", "mysql://x");
    let (code, out, _) = run(command.current_dir(&directory));
    assert!(code == 1 && out.contains("does not begin with `postgres://`"), "{out}");
    assert!(out.contains("ALMANAC_DATABASE_URL"), "{out}");
    let mut command = almanacd();
    command.args(["check", "--config", "almanac.yaml"]).env("ALMANAC_LISTEN", "0.0.0.0:7399");
    let (_, out, _) = run(command.current_dir(&directory));
    assert!(out.contains("0.0.0.0:7399 is no loopback address"), "{out}");
    let mut command = almanacd();
    command.args(["check", "--config", "almanac.yaml"]).env("ALMANAC_LISTEN", "nowhere");
    let (code, _, error) = run(command.current_dir(&directory));
    assert!(code == 64 && error.contains("nowhere"), "{error}");
}

#[test]
fn check_finds_files_where_others_should_be() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("plain"), "").unwrap();
    for (configuration, part) in [
        ("state_dir: plain\n", "plain is no directory"),
        ("admin_socket: plain\n", "something that is no socket stands there"),
        ("mcp: {socket: plain}\n", "something that is no socket stands there"),
    ] {
        fs::write(directory.path().join("almanac.yaml"), configuration).unwrap();
        let mut command = almanacd();
        command.args(["check", "--config", "almanac.yaml"]);
        let (code, out, _) = run(command.current_dir(&directory));
        assert!(code == 1 && out.contains(part), "{configuration}: {out}");
    }
}

#[test]
fn check_of_what_ships_finds_nothing() {
    let (code, out, _) = run(almanacd().arg("check").arg(shipped()));
    assert_eq!((code, out.as_str()), (0, "210 documents, 210 tools, 0 errors, 0 warnings\n"));
    // Without a path, the configuration and what it names.
    let (code, out, _) = run(almanacd().arg("check").current_dir(env!("CARGO_MANIFEST_DIR")));
    assert_eq!((code, out.as_str()), (0, "210 documents, 210 tools, 0 errors, 0 warnings\n"));
}

#[test]
fn check_explains_foreign_yaml() {
    let foreign: [(&str, &str); 9] = [
        ("compose.yaml", "services:\n  web:\n    image: nginx\n    ports: [\"80:80\"]\n"),
        ("k8s.yaml", "apiVersion: v1\nkind: List\nitems:\n- metadata: {name: a}\n---\napiVersion: v1\n"),
        ("actions.yml", "on: {push: {branches: [main]}}\njobs:\n  b:\n    steps:\n    - run: |\n        echo hi\n"),
        ("openapi.yaml", "openapi: 3.1.0\npaths:\n  /x: {get: {responses: {200: {description: ok}}}}\n"),
        ("list.yaml", "- a\n- b\n"),
        ("scalar.yaml", "just text\n"),
        ("tags.yaml", "a: !!binary aGk=\nb: !custom {c: 1}\n"),
        ("merge.yaml", "base: &b {x: 1}\nuse:\n  <<: *b\n"),
        ("dates.yaml", "? [complex, key]\n: 2024-01-01\n"),
    ];
    let directory = TempDir::new().unwrap();
    for (name, text) in foreign {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let (code, out, error) = run(almanacd().args(["check", "--json"]).arg(directory.path()));
    assert_eq!((code, error.as_str()), (1, ""));
    let report: Value = serde_json::from_str(&out).unwrap();
    let findings = report["diagnostics"].as_array().unwrap();
    for (name, _) in foreign {
        let explained = findings
            .iter()
            .any(|finding| finding["file"].as_str().unwrap().ends_with(name) && finding["line"].as_u64() > Some(0));
        assert!(explained, "{name} is not explained with a line in {out}");
    }
}

#[test]
fn check_of_nothing_says_so() {
    let directory = TempDir::new().unwrap();
    let (code, out, _) = run(almanacd().arg("check").arg(directory.path()));
    assert_eq!(code, 0);
    assert!(out.contains("no document (.yaml, .yml or .json) was found"), "{out}");
    let (code, out, _) = run(almanacd().arg("check").arg(directory.path().join("none")));
    assert_eq!(code, 1);
    assert!(out.contains("cannot be listed"), "{out}");
    fs::create_dir(directory.path().join("config")).unwrap();
    fs::write(directory.path().join("config/almanac.yaml"), "http: {max_body_byte: 1}\n").unwrap();
    let (code, out, _) = run(almanacd().arg("check").current_dir(&directory));
    assert_eq!(code, 1);
    assert!(out.contains("did you mean `max_body_bytes`?"), "{out}");
}

#[test]
fn check_warns_of_views_of_what_is_not_there() {
    let directory = TempDir::new().unwrap();
    for name in ["tool_metadata", "config"] {
        fs::create_dir_all(directory.path().join(name)).unwrap();
    }
    let configuration = "mcp:\n  servers: {files: {socket: /s}}\n  views:\n    \
                         work: {servers: [file, files], pinned: [files_read, fils_read]}\n";
    fs::write(directory.path().join("config/almanac.yaml"), configuration).unwrap();
    let (code, out, error) = run(almanacd().arg("check").current_dir(&directory));
    assert_eq!(code, 0, "{out}{error}");
    assert!(out.contains("names the server `file`") && out.contains("pins `fils_read`"), "{out}");
    assert!(!out.contains("files_read"), "{out}");
}

#[test]
fn check_finds_what_keeps_a_daemon_from_starting() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir_all(path("tool_metadata")).unwrap();
    fs::create_dir_all(path("config")).unwrap();
    fs::write(path("tool_metadata/a.yaml"), document("a", "t")).unwrap();
    let check = |configuration: &str, part: &str| {
        fs::write(path("config/almanac.yaml"), configuration).unwrap();
        let (code, out, error) = run(almanacd().arg("check").current_dir(&directory));
        assert!(out.contains(part) || error.contains(part), "{configuration}: {out}{error}");
        // The service may have tokens that are not known here.
        let is_warning = configuration.starts_with("listen");
        assert_eq!(code, i32::from(!is_warning), "{configuration}");
        let mut serve = almanacd();
        serve.arg("serve").current_dir(&directory);
        serve.args(["--listen", "127.0.0.1:0"].iter().filter(|_| !is_warning));
        let (code, _, error) = run(&mut serve);
        assert!(code == 78 && error.contains(part), "{configuration}: {code} {error}");
    };
    check("listen: 0.0.0.0:7399\n", "0.0.0.0:7399 is no loopback address, so tokens are needed");
    check(&format!("mcp: {{socket: /tmp/{}}}\n", "x".repeat(120)), "the path of a socket has");
    check("admin_socket: /tmp/x.sock\nmcp: {socket: /tmp/x.sock}\n", "and as that of MCP clients");
    fs::write(path("config/timing-defaults.yaml"), "foo: 1\n").unwrap();
    check("", "unknown key `foo`");
    fs::remove_file(path("config/timing-defaults.yaml")).unwrap();
    // A link to nowhere was meant to be a configuration.
    fs::remove_file(path("config/almanac.yaml")).unwrap();
    std::os::unix::fs::symlink("../elsewhere.yaml", path("config/almanac.yaml")).unwrap();
    for command in [&["check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let (code, out, error) = run(almanacd().args(command).current_dir(&directory));
        assert!(code != 0 && error.contains("config/almanac.yaml"), "{command:?}: {code} {out}{error}");
    }
}

#[test]
fn check_of_a_users_own_files() {
    let home = TempDir::new().unwrap();
    let own = home.path().join(".config/almanac");
    let check = || {
        let mut command = almanacd();
        command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        run(command.args(["check", "--user", "--json"]).env("HOME", home.path()).current_dir(&home))
    };
    // Before the first start, which makes the directory.
    let (code, out, _) = check();
    assert_eq!(code, 0, "{out}");
    fs::create_dir_all(own.join("tool_metadata")).unwrap();
    fs::write(own.join("tool_metadata/a.yaml"), document("a", "t")).unwrap();
    let (code, out, _) = check();
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 0, "{report}");
    assert!(report["tools"].as_u64().unwrap() >= 1, "{report}");
    fs::write(own.join("almanac.yaml"), "http: {max_body_byte: 1}\n").unwrap();
    let (code, out, _) = check();
    assert_eq!(code, 1);
    assert!(out.contains("did you mean `max_body_bytes`?"), "{out}");
}

#[test]
fn a_text_that_is_not_closed_is_told_at_its_beginning() {
    let site = Site::new();
    site.configure("log: {}\nlisten: \"127.0.0.1:0\nworkers: 1\n");
    let (code, said) = site.fail(&[]);
    assert!(code == 78 && said.contains("almanac.yaml:2:9: found unexpected end of stream"), "{said}");
    let (code, out, _) = run(almanacd().args(["check", "--config"]).arg(site.path("almanac.yaml")));
    assert!(code == 1 && out.contains("almanac.yaml:2:9\n") && out.contains("2 | listen"), "{out}");
}

#[test]
fn check_names_what_has_no_effect() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    let libraries = "plugins: {paths: [plugins], settings: {org.example.rules: {a: 1}}}";
    site.configure(&format!("tool_metadata: [tools]\n{libraries}\nlog: {{level: 'info,almanac::htpp=debug'}}\n"));
    let (code, out, _) = run(almanacd().args(["check", "--config", "almanac.yaml"]).current_dir(site.path("")));
    assert!(code == 0 && out.ends_with("0 errors, 3 warnings\n"), "{out}");
    for part in ["has `org.example.rules`, the id of no library", "`almanac::htpp`; did you mean `almanac::http`?"] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn a_value_of_the_environment_is_told_by_its_variable() {
    let check = |arguments: &[&str], (name, value): (&str, &str), code: i32, part: &str| {
        let (ended, _, error) = run(almanacd().args(arguments).env(name, value));
        assert!(ended == code && error.contains(part), "{arguments:?} {name}={value}: {ended} {error}");
    };
    check(&["serve"], ("ALMANAC_STATE_DIR", ""), 64, "ALMANAC_STATE_DIR is empty: unset it, or give it a value");
    check(&["serve"], ("ALMANAC_LISTEN", ""), 64, "ALMANAC_LISTEN is empty");
    check(&["serve"], ("ALMANAC_LISTEN", "localhost"), 64, "the value is that of ALMANAC_LISTEN");
    check(&["--json", "ctl", "status"], ("ALMANAC_ADMIN_SOCKET", ""), 64, "ALMANAC_ADMIN_SOCKET is empty");
    check(&["mcp"], ("ALMANAC_MCP_SOCKET", ""), 64, "ALMANAC_MCP_SOCKET is empty");
    check(&["tools"], ("ALMANAC_URL", ""), 64, "unset ALMANAC_URL");
    check(&["migrate"], ("ALMANAC_DATABASE_URL", ""), 78, "unset ALMANAC_DATABASE_URL");
    let (_, _, error) = run(almanacd().args(["serve", "--listen", "x"]).env("ALMANAC_LISTEN", "y"));
    assert!(error.contains("invalid value 'x'") && !error.contains("ALMANAC_LISTEN"), "{error}");
}

#[test]
fn tools_are_listed_by_the_daemon_or_from_the_files() {
    let site = Site::new();
    let files = |arguments: &[&str]| {
        let mut command = almanacd();
        command.arg("tools").args(arguments).arg("--tool-metadata").arg(shipped()).current_dir(site.path(""));
        run(&mut command)
    };
    let (code, out, error) = files(&[]);
    assert_eq!((code, out.lines().count()), (0, 210), "{error}");
    let (_, out, _) = files(&["look something up on the web", "--limit", "3"]);
    assert!(out.contains("websearch"), "{out}");
    site.save("only.yaml", &document("only", "Only one"));
    let daemon = site.start();
    let (code, out, _) = run(almanacd().args(["tools", "--json", "--socket"]).arg(&daemon.admin));
    let page: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &page["items"][0]["name"], &page["total"]), (0, &Value::from("only"), &Value::from(1)));
    let url = format!("http://{}", daemon.address);
    let (code, out, _) = run(almanacd().args(["tools", "one", "--url", &url]));
    assert!(code == 0 && out.contains("Only one"), "{out}");
    let (code, _, error) = run(almanacd().args(["tools", "--url", "http://127.0.0.1:1"]));
    assert!(code == 1 && error.contains("is it running?"), "{error}");
    let (code, _, error) = run(almanacd().args(["tools", "--url", "ftp://x"]));
    assert!(code == 64 && error.contains("no address of a daemon"), "{error}");
}

#[test]
fn ctl_reloads_and_tells() {
    let site = Site::new();
    site.configure("catalog: {watch: false, poll_interval: 1h}\n").save("a.yaml", &document("a", "t"));
    let daemon = site.start();
    let ctl = |arguments: &[&str]| run(almanacd().arg("ctl").args(arguments).arg("--socket").arg(&daemon.admin));
    let (code, out, _) = ctl(&["status"]);
    assert!(code == 0 && out.contains("ready") && out.contains("generation 1, 1 tool"), "{out}");
    site.save("b.yaml", &document("b", "t"));
    let (code, out, _) = ctl(&["reload", "--wait"]);
    assert_eq!((code, out.as_str()), (0, "catalog changed: generation 2, 2 tools, 0 errors\n"));
    site.save("b.yaml", "name: ]");
    let (code, out, error) = ctl(&["reload", "--wait"]);
    assert_eq!((code, out.as_str()), (1, "catalog unchanged: generation 2, 2 tools, 1 error\n"));
    assert!(error.contains("b.yaml:1:"), "{error}");
    let (code, out, error) = ctl(&["reload"]);
    assert_eq!((code, out.as_str()), (0, "reload begun\n"));
    assert!(error.contains("--wait waits for it"), "{error}");
    let (_, out, _) = ctl(&["status", "--json"]);
    let status: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&status["stale"], &status["errors"]), (&Value::from(1), &Value::from(1)));
    let (code, _, error) = run(almanacd().args(["ctl", "status", "--socket", "/nowhere.sock"]));
    assert!(code == 1 && error.contains("is it running?"), "{error}");
}

#[test]
fn a_model_that_cannot_be_asked_is_trouble() {
    let site = Site::new();
    let model = "{url: 'https://model.example/v1', model: m, api_key_env: ALMANAC_TEST_KEY_THAT_IS_NOT_SET}";
    site.configure(&format!("qualifier: {{llm: {model}}}\n"));
    let daemon = site.start();
    let (code, out, _) = run(almanacd().args(["ctl", "status", "--socket"]).arg(&daemon.admin));
    assert!(code == 0 && out.contains("no model is asked: ") && out.contains("ALMANAC_TEST_KEY"), "{out}");
}

#[test]
fn what_needs_the_admin_socket_says_so() {
    let site = Site::new();
    let daemon = site.start();
    let url = format!("http://{}", daemon.address);
    for arguments in [["ctl", "status"].as_slice(), &["ctl", "reload"], &["ctl", "mcp", "list"]] {
        let (code, _, error) = run(almanacd().args(arguments).env("ALMANAC_URL", &url));
        assert!(code == 64 && error.contains("--socket, instead of --url or ALMANAC_URL"), "{arguments:?}: {error}");
        // A flag beats the environment.
        let (code, out, error) =
            run(almanacd().args(arguments).arg("--socket").arg(&daemon.admin).env("ALMANAC_URL", &url));
        assert_eq!(code, 0, "{arguments:?}: {out}{error}");
    }
    let deep = site.path(&format!("state/{}", "x".repeat(107)));
    let (code, _, error) = run(almanacd().args(["serve", "--listen", "127.0.0.1:0", "--state-dir"]).arg(deep));
    assert!(code != 0 && error.contains("the path of a socket has 107 bytes at most"), "{error}");
}

#[test]
fn documents_on_the_command_line_beat_a_daemon_of_the_environment() {
    let site = Site::new();
    let daemon = site.start();
    let url = format!("http://{}", daemon.address);
    let documents = TempDir::new().unwrap();
    std::fs::write(documents.path().join("lone.yaml"), document("lone", "Stands alone")).unwrap();
    let commands = [&["tools"][..], &["show", "lone"], &["qualify", "who stands alone?"]];
    for arguments in commands {
        let files = |command: &mut Command| run(command.arg("--tool-metadata").arg(documents.path()));
        let (code, out, error) = files(almanacd().args(arguments).env("ALMANAC_URL", &url));
        let said = format!("{out}{error}");
        assert!(code == 0 && said.contains("lone") && !said.contains("there is no tool"), "{arguments:?}: {said}");
        let (_, out, error) = files(almanacd().args(arguments).args(["--url", &url]));
        let is_known = out.contains("lone") && !error.contains("there is no tool");
        assert!(!is_known, "{arguments:?}: {out}{error}");
    }
}

#[test]
fn usage_errors_exit_64() {
    for (given, said) in [("inf", "a number of 0 or more"), ("soon", "such as 1200")] {
        let (code, _, error) = run(almanacd().args(["record", "a", given]));
        assert!(code == 64 && error.contains(said), "{given}: {code} {error}");
    }
    for arguments in [&["nonsense"][..], &["serve", "--listen", "x"], &["ctl"], &["completions", "tcsh2"]] {
        let (code, _, error) = run(almanacd().args(arguments));
        assert_eq!(code, 64, "{arguments:?}: {error}");
    }
    assert_eq!(run(almanacd().arg("--help")).0, 0);
    assert_eq!(run(almanacd().arg("--version")).1, format!("almanacd {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_and_pages_are_written() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, _) = run(almanacd().args(["completions", shell]));
        assert!(code == 0 && out.contains("almanacd") && out.contains("log-level"), "{shell}");
    }
    let (code, out, _) = run(almanacd().arg("man"));
    assert!(code == 0 && out.contains(".TH almanacd 1"), "{out}");
    let directory = TempDir::new().unwrap();
    let (code, _, error) = run(almanacd().args(["man", "--out"]).arg(directory.path().join("man")));
    assert_eq!(code, 0, "{error}");
    assert!(directory.path().join("man/almanacd-serve.1").exists());
}
