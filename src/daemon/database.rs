//! The database that several daemons share, as the configuration, the environment and the command line name it.

use std::env;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Config;
use crate::config::{DATABASE_URL, DaemonOverrides};
use crate::store::PostgresOptions;
use crate::store::postgres::address::{AddressError, DatabaseAddress, Origin};
use crate::store::postgres::daemon_id;
use crate::store::sqlite::{file_in, is_there};

/// The database that several daemons share, if one is named: on the command line, in the environment or in the
/// configuration.
pub(crate) fn options(config: &Config, overrides: &DaemonOverrides) -> Result<Option<PostgresOptions>, AddressError> {
    let address = match &overrides.database_url {
        Some(url) => {
            let origin = if is_environment(url) { Origin::Configuration } else { Origin::CommandLine };
            Some(DatabaseAddress::parse(url, origin)?)
        }
        None => config.store.url.clone(),
    };
    Ok(address.map(|address| PostgresOptions {
        address: address.or_password_file(password_file()),
        directory: config.state_dir.clone(),
        outbox: config.store.outbox(),
        migration: config.store.migrate,
        host: config.store.host.clone().unwrap_or_else(machine),
        retention: Some(config.store.retention),
        max_queue: config.store.max_queue,
    }))
}

/// What names the database that daemons share.
pub(crate) fn named_by(overrides: &DaemonOverrides) -> &'static str {
    match &overrides.database_url {
        Some(url) if is_environment(url) => DATABASE_URL,
        Some(_) => "--database-url",
        None => "store.url",
    }
}

fn is_environment(url: &str) -> bool {
    env::var(DATABASE_URL).is_ok_and(|said| said == url)
}

/// The database that daemons share, which is said: whoever named a state directory may not know that there is one.
pub(super) fn told(config: &Config, overrides: &DaemonOverrides) -> Result<Option<PostgresOptions>, AddressError> {
    let options = options(config, overrides)?;
    if let Some(options) = &options {
        tracing::info!(
            database = options.address.database,
            named_by = named_by(overrides),
            state_dir = %config.state_dir.display(),
            "all is kept in the database that daemons share; the state directory has what waits for it"
        );
    }
    Ok(options)
}

/// Says which store is used where the state directory tells of another one.
pub(super) fn tell_of_another(state_dir: &Path, is_shared: bool) {
    let own = file_in(state_dir);
    let has_own = is_there(&own).unwrap_or_default();
    if is_shared && has_own {
        tracing::info!(
            database = %own.display(),
            "the database that daemons share is used, and not this one: what this one has is there only if \
             `almanacd migrate` copied it"
        );
    }
    if !is_shared && !has_own && daemon_id::is_in(state_dir) {
        tracing::warn!(
            database = %own.display(),
            "a daemon of this directory shared a database with others, and none is named: a new one is made here"
        );
    }
}

/// The file of passwords that the environment names, or else the service manager's credential.
fn password_file() -> Option<PathBuf> {
    let credential = || Some(PathBuf::from(env::var_os("CREDENTIALS_DIRECTORY")?).join("pgpass"));
    env::var_os("PGPASSFILE").map(PathBuf::from).or_else(|| credential().filter(|file| file.exists()))
}

/// Where Linux keeps which machine it is.
const MACHINE_ID: &str = "/etc/machine-id";

/// Where it keeps the machine's name, which stands in for it.
const MACHINE_NAME: &str = "/proc/sys/kernel/hostname";

/// A name for this machine that says nothing of it: a hash, since its id is not to be told.
fn machine() -> String {
    let id = [MACHINE_ID, MACHINE_NAME].into_iter().find_map(|file| std::fs::read_to_string(file).ok());
    let id = id.unwrap_or_default();
    hex::encode(Sha256::digest(format!("almanacd {}", id.trim())))
}
