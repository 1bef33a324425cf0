//! `almanacd spool`: what a daemon left on this machine that does not start again.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use super::database_args::DatabaseArgs;
use super::output::{Output, counted};
use super::{CliError, Exit, block_on};
use crate::daemon::{StateError, lock_state};
use crate::store::postgres::outbox::OutboxError;
use crate::store::postgres::spool::LeftSpool;
use crate::store::postgres::spool_forward::{ForwardedSpool, forward};

#[derive(Debug, Args)]
pub(super) struct SpoolArgs {
    #[command(subcommand)]
    command: SpoolCommand,
}

#[derive(Debug, Subcommand)]
enum SpoolCommand {
    /// Send the records of a spool whose daemon does not start again; may be repeated
    Forward(ForwardArgs),
}

#[derive(Debug, Args)]
struct ForwardArgs {
    /// The file `spool-….journal` of the state directory, under that name
    file: PathBuf,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// A spool was not forwarded.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolCliError {
    #[error("the spool is not forwarded")]
    Forward(#[source] OutboxError),
    #[error("the spool's daemon runs, and forwards it itself")]
    InUse(#[source] StateError),
}

impl SpoolCliError {
    /// Is it for the operator to mend, and waiting does not help?
    pub(super) fn is_configuration(&self) -> bool {
        matches!(self, Self::Forward(OutboxError::Database(fault)) if fault.is_setting())
    }
}

pub(super) fn run(args: &SpoolArgs, output: &mut Output) -> Result<Exit, CliError> {
    let SpoolCommand::Forward(args) = &args.command;
    let directory = args.file.parent().unwrap_or_else(|| Path::new(""));
    // Elsewhere than in a state directory there is nobody to be kept from it.
    let _lock = directory.join("lock").exists().then(|| lock_state(directory)).transpose().map_err(in_use)?;
    let left = LeftSpool::read(&args.file).map_err(|error| SpoolCliError::Forward(error.into()))?;
    let (_, options) = args.database.options()?;
    let forwarded = block_on(async {
        let total = left.records.len();
        let progress = |done| output.progress(&format!("{done} of {}", counted(total as u64, "record")));
        let forwarded = forward(&left, &options.address, options.migration, progress).await;
        forwarded.map_err(SpoolCliError::Forward)
    });
    output.progress("");
    print(&left, forwarded?, output);
    Ok(if left.damaged_at.is_some() { Exit::Failure } else { Exit::Success })
}

fn in_use(error: StateError) -> CliError {
    SpoolCliError::InUse(error).into()
}

fn print(left: &LeftSpool, forwarded: ForwardedSpool, output: &mut Output) {
    let ForwardedSpool { records, stored_before, told, refused } = forwarded;
    let (file, damaged_at) = (left.path().display(), left.damaged_at);
    let value = json!({
        "records": records, "stored_before": stored_before, "told": told, "refused": refused, "damaged_at": damaged_at
    });
    output.show(&value, |out| {
        let there = format!("{}, {stored_before} of them from before", counted(records as u64, "record"));
        out.line(&match damaged_at {
            None => format!("all of the spool is in the database: {there}"),
            Some(_) => format!("what can be read of the spool is in the database: {there}"),
        });
        if told > 0 {
            out.line(&format!("{told} had been told to another daemon under the same keys"));
        }
        if refused > 0 {
            out.line(&format!("{refused} are refused, and stand in spool.refused beside it, each with the reason"));
        }
        out.line(&match damaged_at {
            None => format!("{file} may be removed"),
            Some(offset) => format!(
                "{file} is damaged from byte {offset} on, and records may be missing there; it is left as it is: look \
                 for the cause, and send another copy of it, if there is one"
            ),
        });
    });
}
