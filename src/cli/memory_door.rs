//! The way to memories: the running daemon, or the database itself where none runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;
use std::{env, thread};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::client::{Client, ClientError};
use super::memory::MemoryCliError;
use super::{CliError, DaemonArgs, is_flag};
use crate::access::DEFAULT_TENANT;
use crate::config::{CONFIG, DATABASE_URL, DaemonOverrides, Overrides, UserFiles, admin_socket_of, is_installed};
use crate::daemon::{Config, DaemonError, StateError, database_named_by, database_options, lock_state};
use crate::engine::Engine;
use crate::engine::memory::RecallError;
use crate::memory::Kind;
use crate::memory::search::Recall;
use crate::store::sqlite::{self, file_in};
use crate::store::{Postgres, PostgresOptions, Sqlite, Store};
use crate::strict::decode::{decode, decode_with};
use crate::wire::memory::{MemoryAnswer, SearchAnswer, read_addition};
use crate::wire::memory_archive::{ArchivedMemory, ExportAnswer, ImportAnswer, ImportBody, PurgeAnswer, PurgeBody};

/// Memories on a page of an export.
const PAGE: usize = 200;

/// How long a purge may take: some two minutes of a hundred thousand memories.
const PURGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The way to one tenant's memories.
pub(super) struct MemoryDoor {
    way: Way,
    tenant: Option<String>,
}

/// Where no daemon runs: may the database be made?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseMode {
    Create,
    Existing,
}

enum Way {
    Daemon(Client),
    /// The engine on the database, and the lock that keeps a daemon away meanwhile.
    Files(Box<Engine>, #[expect(dead_code, reason = "held for as long as the files are used")] Box<dyn Send>),
}

/// What names the database that daemons share, if one is: all is kept there, whatever the state directory has.
pub(super) fn shared_by(given: Option<&Path>) -> Result<Option<&'static str>, CliError> {
    Ok(own_state_dir(given)?.is_none().then(|| database_named_by(&overrides(given))))
}

/// Where the state is, if that is where everything is kept: nothing where daemons share a database.
pub(super) fn own_state_dir(given: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    let overrides = overrides(given);
    let config = Config::load(&named(), &overrides)?;
    let is_shared = database_options(&config, &overrides).map_err(DaemonError::from)?.is_some();
    Ok((!is_shared).then_some(config.state_dir))
}

/// The configuration file that the environment names.
fn named() -> Overrides {
    Overrides { config: env::var_os(CONFIG).map(PathBuf::from), ..Overrides::default() }
}

fn overrides(state: Option<&Path>) -> DaemonOverrides {
    let database_url = env::var(DATABASE_URL).ok();
    DaemonOverrides { state_dir: state.map(Path::to_owned), database_url, ..DaemonOverrides::default() }
}

/// The state of the user's own daemon, if it has a database, and there is no `installed` one.
fn own_state_instead(installed: &Path) -> Option<PathBuf> {
    let own = UserFiles::find()?.state().to_owned();
    let is_there = |file: &Path| sqlite::is_there(file).unwrap_or(true);
    (!is_there(installed) && sqlite::is_there(&file_in(&own)).unwrap_or(false)).then_some(own)
}

fn find_database(file: PathBuf) -> Result<(), MemoryCliError> {
    match sqlite::is_there(&file) {
        Ok(true) => Ok(()),
        Ok(false) => Err(MemoryCliError::NoDatabase(file)),
        Err(source) => Err(MemoryCliError::Unreadable { path: file, source }),
    }
}

/// What a daemon of this state directory keeps memories in. Nothing is removed for its age, whatever configuration was
/// found.
fn open_store(config: &Config, overrides: &DaemonOverrides) -> Result<Arc<dyn Store>, CliError> {
    if let Some(options) = database_options(config, overrides).map_err(DaemonError::from)? {
        let options = PostgresOptions { retention: None, ..options };
        return Ok(Arc::new(Postgres::start(options, Box::new(|_, _| ())).map_err(DaemonError::from)?));
    }
    let file = sqlite::Options::file(file_in(&config.state_dir));
    let options = sqlite::Options { settings: config.store.clone(), is_pruned: false, ..file };
    Ok(Arc::new(Sqlite::start(options, Box::new(|_, _| ())).map_err(CliError::Runtime)?))
}

/// Among daemons that share a database it was one for a moment, and is not to be missed.
impl Drop for MemoryDoor {
    fn drop(&mut self) {
        if let Way::Files(engine, _) = &self.way {
            // It waits for the database, which a thread of a runtime may not.
            thread::scope(|scope| {
                let _ = Builder::new().spawn_scoped(scope, || engine.store().take_leave());
            });
        }
    }
}

impl MemoryDoor {
    /// The daemon that is named, or runs: on the state directory, where the environment names one. Else the database.
    pub(super) async fn open(
        daemon: &DaemonArgs,
        state: Option<&Path>,
        tenant: Option<&str>,
        mode: DatabaseMode,
    ) -> Result<Self, CliError> {
        let tenant = tenant.map(str::to_owned);
        let is_files = daemon.gives_way_to(state.is_some(), &["--state-dir"]);
        let client = if is_files {
            // A flag means the files, whoever has them; a daemon may run on what the environment names.
            state.filter(|_| !is_flag("--state-dir")).map(|state| Client::socket(&admin_socket_of(state)))
        } else {
            Some(daemon.client()?)
        };
        if let Some(client) = client {
            match client.send("GET", "/live", None).await {
                Err(ClientError::Connect { .. }) if is_files || !daemon.is_explicit() => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(Self { way: Way::Daemon(client), tenant }),
            }
        }
        let overrides = overrides(state);
        let mut config = Config::load(&named(), &overrides)?;
        let is_files = database_options(&config, &overrides).map_err(DaemonError::from)?.is_none();
        // A service's state is made by the service, and by others only where it is named.
        let is_guess = state.is_none() && is_installed(&config.state_dir);
        if is_files
            && is_guess
            && let Some(own) = own_state_instead(&file_in(&config.state_dir))
        {
            config.state_dir = own;
        } else if is_files && (is_guess || mode == DatabaseMode::Existing) {
            find_database(file_in(&config.state_dir))?;
        }
        let lock = lock_state(&config.state_dir).map_err(not_ours)?;
        let engine = Engine::on(open_store(&config, &overrides)?);
        Ok(Self { way: Way::Files(Box::new(engine), Box::new(lock)), tenant })
    }

    fn tenant(&self) -> &str {
        self.tenant.as_deref().unwrap_or(DEFAULT_TENANT)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        client: &Client,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, ClientError> {
        let mut path = path.to_owned();
        if let Some(tenant) = &self.tenant {
            let separator = if path.contains('?') { '&' } else { '?' };
            path.push_str(&format!("{separator}tenant={}", encode(tenant)));
        }
        client.ask(method, &path, body.map(|body| body.to_string().into())).await
    }

    pub(super) async fn remember(&self, kind: Kind, body: Value) -> Result<MemoryAnswer, CliError> {
        match &self.way {
            Way::Daemon(client) => {
                let path = format!("/v1/memories/{}", kind.plural());
                Ok(self.ask(client, "POST", &path, Some(&body)).await?)
            }
            Way::Files(engine, _) => {
                let (content, metadata) = read_addition(kind, body.into()).map_err(RecallError::Faulty)?;
                Ok(engine.remember(self.tenant(), content, &metadata, None).await?.0.into())
            }
        }
    }

    /// Of one kind, or of all.
    pub(super) async fn recall(&self, kind: Option<Kind>, body: Value) -> Result<SearchAnswer, CliError> {
        match &self.way {
            Way::Daemon(client) => {
                let path = match kind {
                    Some(kind) => format!("/v1/memories/{}/search", kind.plural()),
                    None => "/v1/memories/search".to_owned(),
                };
                Ok(self.ask(client, "POST", &path, Some(&body)).await?)
            }
            Way::Files(engine, _) => {
                let recall = decode_with(body.into(), |node, at| Recall::read(kind, node, at));
                let recall = recall.map_err(RecallError::Faulty)?;
                let page = engine.recall(self.tenant(), &recall).await?;
                let memories = page.memories.into_iter().map(|found| MemoryAnswer::found(found, recall.explain));
                Ok(SearchAnswer { memories: memories.collect(), total: page.total, next_cursor: page.next_cursor })
            }
        }
    }

    pub(super) async fn export(&self, cursor: &str) -> Result<ExportAnswer, CliError> {
        match &self.way {
            Way::Daemon(client) => {
                let path = format!("/-/memories/export?limit={PAGE}&cursor={}", encode(cursor));
                Ok(self.ask(client, "GET", &path, None).await?)
            }
            Way::Files(engine, _) => {
                let page = engine.export_memories(self.tenant(), cursor, PAGE).await?;
                let next_cursor = page.last().filter(|_| page.len() == PAGE).map(|(memory, _)| memory.id.clone());
                Ok(ExportAnswer { items: page.into_iter().map(ArchivedMemory::from).collect(), next_cursor })
            }
        }
    }

    pub(super) async fn import(&self, memories: Vec<Value>) -> Result<u64, CliError> {
        let body = serde_json::json!({"memories": memories});
        match &self.way {
            Way::Daemon(client) => {
                let answer: ImportAnswer = self.ask(client, "POST", "/-/memories/import", Some(&body)).await?;
                Ok(answer.imported)
            }
            Way::Files(engine, _) => {
                let ImportBody { memories } = decode(body.into()).map_err(RecallError::Faulty)?;
                Ok(engine.import_memories(self.tenant(), memories).await?)
            }
        }
    }

    pub(super) async fn purge(&self, body: Value) -> Result<u64, CliError> {
        match &self.way {
            Way::Daemon(client) => {
                let client = client.patient(PURGE);
                let answer: PurgeAnswer = self.ask(&client, "POST", "/-/memories/purge", Some(&body)).await?;
                Ok(answer.purged)
            }
            Way::Files(engine, _) => match decode(body.into()).map_err(RecallError::Faulty)? {
                PurgeBody::User(user) => Ok(engine.forget_user(self.tenant(), &user).await?),
                PurgeBody::All => Ok(engine.forget_everybody(self.tenant()).await?),
                PurgeBody::Memories(which) => Ok(engine.purge_memories(self.tenant(), which).await?),
            },
        }
    }
}

/// A daemon that has the directory and does not answer where it is looked for can be asked where it is.
fn not_ours(error: StateError) -> CliError {
    match error {
        StateError::InUse { .. } => MemoryCliError::InUse(error).into(),
        StateError::Unusable { .. } => DaemonError::from(error).into(),
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

impl From<RecallError> for CliError {
    fn from(error: RecallError) -> Self {
        Self::Memory(MemoryCliError::Engine(error))
    }
}
