//! `almanacd migrate`: brings the schema of the database that several daemons share up to date.

use clap::Args;
use serde_json::json;

use super::database_args::DatabaseArgs;
use super::output::Output;
use super::{CliError, Exit, block_on};
use crate::store::postgres::migrations::{self, SchemaChange};

#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(super) fn run(args: &MigrateArgs, output: &mut Output) -> Result<Exit, CliError> {
    let options = args.database.options()?;
    let SchemaChange { from, to } = block_on(migrations::bring_up_to_date(&options.address))?;
    output.show(&json!({"from": from, "to": to}), |out| {
        out.line(&if from == to {
            format!("the schema is up to date: version {to}")
        } else {
            format!("the schema was brought from version {from} to {to}")
        });
    });
    Ok(Exit::Success)
}
