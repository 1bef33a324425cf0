//! Keeps up with the file of tokens, and begins one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Config;
use crate::access::issue::{AddError, add_to_file, entry_of};
use crate::access::{DEFAULT_TENANT, Scope, Tokens};
use crate::blocking;
use crate::control::Control;

/// Shortest first token, in characters: whoever may ask may guess.
const SHORTEST: usize = 16;

/// What the first token is called.
const FIRST: &str = "first";

/// The first token cannot be let in.
#[derive(Debug, thiserror::Error)]
pub enum FirstTokenError {
    #[error(
        "ALMANAC_FIRST_TOKEN has to have {SHORTEST} characters at least, without blanks; unset it where none is meant"
    )]
    Weak,
    #[error("there is no file for ALMANAC_FIRST_TOKEN: name one by ALMANAC_TOKEN_FILE")]
    NoFile,
    #[error("cannot put ALMANAC_FIRST_TOKEN into {}", file.display())]
    Add { file: PathBuf, source: AddError },
}

/// Lets the bearer of `token` in as an administrator, if the file of tokens is not there yet or lets nobody in. One
/// that has tokens is as it should be, also after the first was revoked.
pub(super) fn make_first(config: &Config, token: &str) -> Result<(), FirstTokenError> {
    if token.chars().count() < SHORTEST || token.contains(char::is_whitespace) {
        return Err(FirstTokenError::Weak);
    }
    let file = config.auth.tokens_file.clone().ok_or(FirstTokenError::NoFile)?;
    if file.exists() && !Tokens::read(&file).is_ok_and(|tokens| tokens.is_empty()) {
        return Ok(());
    }
    let entry = entry_of(token, FIRST, DEFAULT_TENANT, &[Scope::Admin]);
    add_to_file(&file, &entry).map_err(|source| FirstTokenError::Add { file: file.clone(), source })?;
    tracing::info!(file = %file.display(), "the first token was let in; `almanacd token new` makes others");
    Ok(())
}

/// A look at the file's times is cheap, and a revoked token is refused this soon.
const INTERVAL: Duration = Duration::from_millis(500);

/// Fetches the issuer's keys at the start, from time to time, and when a token names one that is not known.
pub(super) async fn follow_issuer(control: Arc<Control>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        let Some(issuer) = control.issuer().filter(|issuer| issuer.is_due(Instant::now())) else { continue };
        match issuer.refresh().await {
            Ok(keys) => tracing::info!(issuer = issuer.name(), keys, "the issuer's keys were fetched"),
            Err(error) => {
                tracing::error!(issuer = issuer.name(), %error, "the issuer's keys cannot be had; tried again");
            }
        }
    }
}

/// Reads the tokens again whenever their file changed, or is there for the first time.
pub(super) async fn follow(control: Arc<Control>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        let control = Arc::clone(&control);
        // Faults are in the log; the next look is soon.
        let _ = blocking::run(move || control.look_at_tokens(false)).await;
    }
}
