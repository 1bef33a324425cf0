//! Which database several daemons share, as commands are told it.

use std::path::PathBuf;

use clap::Args;

use super::CliError;
use crate::config::{DATABASE_URL, DaemonOverrides, Overrides};
use crate::daemon::{Config, DaemonError, database_options};
use crate::store::PostgresOptions;

#[derive(Debug, Args)]
pub(super) struct DatabaseArgs {
    /// URL of the PostgreSQL database [default: that of the configuration]
    #[arg(long, env = DATABASE_URL, value_name = "URL", hide_env_values = true)]
    pub(super) to: Option<String>,
    /// Configuration file [default: ./config/almanac.yaml, else /etc/almanac/almanac.yaml, else built in]
    #[arg(long, env = "ALMANAC_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl DatabaseArgs {
    /// How a daemon would use it, as it is configured.
    pub(super) fn options(&self) -> Result<(Config, PostgresOptions), CliError> {
        self.named(self.to.clone())
    }

    /// As above, of another database.
    pub(super) fn at(&self, url: &str) -> Result<(Config, PostgresOptions), CliError> {
        self.named(Some(url.to_owned()))
    }

    fn named(&self, database_url: Option<String>) -> Result<(Config, PostgresOptions), CliError> {
        let overrides = Overrides { config: self.config.clone(), ..Overrides::default() };
        let daemon = DaemonOverrides { database_url, ..DaemonOverrides::default() };
        let config = Config::load(&overrides, &daemon)?;
        let options = database_options(&config, &daemon).map_err(DaemonError::from)?.ok_or_else(|| {
            let message = format!("no database is named; say `--to postgres://…`, {DATABASE_URL} or `store.url`");
            CliError::Arguments(message)
        })?;
        Ok((config, options))
    }
}
