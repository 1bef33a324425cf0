//! `almanacd migrate`: brings the schema of the database that several daemons share up to date.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::output::Output;
use super::{CliError, Exit, block_on};
use crate::config::{DATABASE_URL, DaemonOverrides, Overrides};
use crate::daemon::{Config, DaemonError, database_options};
use crate::store::postgres::migrations::{self, SchemaChange};

#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    /// URL of the PostgreSQL database [default: that of the configuration]
    #[arg(long, env = DATABASE_URL, value_name = "URL", hide_env_values = true)]
    to: Option<String>,
    /// Configuration file [default: ./config/almanac.yaml, else /etc/almanac/almanac.yaml, else built in]
    #[arg(long, env = "ALMANAC_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn run(args: &MigrateArgs, output: &mut Output) -> Result<Exit, CliError> {
    let overrides = Overrides { config: args.config.clone(), ..Overrides::default() };
    let daemon = DaemonOverrides { database_url: args.to.clone(), ..DaemonOverrides::default() };
    let config = Config::load(&overrides, &daemon)?;
    let Some(options) = database_options(&config, &daemon).map_err(DaemonError::from)? else {
        let message = format!("no database is named; say `--to postgres://…`, {DATABASE_URL} or `store.url`");
        return Err(CliError::Arguments(message));
    };
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
