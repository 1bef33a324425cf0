//! How clients refer to what stands elsewhere, in the words of `mcp.servers`.

/// What a client's text is here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Referring {
    /// With `${env:NAME}` for variables.
    pub(super) text: String,
    /// Does it name a variable?
    pub(super) has_variable: bool,
    /// The variable for which a default was taken.
    pub(super) defaulted: Option<String>,
    /// What could not be said, and what became of it.
    pub(super) lost: Vec<String>,
}

/// What stands in braces.
enum Inside<'t> {
    Variable(&'t str),
    /// A variable, and what stands for it if it is not set.
    Default(&'t str, &'t str),
    /// What VS Code asks its user for.
    Input(&'t str),
    Text(String),
    Unknown,
}

/// Names of an editor's own, which no environment has.
const OF_EDITORS: [&str; 12] = [
    "workspaceFolder",
    "workspaceFolderBasename",
    "workspaceRoot",
    "fileWorkspaceFolder",
    "file",
    "fileDirname",
    "relativeFile",
    "cwd",
    "execPath",
    "extensionInstallFolder",
    "selectedText",
    "lineNumber",
];

/// Reads a client's text. `home` is that of whoever takes it over, and `variable` has what a user is asked for.
pub(super) fn referring(text: &str, home: Option<&str>, mut variable: impl FnMut(&str) -> String) -> Referring {
    let mut read = Referring::default();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, behind) = rest.split_at(start);
        let Some(end) = behind.find('}') else { break };
        let (inside, whole) = (&behind[1..end], &behind[..=end]);
        let has_dollar = before.ends_with('$');
        let plain = before.strip_suffix('$').unwrap_or(before);
        match inside_of(inside, has_dollar, home) {
            Inside::Variable(name) => {
                if plain.ends_with('$') {
                    read.lost.push(format!("a `$` before a reference cannot be said here: `${whole}` became a text"));
                }
                read.text.push_str(plain);
                read.text.push_str(&format!("${{env:{name}}}"));
                read.has_variable = true;
            }
            Inside::Default(name, default) => {
                read.text.push_str(plain);
                read.text.push_str(default);
                read.defaulted = Some(name.to_owned());
            }
            Inside::Input(name) => {
                read.text.push_str(&format!("{plain}${{env:{}}}", variable(name)));
                read.has_variable = true;
            }
            Inside::Text(said) => {
                read.text.push_str(plain);
                read.text.push_str(&said);
            }
            Inside::Unknown => {
                read.text.push_str(before);
                if has_dollar {
                    // Of what is not known here nothing may be read as a reference.
                    read.text.push('$');
                    read.lost.push(format!("`${whole}` is known to the client alone, and became a text"));
                }
                read.text.push_str(whole);
            }
        }
        rest = &behind[end + 1..];
    }
    read.text.push_str(rest);
    read
}

/// The variables that a text names, without those that have a default in it.
pub(super) fn named(text: &str) -> Vec<String> {
    let mut named = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((inside, after)) = behind.split_once('}') else { break };
        if let Inside::Variable(name) = inside_of(inside, before.ends_with('$'), None) {
            named.push(name.to_owned());
        }
        rest = after;
    }
    named
}

/// Is nothing of a text in clear but the word for the kind of a token?
pub(super) fn is_all_reference(text: &str) -> bool {
    let mut rest = text.to_owned();
    while let Some((start, end)) = rest.find("${env:").and_then(|at| Some((at, at + rest[at..].find('}')?))) {
        rest.replace_range(start..=end, " ");
    }
    let mut words = rest.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.all(|word| ["bearer", "basic", "token"].contains(&&*word.to_ascii_lowercase()))
}

fn inside_of<'t>(inside: &'t str, has_dollar: bool, home: Option<&str>) -> Inside<'t> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if let Some(name) = inside.strip_prefix("env:").filter(|name| is_name(name)) {
        return Inside::Variable(name);
    }
    if !has_dollar {
        return Inside::Unknown;
    }
    match (inside, home) {
        ("userHome", Some(home)) => return Inside::Text(home.to_owned()),
        ("pathSeparator" | "/", _) => return Inside::Text("/".to_owned()),
        ("userHome", None) => return Inside::Unknown,
        _ => {}
    }
    if let Some(name) = inside.strip_prefix("input:").filter(|name| !name.is_empty()) {
        return Inside::Input(name);
    }
    let named = inside.strip_prefix("env:").unwrap_or(inside);
    match named.split_once(":-") {
        Some((name, default)) if is_name(name) => Inside::Default(name, default),
        None if is_name(inside) && !OF_EDITORS.contains(&inside) => Inside::Variable(inside),
        _ => Inside::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_and_what_is_in_clear_are_told_apart() {
        assert_eq!(named("${A}/{env:B} ${env:C} ${D:-x} {E} ${"), ["A", "B", "C"]);
        let check = |text: &str, expected: bool| assert_eq!(is_all_reference(text), expected, "{text}");
        check("${env:A}", true);
        check("Bearer ${env:A}", true);
        check("${env:A}:${env:B}", true);
        check("${env:A}s3cret", false);
        check("Bearer sk-live${env:A}", false);
        check("", true);
    }

    #[test]
    fn what_stands_elsewhere_is_referred_to() {
        let check = |text: &str, expected: &str, lost: usize| {
            let read = referring(text, Some("/home/me"), str::to_ascii_uppercase);
            assert_eq!((read.text.as_str(), read.lost.len()), (expected, lost), "{text}: {:?}", read.lost);
        };
        check("${A}/x", "${env:A}/x", 0);
        check("{env:A}${env:B}", "${env:A}${env:B}", 0);
        check("${A:-def}", "def", 0);
        check("https://${HOST:-x.example}/mcp", "https://x.example/mcp", 0);
        check("${userHome}/x${/}y", "/home/me/x/y", 0);
        check("${workspaceFolder}/s.py", "$${workspaceFolder}/s.py", 1);
        check("${config:a}", "$${config:a}", 1);
        check("{a} {", "{a} {", 0);
        check("$${env:Z}", "$${env:Z}", 1);
        check("$A", "$A", 0);
        check("Bearer ${input:key}", "Bearer ${env:KEY}", 0);
        let homeless = |text: &str| referring(text, None, str::to_ascii_uppercase);
        assert_eq!(homeless("${A:-def}").defaulted.as_deref(), Some("A"));
        assert_eq!(homeless("${userHome}").lost.len(), 1);
    }
}
