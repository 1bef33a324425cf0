//! `almanacd migrate`: brings the schema of the database that several daemons share up to date, copies a machine's own
//! database there, or what is there to a machine.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::calibrate::bar;
use super::database_args::DatabaseArgs;
use super::output::{Output, counted};
use super::{CliError, Exit, block_on};
use crate::config::DATABASE_URL;
use crate::daemon::{StateError, StateLock, lock_state};
use crate::store::postgres::migrations::{self, SchemaChange};
use crate::store::postgres::moving::{CopiedHost, MoveError, Moved, RowsMoved, move_to};
use crate::store::postgres::moving_back::{MoveBackError, move_back};
use crate::store::postgres::spool::{SpoolError, left_in};
use crate::store::sqlite::{self, file_in};
use crate::store::{PostgresOptions, Settings, Sqlite, Store};

/// Rows that cannot be copied, as far as they are listed.
const SHOWN: usize = 50;

#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    /// Copy what this database has: `sqlite:///DIRECTORY` for that of a state directory, as often as you like, even
    /// while a daemon works on it; `postgres://…`, once all daemons are stopped, to `--to sqlite:///DIRECTORY`
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// The host that what was learnt is copied for, also if an earlier copy named another [default: `store.host`]
    #[arg(long, value_name = "HOST", requires = "from")]
    host: Option<String>,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// A database was not copied.
#[derive(Debug, thiserror::Error)]
pub(super) enum MigrateCliError {
    #[error("`{0}` names no database to copy; write `sqlite:///DIRECTORY`")]
    From(String),
    #[error("the database is not copied")]
    Move(#[source] MoveError),
    #[error("`{0}` is where it is copied from; write `--to sqlite:///DIRECTORY` for a state directory")]
    To(String),
    #[error("the database is not copied")]
    Back(#[source] MoveBackError),
    #[error("{} has {records} that the shared database lacks; send them first: almanacd spool forward FILE",
        file.display())]
    Spool { file: PathBuf, records: String },
    #[error("the spools of the state directory cannot be read")]
    Spools(#[source] SpoolError),
    #[error("the database cannot be brought up to date: {0}")]
    Unusable(String),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("`--host` is for a copy to the shared database; all of it becomes this machine's")]
    Host,
}

impl MigrateCliError {
    /// Is it for the operator to mend, and waiting does not help?
    pub(super) fn is_configuration(&self) -> bool {
        match self {
            Self::Move(MoveError::OtherHost { .. }) => true,
            Self::Move(MoveError::Database(fault)) | Self::Back(MoveBackError::Database(fault)) => fault.is_setting(),
            _ => false,
        }
    }

    pub(super) fn is_usage(&self) -> bool {
        matches!(self, Self::From(_) | Self::To(_) | Self::Host)
    }
}

pub(super) fn run(args: &MigrateArgs, output: &mut Output) -> Result<Exit, CliError> {
    match &args.from {
        Some(from) if from.starts_with("postgres") && args.host.is_some() => Err(MigrateCliError::Host.into()),
        Some(from) if from.starts_with("postgres") => copy_back(from, &args.database, output),
        Some(from) => {
            let file = file_of(from).ok_or_else(|| MigrateCliError::From(from.clone()))?;
            let (config, options) = args.database.options()?;
            let (name, is_chosen) = (args.host.as_deref().unwrap_or(&options.host), args.host.is_some());
            copy(&file, config.store, &options, CopiedHost { name, is_chosen }, output)
        }
        None => bring_up_to_date(&args.database.options()?.1, output),
    }
}

fn bring_up_to_date(options: &PostgresOptions, output: &mut Output) -> Result<Exit, CliError> {
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

/// The database's file; whatever else is named is a state directory.
fn file_of(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite://").filter(|path| !path.is_empty()).map(PathBuf::from)?;
    Some(if path.extension().is_some_and(|extension| extension == "db") { path } else { file_in(&path) })
}

fn copy_back(from: &str, database: &DatabaseArgs, output: &mut Output) -> Result<Exit, CliError> {
    let to = database.to.clone().unwrap_or_default();
    let path = file_of(&to).ok_or_else(|| MigrateCliError::To(from.to_owned()))?;
    let (config, options) = database.at(from)?;
    let directory = path.parent().unwrap_or_else(|| Path::new(""));
    let _lock = lock_state(directory).map_err(MigrateCliError::from)?;
    for left in left_in(directory).map_err(MigrateCliError::Spools)? {
        if !left.records.is_empty() || left.damaged_at.is_some() {
            let records = match left.records.len() {
                0 => "damaged records".to_owned(),
                count => counted(count as u64, "record"),
            };
            return Err(MigrateCliError::Spool { file: left.path().to_owned(), records }.into());
        }
    }
    let mut say = |done, all| output.progress(&bar(done as usize, all as usize, "rows"));
    let moved = block_on(async {
        let moved = move_back(&options.address, options.migration, &path, config.store, &mut say).await;
        moved.map_err(MigrateCliError::Back)
    });
    output.progress("");
    let moved = moved?;
    let said = format!("all of it is in {}; start the daemon without {DATABASE_URL} and store.url", path.display());
    print(&moved, true, &said, output);
    Ok(if moved.is_complete() { Exit::Success } else { Exit::Failure })
}

fn copy(
    path: &Path,
    settings: Settings,
    options: &PostgresOptions,
    host: CopiedHost<'_>,
    output: &mut Output,
) -> Result<Exit, CliError> {
    let pass = Pass::of(path)?;
    if let Pass::Last(_) = pass {
        take_journal_over(path, settings)?;
    }
    let mut say = |done, all| output.progress(&bar(done as usize, all as usize, "rows"));
    let moved = block_on(async {
        let moved = move_to(path, &options.address, options.migration, host, &mut say).await;
        moved.map_err(MigrateCliError::Move)
    });
    output.progress("");
    let moved = moved?;
    let by = if host.is_chosen { "--host" } else { "store.host of the configuration" };
    output.note(&format!("what was learnt is that of the host {} ({by})", host.name));
    let (is_last, said) = match pass {
        Pass::Last(_) => {
            (true, format!("all of it is there; start the daemon with that URL in {DATABASE_URL} or store.url"))
        }
        Pass::Beside => {
            let said = "a daemon or another command works on the database: stop it, and repeat this for what it does \
                until then";
            (false, said.to_owned())
        }
        Pass::Unwritable => {
            (false, "what only the journal has is not copied: stop the daemon, and repeat this as its user".to_owned())
        }
    };
    print(&moved, is_last, &said, output);
    Ok(if !is_last || moved.is_complete() { Exit::Success } else { Exit::Failure })
}

/// How the state directory is read.
enum Pass {
    /// Nobody works on it meanwhile.
    Last(#[expect(dead_code, reason = "it is held")] StateLock),
    /// A daemon works on it, and there will be more to copy.
    Beside,
    /// Only its owner can keep it.
    Unwritable,
}

impl Pass {
    fn of(path: &Path) -> Result<Self, MigrateCliError> {
        // Nobody works on a file that is not there, and no directory is made for it.
        if !sqlite::is_there(path).unwrap_or_default() {
            return Ok(Self::Beside);
        }
        match lock_state(path.parent().unwrap_or_else(|| Path::new(""))) {
            Ok(Some(lock)) => Ok(Self::Last(lock)),
            Ok(None) => Ok(Self::Unwritable),
            Err(StateError::InUse { .. }) => Ok(Self::Beside),
            Err(error) => Err(error.into()),
        }
    }
}

/// Has the database take over what only its journal has, with its schema brought up to date.
fn take_journal_over(path: &Path, settings: Settings) -> Result<(), CliError> {
    let options = sqlite::Options { settings, is_pruned: false, ..sqlite::Options::file(path) };
    let store = Sqlite::start(options, Box::new(|_, _| ())).map_err(CliError::Runtime)?;
    store.trouble().map_or(Ok(()), |trouble| Err(MigrateCliError::Unusable(trouble).into()))
}

/// `said` is what to do then, if all is there or it is not the last copy.
fn print(moved: &Moved, is_last: bool, said: &str, output: &mut Output) {
    let sorts = [
        ("records", moved.records),
        ("memories", moved.memories),
        ("sessions", moved.sessions),
        ("choices", moved.choices),
    ];
    let rows = |rows: RowsMoved| json!({"here": rows.here, "there": rows.there, "written": rows.written});
    let mut value: Value = sorts.iter().map(|(name, moved)| ((*name).to_owned(), rows(*moved))).collect();
    value["removed_there"] = moved.removed_there.into();
    value["refused"] = json!(moved.refused);
    value["complete"] = (is_last && moved.is_complete()).into();
    output.show(&value, |out| {
        for (name, RowsMoved { here, there, written }) in sorts {
            out.line(&format!("{name:<9}{here:>12} here{there:>12} there{written:>12} written now"));
        }
        if moved.removed_there > 0 {
            out.line(&format!("{} were removed there since, and stay so", moved.removed_there));
        }
        for refused in moved.refused.iter().take(SHOWN) {
            out.line(&format!("not copied: {refused}"));
        }
        if moved.refused.len() > SHOWN {
            let more = counted((moved.refused.len() - SHOWN) as u64, "other");
            out.line(&format!("not copied: {more}"));
        }
        out.line(if is_last && !moved.is_complete() {
            "not all of it is there: repeat this before a daemon works on it"
        } else {
            said
        });
    });
}
