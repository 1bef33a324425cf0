//! What can go wrong with a database server, told apart by what is to be done about it.

use std::time::Duration;
use std::{error, io};

use tokio_postgres::error::{DbError, SqlState};

use super::password_file::PasswordFileError;

/// Something the database did not do.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseFault {
    /// Nobody answers, or the connection ended: it may be back in a moment.
    #[error("the database server {server} cannot be reached: {reason}")]
    Unreachable { server: String, reason: String },
    /// What was asked may have been done all the same.
    #[error("the database server did not answer within {}", humantime::format_duration(whole_ms(*.0)))]
    Late(Duration),
    /// The answer to a commit is lost, and what became of it could not be found out.
    #[error(
        "it is not known whether this was done, since its commit was not answered ({0}); look before it is repeated"
    )]
    CommitUnanswered(String),
    /// Other records wait already, since the server did not take them.
    #[error("records wait for the database server: {0}")]
    Behind(String),
    /// The server would take what waits, and this machine cannot see to it.
    #[error("what waits on this machine cannot be sent from there: {0}")]
    Spool(String),
    #[error("the server {server} does not prove who it is: {reason}")]
    Untrusted { server: String, reason: String },
    #[error("the certificates {file} cannot be used: {reason}")]
    Certificates { file: String, reason: String },
    #[error(transparent)]
    PasswordFile(#[from] PasswordFileError),
    #[error("the database server refuses the user or the password: {0}")]
    Password(String),
    #[error("there is no such database: {0}; make it by `createdb`")]
    NoDatabase(String),
    #[error("PostgreSQL {found} is too old; 14 or later is needed")]
    TooOld { found: String },
    #[error("the database has the encoding {0}; make one by `createdb --encoding=UTF8 --template=template0`")]
    Encoding(String),
    #[error("the database was written by a newer almanacd (schema {found}, known up to {known}); start that one")]
    NewerSchema { found: i32, known: i32 },
    #[error(
        "the database has schema {found} of {known}; it is brought up to date at a start, unless `store.migrate` is \
         `never`: run `almanacd migrate`"
    )]
    OlderSchema { found: i32, known: i32 },
    #[error("the role may not do that: {0}; grant it, or name another user")]
    MayNot(String),
    /// A standby, or a server that was told to write nothing; another one may be written.
    #[error("the server {server} may only be read")]
    ReadOnly { server: String },
    #[error("the server's connections are used up: {0}")]
    ConnectionsUsedUp(String),
    #[error("the server has no room left: {0}")]
    Full(String),
    /// The same may succeed when it is tried again.
    #[error("another transaction was in the way: {0}")]
    Conflict(String),
    /// The same may succeed when it is tried again, or with a longer limit.
    #[error("the database server gave up what it was asked: {0}; see `statement_timeout` of the role and the database")]
    GivenUp(String),
    /// The commit may be lost with this server, although it was answered.
    #[error("the server did not wait for its standby: {0}")]
    NotReplicated(String),
    /// A record was refused for what it is (classes 22 and 23).
    #[error("the server refuses a record: {0}")]
    Record(String),
    #[error("an idempotency key of these records was used for another body")]
    KeyReused,
    #[error("there is no partition for this month")]
    NoPartition,
    #[error("the database server refuses ({code}): {message}")]
    Other { code: String, message: String },
}

/// Rounded, since a limit may be what is left of one.
fn whole_ms(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from((time + Duration::from_micros(500)).as_millis()).unwrap_or(u64::MAX))
}

impl DatabaseFault {
    /// Is it for the operator to mend before a start can succeed?
    pub fn is_setting(&self) -> bool {
        matches!(
            self,
            Self::Untrusted { .. }
                | Self::Certificates { .. }
                | Self::PasswordFile(_)
                | Self::Password(_)
                | Self::NoDatabase(_)
                | Self::TooOld { .. }
                | Self::Encoding(_)
                | Self::NewerSchema { .. }
                | Self::OlderSchema { .. }
                | Self::MayNot(_)
        )
    }

    /// Is it over with what was asked, so that nothing follows of the server?
    pub(super) fn is_of_moment(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::GivenUp(_))
    }

    /// May the connection be used for more? What it was asked last is known not to be done.
    pub fn keeps_session(&self) -> bool {
        match self {
            Self::Full(_)
            | Self::Conflict(_)
            | Self::GivenUp(_)
            | Self::Record(_)
            | Self::KeyReused
            | Self::NoPartition
            | Self::MayNot(_) => true,
            // What the server answered with a code that says nothing of the connection.
            Self::Other { code, .. } => !code.is_empty(),
            _ => false,
        }
    }

    /// May the same records be taken when they are sent again, with the same numbers? Else they themselves, or a
    /// setting, have to be changed.
    pub fn may_pass(&self) -> bool {
        !self.is_setting() && !matches!(self, Self::Record(_) | Self::KeyReused)
    }

    /// What an error of the client means, of this server.
    pub(super) fn of(error: &tokio_postgres::Error, server: &str) -> Self {
        match error.as_db_error() {
            Some(answer) => Self::answered(answer, server),
            None => Self::unanswered(error, server),
        }
    }

    fn unanswered(error: &tokio_postgres::Error, server: &str) -> Self {
        let reason = innermost(error);
        let server = server.to_owned();
        if error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>()).is_some_and(is_of_tls) {
            return Self::Untrusted { server, reason };
        }
        match error.to_string().as_str() {
            text if text.starts_with("invalid configuration") => {
                let text = "it asks for one, and none is given; name a file in the form of .pgpass by `passfile=` in \
                    the URL or by PGPASSFILE";
                Self::Password(text.into())
            }
            text if text.starts_with("error performing TLS handshake") => Self::Untrusted { server, reason },
            text if text.starts_with("error serializing") => Self::Record(reason),
            _ => Self::Unreachable { server, reason },
        }
    }

    fn answered(answer: &DbError, server: &str) -> Self {
        let (code, message) = (answer.code(), answer.message().to_owned());
        // A record that fits into no partition is refused like a check that has no name.
        let is_without_partition = *code == SqlState::CHECK_VIOLATION && answer.constraint().is_none();
        let is_of_key = *code == SqlState::NOT_NULL_VIOLATION && answer.table() == Some("call_keys");
        match code.code() {
            _ if is_without_partition => Self::NoPartition,
            _ if is_of_key => Self::KeyReused,
            "28P01" | "28000" => Self::Password(message),
            "3D000" => Self::NoDatabase(message),
            "42501" => Self::MayNot(message),
            "25006" => Self::ReadOnly { server: server.to_owned() },
            "53300" => Self::ConnectionsUsedUp(message),
            "53100" | "53200" => Self::Full(message),
            // Serialisation, deadlock, a lock that was waited for too long.
            "40001" | "40P01" | "55P03" => Self::Conflict(message),
            "57014" => Self::GivenUp(message),
            code if code.starts_with("08") || code.starts_with("57P") => {
                Self::Unreachable { server: server.to_owned(), reason: message }
            }
            // A text that is longer than an index takes is refused as going beyond a limit of the program.
            code if code.starts_with("22") || code.starts_with("23") || code == "54000" => Self::Record(message),
            code => Self::Other { code: code.to_owned(), message },
        }
    }
}

fn is_of_tls(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some()
}

/// What the first cause says.
fn innermost(error: &dyn error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_was_waited_is_said_in_whole_milliseconds() {
        let check = |nanoseconds: u64, expected: &str| {
            let said = DatabaseFault::Late(Duration::from_nanos(nanoseconds)).to_string();
            assert_eq!(said, format!("the database server did not answer within {expected}"));
        };
        check(299_997_486, "300ms");
        check(10_000_000_000, "10s");
        check(1_234_400_000, "1s 234ms");
    }
}
