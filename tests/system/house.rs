//! Rules of the house that no lint can state.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the lint on `unsafe` may be lifted.
const LIFTED: [&str; 3] = ["src/plugin_host", "plugins/abi", "plugins/sdk"];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn unsafe_code_is_where_it_belongs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for directory in ["src", "plugins"] {
        sources(&root.join(directory), &mut found);
    }
    assert!(!found.is_empty());
    for file in found {
        let name = file.strip_prefix(root).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let lifts = text.lines().any(|line| line.contains("unsafe_code") && !line.contains("forbid("));
        let may = LIFTED.iter().any(|place| name.starts_with(place));
        assert!(
            may || !lifts || name == Path::new("src/plugin_host.rs"),
            "{} lifts the lint on unsafe",
            name.display()
        );
    }
}

/// Columns of a line, in characters; what rustfmt keeps for code holds for strings and comments too.
const PAGE_WIDTH: usize = 120;

#[test]
fn lines_are_no_longer_than_a_page_is_wide() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for directory in ["src", "plugins", "macros", "tests/system", "benches"] {
        sources(&root.join(directory), &mut found);
    }
    let mut long = Vec::new();
    for file in found {
        let text = fs::read_to_string(&file).unwrap();
        let beyond = text.lines().zip(1..).filter(|(line, _)| line.chars().count() > PAGE_WIDTH);
        long.extend(beyond.map(|(_, number)| format!("{}:{number}", file.display())));
    }
    assert!(long.is_empty(), "longer than {PAGE_WIDTH} columns:\n{}", long.join("\n"));
}

/// The floors of docs/ARCHITECTURE.md from the top: the modules of each, and what each may use. An arrow leads to a
/// floor below, or to the right on its own.
const FLOORS: [&[(&str, &str)]; 9] = [
    &[(
        "cli",
        "access catalog config daemon engine jsonrpc llm mcp memory plugin_host qualify store strict suggest sum \
         telemetry text timing tls upstream wire",
    )],
    &[(
        "daemon",
        "access blocking catalog config control engine http llm mcp plugin_host store strict telemetry timing upstream \
         usage qualify",
    )],
    &[
        (
            "http",
            "access blocking catalog control engine mcp memory plugin_host qualify session store stream strict \
             telemetry text timing upstream usage wire",
        ),
        (
            "mcp",
            "access config engine jsonrpc memory strict telemetry text tls wire blocking catalog sum timing upstream",
        ),
    ],
    &[("control", "access blocking catalog engine plugin_host qualify strict telemetry upstream usage")],
    &[("wire", "access catalog engine memory plugin_host qualify session store strict suggest timing usage")],
    &[(
        "engine",
        "access blocking catalog llm memory plugin_host qualify session store strict suggest telemetry text timing",
    )],
    &[("store", "memory parallel session strict suggest text timing tls")],
    &[
        ("session", "qualify text"),
        ("qualify", "catalog parallel strict text"),
        ("catalog", "parallel strict text watch"),
        ("memory", "strict text"),
        ("suggest", "strict text"),
        ("timing", "strict"),
    ],
    &[
        ("upstream", "blocking jsonrpc oauth process strict sum telemetry text tls watch"),
        ("plugin_host", "process strict sum telemetry text watch"),
        ("llm", "strict telemetry tls"),
        ("access", "config oauth strict sum"),
        ("blocking", ""),
        ("oauth", "tls"),
        ("usage", "strict"),
        ("config", "telemetry text"),
        ("telemetry", "strict text"),
        ("stream", "strict"),
        ("watch", ""),
        ("process", ""),
        ("parallel", ""),
        ("jsonrpc", "strict"),
        ("sum", "strict"),
        ("strict", "text"),
        ("text", ""),
        ("tls", ""),
    ],
];

/// The modules in the order of the floors, each with what it may use.
fn modules() -> Vec<(&'static str, Vec<&'static str>)> {
    FLOORS.iter().flat_map(|floor| floor.iter()).map(|(name, uses)| (*name, uses.split(' ').collect())).collect()
}

/// The top-level module that a source file belongs to; nothing for the roots.
fn module_of(file: &Path) -> Option<String> {
    let first = file.components().next()?.as_os_str().to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (!matches!(name, "lib" | "main")).then(|| name.to_owned())
}

/// The modules that a line names by `crate::`.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("crate::").filter_map(|(at, found)| {
        let rest = code[at + found.len()..].trim_start_matches('{');
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        Some(&rest[..end]).filter(|name| !name.is_empty())
    })
}

#[test]
fn floors() {
    let modules = modules();
    for (place, (name, uses)) in modules.iter().enumerate() {
        for used in uses.iter().filter(|used| !used.is_empty()) {
            let below = modules[place + 1..].iter().any(|(other, _)| other == used);
            assert!(below, "the table lets `{name}` use `{used}`, which is not below it");
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    let mut up = Vec::new();
    for file in found {
        let name = file.strip_prefix(&root).unwrap();
        let Some(module) = module_of(name) else { continue };
        let Some((_, uses)) = modules.iter().find(|(known, _)| *known == module) else {
            panic!("src/{} belongs to no floor: put `{module}` into the table and the picture", name.display());
        };
        // Tests may look wherever they like.
        let is_test =
            name.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests.rs" | "tests" | "suite")));
        let text = if is_test { String::new() } else { fs::read_to_string(&file).unwrap() };
        for (number, line) in text.split("#[cfg(test)]").next().unwrap_or_default().lines().enumerate() {
            let is_module = |used: &&str| modules.iter().any(|(known, _)| known == used);
            for used in named(line).filter(is_module).filter(|used| *used != module && !uses.contains(used)) {
                up.push(format!("src/{}:{}: {module} -> {used}", name.display(), number + 1));
            }
        }
    }
    assert!(up.is_empty(), "arrows that are not in the table:\n{}", up.join("\n"));
}

#[test]
fn the_security_model_names_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for directory in ["src", "tests/system"] {
        sources(&root.join(directory), &mut found);
    }
    let code: String = found.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let text = fs::read_to_string(root.join("docs/SECURITY-MODEL.md")).unwrap();
    let quoted = text.split('`').skip(1).step_by(2);
    let named: Vec<&str> = quoted
        .filter_map(|quoted| quoted.rsplit("::").next())
        .filter(|name| {
            name.matches('_').count() >= 3 && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())
        })
        .collect();
    assert!(named.len() > 30, "{named:?}");
    for name in named {
        assert!(code.contains(&format!("fn {name}(")), "docs/SECURITY-MODEL.md names `{name}`, which is no test");
    }
}

#[test]
fn the_picture_of_the_floors_names_every_module() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ARCHITECTURE.md")).unwrap();
    let picture = text.split("```").nth(1).unwrap();
    let place = |module: &str| {
        // What stands behind it is said of the floor.
        let modules = |line: &str| line.chars().take(60).collect::<String>();
        let word = |line: &str| {
            modules(line).split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == module)
        };
        picture.lines().position(word)
    };
    let mut above = 0;
    for floor in FLOORS {
        let lines: Vec<usize> = floor
            .iter()
            .map(|(module, _)| place(module).unwrap_or_else(|| panic!("`{module}` is not in the picture")))
            .collect();
        let (first, last) = (*lines.iter().min().unwrap(), *lines.iter().max().unwrap());
        assert!(first >= above, "the picture has {floor:?} above the floor over it");
        above = last;
    }
}
