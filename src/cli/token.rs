//! `almanacd token`: makes tokens, lists them and takes them back.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::output::Output;
use super::{CliError, Exit};
use crate::access::issue::{add_to_file, new_token};
use crate::access::revoke::revoke;
use crate::access::{DEFAULT_TENANT, Grant, Scope, Tokens};
use crate::strict::values::check_label;

#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token; prints it once, and the entry that lets it in
    New {
        /// A name for logs, and to revoke it by
        #[arg(long, value_parser = token_name)]
        name: String,
        /// What it allows
        #[arg(long, value_enum, value_delimiter = ',', default_value = "read")]
        scopes: Vec<Scope>,
        /// Whose memories and sessions it sees
        #[arg(long, default_value = DEFAULT_TENANT)]
        tenant: String,
        /// Add the entry to this file, which is made if it is not there
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// List the tokens of a file: their names, what they allow, and whose they are
    List {
        /// The file of tokens
        #[arg(long, value_name = "FILE", default_value = "/etc/almanac/tokens")]
        file: PathBuf,
    },
    /// Take a token out of a file; a running daemon lets it in no longer within a second
    Revoke {
        /// Its name
        name: String,
        /// The file of tokens
        #[arg(long, value_name = "FILE", default_value = "/etc/almanac/tokens")]
        file: PathBuf,
    },
}

/// A name that can be shown in a line of a log.
fn token_name(name: &str) -> Result<String, String> {
    if name.is_empty() {
        return Err("must not be empty".to_owned());
    }
    check_label(name).map(|()| name.to_owned()).map_err(|violation| violation.to_string())
}

pub(super) fn run(args: &TokenArgs, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        TokenCommand::New { name, scopes, tenant, file } => new(name, tenant, scopes, file.as_deref(), output),
        TokenCommand::List { file } => list(file, output),
        TokenCommand::Revoke { name, file } => {
            let told = |source| CliError::RevokeToken { file: file.display().to_string(), source };
            revoke(file, name).map_err(told)?;
            output.show(&json!({"revoked": name}), |out| out.line(&format!("{name} is revoked")));
            Ok(Exit::Success)
        }
    }
}

fn new(name: &str, tenant: &str, scopes: &[Scope], file: Option<&Path>, output: &mut Output) -> Result<Exit, CliError> {
    let (token, entry) = new_token(name, tenant, scopes)?;
    if let Some(file) = file {
        let shown = || file.display().to_string();
        // A file that cannot be read is said below, where it is to be written.
        if Tokens::read(file).is_ok_and(|tokens| tokens.grants().any(|grant| &*grant.name == name)) {
            return Err(CliError::TokenExists { name: name.to_owned(), file: shown() });
        }
        add_to_file(file, &entry).map_err(|source| CliError::AddToken { file: shown(), source })?;
    }
    output.show(&json!({"token": token, "entry": entry.trim()}), |out| {
        out.line(&token);
        match file {
            Some(file) => out.note(&format!("added to {}; the token is not shown again", file.display())),
            None => out.note(&format!("let it in by this entry of the tokens file:\ntokens:\n{}", entry.trim_end())),
        }
    });
    Ok(Exit::Success)
}

fn list(file: &Path, output: &mut Output) -> Result<Exit, CliError> {
    let tokens = Tokens::read(file)?;
    let scopes = |grant: &Grant| -> Vec<&'static str> { grant.scopes().iter().map(|scope| scope.as_str()).collect() };
    let items: Vec<Value> = tokens
        .grants()
        .map(|grant| json!({"name": *grant.name, "scopes": scopes(grant), "tenant": *grant.tenant}))
        .collect();
    output.show(&json!({"items": items, "total": items.len()}), |out| {
        let width = tokens.grants().map(|grant| grant.name.chars().count()).max().unwrap_or_default();
        for grant in tokens.grants() {
            let name = out.bold(&format!("{:width$}", &*grant.name));
            out.line(&format!("{name}  {}  {}", scopes(grant).join(","), grant.tenant));
        }
        if items.is_empty() {
            out.note("there are none: nobody is let in");
        }
    });
    Ok(Exit::Success)
}
