//! Whether a value that was refused came from the environment, which the parser calls by its flag.

use std::env;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};

use super::is_flag;

/// Names the variable that a refused value came from, if it did.
pub(super) fn origin(error: &clap::Error, command: &Command) -> Option<String> {
    let ContextValue::String(argument) = error.get(ContextKind::InvalidArg)? else { return None };
    let flag = argument.split([' ', '=']).next().filter(|flag| flag.starts_with("--") && !is_flag(flag))?;
    let words: Vec<String> = env::args().skip(1).collect();
    let variable = find(command, flag, &words)?.get_env()?.to_str()?;
    Some(if env::var_os(variable)?.is_empty() {
        format!("{variable} is empty: unset it, or give it a value")
    } else {
        format!("the value is that of {variable} in the environment")
    })
}

/// The argument of this flag, of the command that `words` call or of one above it.
fn find<'c>(command: &'c Command, flag: &str, words: &[String]) -> Option<&'c Arg> {
    let called = words.iter().enumerate().find_map(|(at, word)| Some((at, command.find_subcommand(word)?)));
    let below = called.and_then(|(at, called)| find(called, flag, &words[at + 1..]));
    below.or_else(|| command.get_arguments().find(|argument| argument.get_long() == flag.strip_prefix("--")))
}
