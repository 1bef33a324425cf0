//! A connection to the server that may be written.
//!
//! Every statement goes unnamed and with its types, in one round trip, and leaves no state behind, so that a pooler may
//! hand each transaction to another connection. Who gets no answer in time throws the connection away: what was asked
//! goes on at the server, and its answer is lost.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::SslMode as ClientSslMode;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Row};

use super::address::{DatabaseAddress, ServerPlace, SslMode};
use super::fault::DatabaseFault;
use super::password_file::password_for;
use super::tls::VerifiedTls;

/// The first version that has all that is used here.
const OLDEST: i32 = 140_000;

/// How long the kernel keeps sending what the other side does not acknowledge.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// How long the end of a statement that is to be given up by the server itself is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A value of a statement, with its type.
pub(super) type StatementValue<'v> = (&'v (dyn ToSql + Sync), Type);

/// An open connection.
#[derive(Debug)]
pub struct DatabaseSession {
    client: Client,
    driver: JoinHandle<()>,
    /// What the server warned of last, since somebody looked.
    warning: Arc<ArcSwapOption<String>>,
    server: String,
}

impl DatabaseSession {
    /// Connects to the first host that may be written.
    ///
    /// # Errors
    /// What the last host said, or the first that the operator has to mend something for.
    pub async fn open(address: &DatabaseAddress) -> Result<Self, DatabaseFault> {
        let mut last = None;
        for (host, port) in &address.hosts {
            let server = match host {
                ServerPlace::Tcp(name) => format!("{name}:{port}"),
                ServerPlace::Unix(directory) => format!("{}/.s.PGSQL.{port}", directory.display()),
            };
            let opening = async {
                let mut session = Self::connect(address, host, *port, server.clone()).await?;
                session.look(address.must_be_writable).await.map(|()| session)
            };
            let late = || {
                let reason = format!("no answer within {}", humantime::format_duration(address.connect_timeout));
                DatabaseFault::Unreachable { server: server.clone(), reason }
            };
            match timeout(address.connect_timeout, opening).await.unwrap_or_else(|_| Err(late())) {
                Ok(session) => return Ok(session),
                Err(fault) if last.as_ref().is_some_and(DatabaseFault::is_setting) && !fault.is_setting() => {}
                Err(fault) => last = Some(fault),
            }
        }
        let none = || DatabaseFault::Unreachable { server: String::new(), reason: "no host is named".to_owned() };
        Err(last.unwrap_or_else(none))
    }

    async fn connect(
        address: &DatabaseAddress,
        host: &ServerPlace,
        port: u16,
        server: String,
    ) -> Result<Self, DatabaseFault> {
        let mut config = Config::new();
        config.user(&address.user).dbname(&address.database).port(port).application_name("almanacd");
        config.tcp_user_timeout(UNACKNOWLEDGED).keepalives_idle(UNACKNOWLEDGED);
        match host {
            ServerPlace::Tcp(name) => config.host(name),
            ServerPlace::Unix(directory) => config.host_path(directory),
        };
        if let Some(password) = password_for(address, host, port)? {
            config.password(password.expose());
        }
        let failed = |error: tokio_postgres::Error| DatabaseFault::of(&error, &server);
        match address.ssl_mode_of(host) {
            SslMode::Disable => {
                config.ssl_mode(ClientSslMode::Disable);
                let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
                Ok(Self::driven(client, connection, server))
            }
            SslMode::VerifyFull => {
                config.ssl_mode(ClientSslMode::Require);
                let (client, connection) = config.connect(VerifiedTls::of(address)?).await.map_err(failed)?;
                Ok(Self::driven(client, connection, server))
            }
        }
    }

    /// The client's connection, moved on by a task of its own.
    fn driven<S, T>(client: Client, mut connection: Connection<S, T>, server: String) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let warning: Arc<ArcSwapOption<String>> = Arc::default();
        let warned = Arc::clone(&warning);
        let driver = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notice(notice) = message
                    && notice.severity() == "WARNING"
                {
                    // It stands before the answer that it belongs to.
                    warned.store(Some(Arc::new(notice.message().to_owned())));
                }
            }
        });
        Self { client, driver, warning, server }
    }

    /// Looks what the server is.
    async fn look(&mut self, must_be_writable: bool) -> Result<(), DatabaseFault> {
        let query = "SELECT current_setting('server_version_num')::int4, current_setting('server_version'),
                            current_setting('transaction_read_only') = 'on', current_setting('server_encoding')";
        let row = self.query_one(query, &[]).await?;
        if row.get::<_, i32>(0) < OLDEST {
            return Err(DatabaseFault::TooOld { found: row.get(1) });
        }
        let encoding: String = row.get(3);
        if encoding != "UTF8" {
            return Err(DatabaseFault::Encoding(encoding));
        }
        if must_be_writable && row.get::<_, bool>(2) {
            return Err(DatabaseFault::ReadOnly { server: self.server.clone() });
        }
        Ok(())
    }

    /// The rows that a statement answers.
    pub(super) async fn query(&self, sql: &str, values: &[StatementValue<'_>]) -> Result<Vec<Row>, DatabaseFault> {
        self.within(PATIENCE, self.client.query_typed(sql, values)).await
    }

    /// The rows that a statement answers which may take longer.
    pub(super) async fn query_within(
        &self,
        sql: &str,
        values: &[StatementValue<'_>],
        patience: Duration,
    ) -> Result<Vec<Row>, DatabaseFault> {
        self.within(patience, self.client.query_typed(sql, values)).await
    }

    /// The one row that it always answers.
    pub(super) async fn query_one(&self, sql: &str, values: &[StatementValue<'_>]) -> Result<Row, DatabaseFault> {
        self.within(PATIENCE, self.client.query_typed_one(sql, values)).await
    }

    /// Statements without values, one transaction unless they say otherwise.
    pub(super) async fn run(&self, sql: &str) -> Result<(), DatabaseFault> {
        self.within(PATIENCE, self.client.batch_execute(sql)).await
    }

    /// A statement that cannot share a transaction, given up after `patience`. No limit can be set beside it, where
    /// `SET LOCAL` has no effect, and one of the session would outlast it behind a pooler; so another connection has
    /// the server cancel it. The protocol's own request for that ends PgBouncer 1.18, and several poolers on one port
    /// do not know each other's.
    pub(super) async fn run_alone(
        &self,
        address: &DatabaseAddress,
        sql: &str,
        patience: Duration,
    ) -> Result<(), DatabaseFault> {
        let mut statement = pin!(self.client.batch_execute(sql));
        if let Ok(done) = timeout(patience, &mut statement).await {
            return done.map_err(|error| DatabaseFault::of(&error, &self.server));
        }
        let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
            WHERE query = $1 AND state = 'active' AND datname = current_database() AND usename = current_user";
        Self::open(address).await?.query(cancel, &[(&sql as _, Type::TEXT)]).await?;
        // What gave it up was in its way, not a limit of the server's.
        self.within(PATIENCE, statement).await.map_err(|fault| match fault {
            DatabaseFault::GivenUp(why) => DatabaseFault::Conflict(why),
            fault => fault,
        })
    }

    /// A statement that writes, which commits itself. Answered with a warning, it counts as lost.
    pub(super) async fn commit(
        &self,
        sql: &str,
        values: &[StatementValue<'_>],
        patience: Duration,
    ) -> Result<Vec<Row>, DatabaseFault> {
        self.warning.store(None);
        let rows = self.within(patience, self.client.query_typed(sql, values)).await?;
        match self.warning.swap(None) {
            Some(warning) => Err(DatabaseFault::NotReplicated(warning.to_string())),
            None => Ok(rows),
        }
    }

    /// Begins a transaction that promises what an acknowledgement does.
    pub(super) async fn begin(&self) -> Result<(), DatabaseFault> {
        self.warning.store(None);
        // Whoever is cut off in a transaction holds up others until the server notices.
        self.run(
            "BEGIN ISOLATION LEVEL READ COMMITTED;
             SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                 WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
                 set_config('idle_in_transaction_session_timeout', '15s', true)",
        )
        .await
    }

    /// Begins a transaction that reads one state of the database.
    pub(super) async fn begin_snapshot(&self) -> Result<(), DatabaseFault> {
        self.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    /// Ends it: all of it is kept, or nothing. Answered with a warning, it counts as lost.
    pub(super) async fn end(&self, is_kept: bool) -> Result<(), DatabaseFault> {
        self.run(if is_kept { "COMMIT" } else { "ROLLBACK" }).await?;
        match self.warning.swap(None).filter(|_| is_kept) {
            Some(warning) => Err(DatabaseFault::NotReplicated(warning.to_string())),
            None => Ok(()),
        }
    }

    async fn within<T>(
        &self,
        patience: Duration,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, DatabaseFault> {
        let answer = timeout(patience, answer).await.map_err(|_| DatabaseFault::Late(patience))?;
        answer.map_err(|error| DatabaseFault::of(&error, &self.server))
    }

    /// Has the connection ended?
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

impl Drop for DatabaseSession {
    /// A connection that nobody answers would stay open.
    fn drop(&mut self) {
        self.driver.abort();
    }
}

#[cfg(test)]
mod tests;
