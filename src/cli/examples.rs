//! Examples of each command, as `--help` and the manual pages show them. A test parses every line.

use clap::Command;

/// The command with the examples of what is below it.
pub(super) fn with_examples(mut command: Command) -> Command {
    for (path, examples) in EXAMPLES {
        let text = format!("Examples:\n{}", examples.lines().map(|line| format!("  {line}\n")).collect::<String>());
        command = put(command, path, text.trim_end().to_owned());
    }
    command
}

fn put(command: Command, path: &str, text: String) -> Command {
    match path.split_once(' ') {
        _ if path.is_empty() => command.after_help(text),
        Some((first, rest)) => command.mut_subcommand(first, |inner| put(inner, rest, text)),
        None => command.mut_subcommand(path, |inner| inner.after_help(text)),
    }
}

/// By the path of the command below `almanacd`.
const EXAMPLES: &[(&str, &str)] = &[
    ("", "almanacd serve\nalmanacd check tool_metadata\nalmanacd tools \"compare my options\""),
    (
        "serve",
        "almanacd serve --tool-metadata ./tool_metadata --state-dir ./state\nalmanacd serve --listen 127.0.0.1:8080",
    ),
    (
        "check",
        "almanacd check\n\
         almanacd check tool_metadata\n\
         almanacd check a.yaml b.json --watch\n\
         almanacd check - < new.yaml",
    ),
    (
        "tools",
        "almanacd tools\n\
         almanacd tools \"compare my options\" --limit 4\n\
         almanacd tools --error \"HTTP 401 MISSING_API_KEY\"",
    ),
    ("show", "almanacd show web_search\nalmanacd show web_search --json"),
    (
        "qualify",
        "almanacd qualify \"What's hot on Polymarket?\"\n\
         almanacd qualify \"and on Base?\" --session s1 --max-tools 10",
    ),
    (
        "estimate",
        "almanacd estimate web_search --timeout-ms 5000\nalmanacd estimate reasoning_tree --num-branches 4 --plot",
    ),
    (
        "suggest",
        "almanacd suggest web_search\nalmanacd suggest web_search --history file_read,web_search --goal research",
    ),
    (
        "record",
        "almanacd record web_search 1240\n\
         almanacd record web_search 5000 --outcome timeout --idempotency-key call-17",
    ),
    ("timing", "almanacd timing\nalmanacd timing web_search"),
    ("presets", "almanacd presets\nalmanacd presets --json"),
    (
        "calibrate",
        "almanacd calibrate --exec './call.sh' --tool web_search --runs 5\nalmanacd calibrate --from calls.csv",
    ),
    ("eval", "almanacd eval timing calls.csv\nalmanacd eval qualify questions.jsonl --tool-metadata tool_metadata"),
    (
        "eval timing",
        "almanacd eval timing calls.csv\nalmanacd eval timing calls.csv --plot forecasts.svg --plot-key web_search",
    ),
    (
        "eval qualify",
        "almanacd eval qualify questions.jsonl\nalmanacd eval qualify questions.jsonl --learn --of-tool 5",
    ),
    ("eval dialogues", "almanacd eval dialogues dialogues.jsonl --tool-metadata tool_metadata"),
    ("eval recall", "almanacd eval recall queries.jsonl --memories memories.jsonl"),
    ("eval next", "almanacd eval next sessions.jsonl"),
    (
        "plugin",
        "almanacd plugin new my-rules\n\
         almanacd plugin check libmy_rules.so\n\
         almanacd plugin try libmy_rules.so --tool web_search",
    ),
    ("plugin inspect", "almanacd plugin inspect libmy_rules.so"),
    ("plugin check", "almanacd plugin check libmy_rules.so\nalmanacd plugin check libmy_rules.so --deadline 20ms"),
    (
        "plugin try",
        "almanacd plugin try libmy_rules.so --tool web_search\n\
         almanacd plugin try libmy_rules.so --tool web_search --context '{\"num_outputs\": 3}'",
    ),
    ("plugin new", "almanacd plugin new my-rules\nalmanacd plugin new my-rules --lang c"),
    (
        "remember",
        "almanacd remember messages 'Biscuit is a beagle' --set role=user --user ada --agent helper --chat home",
    ),
    (
        "recall",
        "almanacd recall messages 'beagle' --where role=user\nalmanacd recall all 'what does Ada like?' --limit 3",
    ),
    ("backup", "almanacd backup /var/backups/almanac.db\nalmanacd backup copy.db --state-dir state"),
    (
        "memory",
        "almanacd memory export all.jsonl\n\
         almanacd memory import all.jsonl\n\
         almanacd memory purge --user user:user:ada",
    ),
    (
        "migrate",
        "almanacd migrate\n\
         almanacd migrate --to postgres://almanac@db.example.com/almanac\n\
         almanacd migrate --from sqlite:///var/lib/almanac --to postgres://almanac@db.example.com/almanac\n\
         almanacd migrate --from postgres://almanac@db.example.com/almanac --to sqlite:///var/lib/almanac",
    ),
    ("spool", "almanacd spool forward /var/lib/almanac/spool-6f0c4b5e0d1f4c3a9a6b2d7e8f901234.journal"),
    (
        "spool forward",
        "almanacd spool forward /var/lib/almanac/spool-6f0c4b5e0d1f4c3a9a6b2d7e8f901234.journal\n\
         almanacd spool forward spool-6f0c4b5e0d1f4c3a9a6b2d7e8f901234.journal \
         --to postgres://almanac@db.example.com/almanac",
    ),
    ("memory export", "almanacd memory export all.jsonl\nalmanacd memory export --tenant home > home.jsonl"),
    ("memory import", "almanacd memory import all.jsonl\nalmanacd memory import old.jsonl --legacy --tenant home"),
    ("memory backup", "almanacd memory backup copy.db --state-dir state"),
    (
        "memory purge",
        "almanacd memory purge --user user:user:ada\n\
         almanacd memory purge --deleted-before 2026-01-01T00:00:00Z\n\
         almanacd memory purge --id 17",
    ),
    (
        "import",
        "almanacd import openapi api.yaml --out tool_metadata\n\
         almanacd import mcp --name files -- mcp-server-filesystem /srv",
    ),
    (
        "import openapi",
        "almanacd import openapi api.yaml --out tool_metadata\n\
         almanacd import openapi api.json --out tool_metadata --update",
    ),
    ("import functions", "almanacd import functions tools.json --out tool_metadata"),
    ("import mcp-list", "almanacd import mcp-list tools.json --server files --out tool_metadata"),
    (
        "import mcp",
        "almanacd import mcp --name files -- mcp-server-filesystem /srv\nalmanacd import mcp --clients .mcp.json",
    ),
    ("mcp", "almanacd mcp\nclaude mcp add almanac -- almanacd mcp"),
    ("ctl", "almanacd ctl status\nalmanacd ctl reload --wait\nalmanacd ctl log-level info,almanac::http=debug"),
    ("ctl reload", "almanacd ctl reload\nalmanacd ctl reload --wait"),
    ("ctl status", "almanacd ctl status\nalmanacd ctl status --json"),
    ("ctl fleet", "almanacd ctl fleet\nalmanacd ctl fleet --json"),
    ("ctl log-level", "almanacd ctl log-level debug\nalmanacd ctl log-level info,almanac::http=debug"),
    ("ctl plugin", "almanacd ctl plugin list\nalmanacd ctl plugin reset dev.almanac.reasoning"),
    ("ctl plugin list", "almanacd ctl plugin list"),
    ("ctl plugin reset", "almanacd ctl plugin reset dev.almanac.reasoning"),
    ("ctl mcp", "almanacd ctl mcp list\nalmanacd ctl mcp diff files"),
    ("ctl mcp list", "almanacd ctl mcp list\nalmanacd ctl mcp list --json"),
    ("ctl mcp restart", "almanacd ctl mcp restart files"),
    ("ctl mcp logs", "almanacd ctl mcp logs files"),
    ("ctl mcp diff", "almanacd ctl mcp diff files\nalmanacd ctl mcp diff files read_file"),
    ("ctl mcp approve", "almanacd ctl mcp approve files\nalmanacd ctl mcp approve files read_file"),
    (
        "token",
        "almanacd token new --name ci --scopes read,record --file /etc/almanac/tokens\n\
         almanacd token list --file /etc/almanac/tokens\nalmanacd token revoke ci --file /etc/almanac/tokens",
    ),
    (
        "token new",
        "almanacd token new --name ci --scopes read,record --file /etc/almanac/tokens\n\
         almanacd token new --name home --scopes read,record,memory,call --tenant home --file tokens",
    ),
    ("token list", "almanacd token list --file /etc/almanac/tokens"),
    ("token revoke", "almanacd token revoke ci --file /etc/almanac/tokens"),
    ("schema", "almanacd schema > tool.json"),
    ("completions", "almanacd completions bash > /etc/bash_completion.d/almanacd"),
    ("man", "almanacd man\nalmanacd man --out /usr/share/man/man1"),
];

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    /// The words of a line as a shell would see them, up to what is no argument.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
        for character in line.chars() {
            match (quote, character) {
                (Some(open), _) if open == character => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(character);
                    word.get_or_insert_default();
                }
                (None, ' ') => words.extend(word.take()),
                (None, '<' | '>') => return words,
                _ => word.get_or_insert_default().push(character),
            }
        }
        words.extend(word);
        words
    }

    fn without_examples(command: &Command) -> Vec<&str> {
        let below = command.get_subcommands().flat_map(without_examples);
        below.chain(command.get_after_help().is_none().then(|| command.get_name())).collect()
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        assert_eq!(without_examples(&with_examples(Cli::command())), Vec::<&str>::new());
        for (path, examples) in EXAMPLES {
            for line in examples.lines() {
                let words = words(line.split_once("-- almanacd").map_or(line, |(_, rest)| rest));
                let words = if words.first().is_some_and(|word| word == "almanacd") {
                    words
                } else {
                    ["almanacd".to_owned()].into_iter().chain(words).collect()
                };
                let parsed = Cli::try_parse_from(&words);
                assert!(parsed.is_ok(), "{path}: {line}: {}", parsed.err().unwrap());
                assert!(path.split(' ').all(|part| part.is_empty() || words.iter().any(|word| word == part)), "{line}");
            }
        }
    }
}
