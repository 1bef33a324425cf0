//! Where the database is, as its URL says: `postgres://USER@HOST:PORT,HOST:PORT/DATABASE?KEY=VALUE`.
//!
//! It is read by our own rules, since what the client library knows of TLS is less than what is needed here: either the
//! server proves who it is, or nothing is encrypted. A form in between would look safe and not be.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::strict::FromNode;

/// Where the server listens if nothing is said.
const PORT: u16 = 5432;

/// How long one server is waited for if nothing is said.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What a URL may say behind its `?`.
const KEYS: &str =
    "connect_timeout, dbname, host, passfile, password, port, sslmode, sslrootcert, target_session_attrs, user";

/// A URL that names no database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(
        "the URL of the database is empty; unset ALMANAC_DATABASE_URL, or leave the flag or `store.url` out, where \
         none is meant"
    )]
    Empty,
    #[error("the URL of the database does not begin with `postgres://`")]
    Scheme,
    #[error("the URL of the database is not written right at its {0}")]
    Syntax(&'static str),
    #[error("the URL of the database names no user; write `postgres://USER@HOST/DATABASE`")]
    NoUser,
    #[error("the URL of the database says {ports} ports for {hosts} hosts; say one for all, or one for each")]
    Ports { ports: usize, hosts: usize },
    #[error("the URL of the database says `{0}`, which is not known here; known are {KEYS}")]
    UnknownKey(String),
    #[error("the URL of the database says `options`, which poolers do not pass on; set it for the role instead")]
    Options,
    #[error(
        "`sslmode={0}` would be encrypted without knowing by whom; say `verify-full`, or `disable` within one machine \
         or a network that is trusted"
    )]
    HalfTls(String),
    #[error("the URL of the database says `{key}={value}`; it may be {may_be}")]
    Value { key: &'static str, value: String, may_be: &'static str },
    #[error(
        "a password on the command line can be read by everybody on this machine; put it into a file that `PGPASSFILE` \
         or `passfile` names"
    )]
    ExposedPassword,
}

/// Where a URL was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In the configuration or the environment, which others need not be able to read.
    Configuration,
    /// Where everybody on the machine reads it.
    CommandLine,
}

/// One place where the server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerPlace {
    /// A name or an address, without brackets.
    Tcp(String),
    /// The directory of its socket.
    Unix(PathBuf),
}

impl ServerPlace {
    fn of(text: String) -> Self {
        if text.starts_with('/') { Self::Unix(text.into()) } else { Self::Tcp(text) }
    }

    /// Is it reached without a network?
    fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
        }
    }
}

/// How the server proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// Not at all, and nothing is encrypted.
    Disable,
    /// By a certificate for its name that a known authority signed.
    VerifyFull,
}

/// A secret: it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// Where the database is, and who asks.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(try_from = "String")]
pub struct DatabaseAddress {
    /// The servers in the order in which they are tried; the first that may be written is taken.
    pub hosts: Vec<(ServerPlace, u16)>,
    pub user: String,
    pub password: Option<Password>,
    /// A file in the form of PostgreSQL's own `.pgpass`.
    pub password_file: Option<PathBuf>,
    pub database: String,
    /// Nothing: without a network none is needed, over one it is.
    ssl_mode: Option<SslMode>,
    /// The authorities that may sign for the server; those of the system if none is named.
    pub root_certificates: Option<PathBuf>,
    /// How long each host is waited for.
    pub connect_timeout: Duration,
    /// Must the server be one that may be written?
    pub must_be_writable: bool,
}

impl DatabaseAddress {
    /// Reads a URL.
    ///
    /// # Errors
    /// If it names no database, or asks for something that is not done here; the message never has a password.
    pub fn parse(url: &str, origin: Origin) -> Result<Self, AddressError> {
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
        let rest = rest.ok_or(if url.is_empty() { AddressError::Empty } else { AddressError::Scheme })?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let (who, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match who.split_once(':') {
            Some((user, password)) => (user, Some(Password(decode(password, "password")?))),
            None => (who, None),
        };
        let mut said = Said {
            hosts: Vec::new(),
            ports: Vec::new(),
            user: decode(user, "user")?,
            database: decode(database, "database")?,
        };
        said.read_hosts(hosts)?;
        let mut address = Self {
            hosts: Vec::new(),
            user: String::new(),
            password,
            password_file: None,
            database: String::new(),
            ssl_mode: None,
            root_certificates: None,
            connect_timeout: CONNECT_TIMEOUT,
            must_be_writable: true,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or(AddressError::Syntax("parameters"))?;
            address.say(&mut said, key, decode(value, "parameters")?)?;
        }
        if address.password.is_some() && origin == Origin::CommandLine {
            return Err(AddressError::ExposedPassword);
        }
        address.hosts = said.places()?;
        address.user = said.user;
        address.database = if said.database.is_empty() { address.user.clone() } else { said.database };
        if address.user.is_empty() { Err(AddressError::NoUser) } else { Ok(address) }
    }

    /// Takes a parameter of the URL.
    fn say(&mut self, said: &mut Said, key: &str, value: String) -> Result<(), AddressError> {
        let wrong = |key, value, may_be| Err(AddressError::Value { key, value, may_be });
        match key {
            "host" => said.hosts = value.split(',').map(str::to_owned).collect(),
            "port" => {
                let Ok(ports) = value.split(',').map(port).collect() else {
                    return wrong("port", value, "1 to 65535");
                };
                said.ports = ports;
            }
            "user" => said.user = value,
            "dbname" => said.database = value,
            "password" => self.password = Some(Password(value)),
            "passfile" => self.password_file = Some(value.into()),
            "sslrootcert" => self.root_certificates = Some(value).filter(|file| file != "system").map(PathBuf::from),
            "sslmode" => {
                self.ssl_mode = Some(match value.as_str() {
                    "disable" => SslMode::Disable,
                    "verify-full" => SslMode::VerifyFull,
                    "allow" | "prefer" | "require" | "verify-ca" => return Err(AddressError::HalfTls(value)),
                    _ => return wrong("sslmode", value, "disable or verify-full"),
                });
            }
            "target_session_attrs" => match value.as_str() {
                "read-write" | "primary" => self.must_be_writable = true,
                "any" => self.must_be_writable = false,
                _ => return wrong("target_session_attrs", value, "read-write, primary or any"),
            },
            "connect_timeout" => match value.parse() {
                Ok(seconds @ 1..=600) => self.connect_timeout = Duration::from_secs(seconds),
                _ => return wrong("connect_timeout", value, "1 to 600 seconds"),
            },
            "options" => return Err(AddressError::Options),
            _ => return Err(AddressError::UnknownKey(key.to_owned())),
        }
        Ok(())
    }

    /// With the file of passwords that the environment names, unless the URL names one.
    #[must_use]
    pub fn or_password_file(self, file: Option<PathBuf>) -> Self {
        Self { password_file: self.password_file.or(file), ..self }
    }

    /// How a host proves who it is: beyond this machine by its certificate, unless something else was said. A socket
    /// is the file system's to protect.
    pub fn ssl_mode_of(&self, host: &ServerPlace) -> SslMode {
        match (host, self.ssl_mode) {
            (ServerPlace::Unix(_), _) => SslMode::Disable,
            (_, Some(mode)) => mode,
            (host, None) if host.is_local() => SslMode::Disable,
            (_, None) => SslMode::VerifyFull,
        }
    }
}

impl TryFrom<String> for DatabaseAddress {
    type Error = AddressError;

    fn try_from(url: String) -> Result<Self, AddressError> {
        Self::parse(&url, Origin::Configuration)
    }
}

/// What a URL said, before it is put together.
struct Said {
    hosts: Vec<String>,
    ports: Vec<u16>,
    user: String,
    database: String,
}

impl Said {
    /// Reads `host:port,host:port`.
    fn read_hosts(&mut self, text: &str) -> Result<(), AddressError> {
        if text.is_empty() {
            return Ok(());
        }
        for place in text.split(',') {
            let (host, number) = match place.strip_prefix('[') {
                Some(bracketed) => {
                    let (host, rest) = bracketed.split_once(']').ok_or(AddressError::Syntax("hosts"))?;
                    let is_address = host.parse::<std::net::Ipv6Addr>().is_ok();
                    if !is_address || !(rest.is_empty() || rest.starts_with(':')) {
                        return Err(AddressError::Syntax("hosts"));
                    }
                    (host, rest.strip_prefix(':'))
                }
                None => match place.split_once(':') {
                    Some((host, number)) => (host, Some(number)),
                    None => (place, None),
                },
            };
            let host = decode(host, "hosts")?;
            if host.is_empty() {
                return Err(AddressError::Syntax("hosts"));
            }
            self.hosts.push(host);
            self.ports.push(match number {
                Some(number) => port(number).map_err(|()| AddressError::Syntax("hosts"))?,
                None => PORT,
            });
        }
        Ok(())
    }

    /// Each host with its port.
    fn places(&self) -> Result<Vec<(ServerPlace, u16)>, AddressError> {
        let default = ["localhost".to_owned()];
        let hosts: &[String] = if self.hosts.is_empty() { &default } else { &self.hosts };
        if hosts.iter().any(String::is_empty) {
            return Err(AddressError::Syntax("hosts"));
        }
        let port_of = |place: usize| match self.ports.as_slice() {
            [] => Some(PORT),
            [only] => Some(*only),
            each if each.len() == hosts.len() => each.get(place).copied(),
            _ => None,
        };
        let unequal = AddressError::Ports { ports: self.ports.len(), hosts: hosts.len() };
        let places =
            hosts.iter().enumerate().map(|(place, host)| Some((ServerPlace::of(host.clone()), port_of(place)?)));
        places.collect::<Option<Vec<_>>>().ok_or(unequal)
    }
}

fn port(text: &str) -> Result<u16, ()> {
    text.parse().ok().filter(|&port| port != 0 && text.bytes().all(|byte| byte.is_ascii_digit())).ok_or(())
}

/// No byte of it is zero, which no name of PostgreSQL has.
fn decode(text: &str, place: &'static str) -> Result<String, AddressError> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| AddressError::Syntax(place))?;
    if decoded.contains('\0') { Err(AddressError::Syntax(place)) } else { Ok(decoded.into_owned()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(url: &str) -> Result<DatabaseAddress, AddressError> {
        DatabaseAddress::parse(url, Origin::Configuration)
    }

    fn tcp(name: &str, port: u16) -> (ServerPlace, u16) {
        (ServerPlace::Tcp(name.into()), port)
    }

    #[test]
    fn places_are_read() {
        let check = |url: &str, hosts: &[(ServerPlace, u16)], user: &str, database: &str| {
            let address = read(url).unwrap();
            assert_eq!((&*address.hosts, &*address.user, &*address.database), (hosts, user, database), "{url}");
        };
        check("postgres://u@h", &[tcp("h", 5432)], "u", "u");
        check("postgresql://u@h/d", &[tcp("h", 5432)], "u", "d");
        check("postgres://u@/d", &[tcp("localhost", 5432)], "u", "d");
        check("postgres://u@a:1,b,[::1]:3/d", &[tcp("a", 1), tcp("b", 5432), tcp("::1", 3)], "u", "d");
        check("postgres://a%40b:x%2Fy@h/d%20e", &[tcp("h", 5432)], "a@b", "d e");
        let socket = (ServerPlace::Unix("/run/postgresql".into()), 5433);
        check("postgres://%2Frun%2Fpostgresql:5433/d?user=u", std::slice::from_ref(&socket), "u", "d");
        check("postgres:///d?host=/run/postgresql&port=5433&user=u", std::slice::from_ref(&socket), "u", "d");
        check("postgres://?host=a,b&port=7&user=u&dbname=d", &[tcp("a", 7), tcp("b", 7)], "u", "d");
    }

    #[test]
    fn beyond_this_machine_the_server_proves_who_it_is() {
        let check = |url: &str, expected: &[SslMode]| {
            let address = read(url).unwrap();
            let modes: Vec<SslMode> = address.hosts.iter().map(|(host, _)| address.ssl_mode_of(host)).collect();
            assert_eq!(modes, expected, "{url}");
        };
        check(
            "postgres://u@127.0.0.1,localhost,[::1],db.example,10.0.0.1",
            &[SslMode::Disable, SslMode::Disable, SslMode::Disable, SslMode::VerifyFull, SslMode::VerifyFull],
        );
        check("postgres://u@%2Frun,a?sslmode=verify-full", &[SslMode::Disable, SslMode::VerifyFull]);
        check("postgres://u@localhost?sslmode=verify-full", &[SslMode::VerifyFull]);
        check("postgres://u@db.example?sslmode=disable", &[SslMode::Disable]);
    }

    #[test]
    fn the_rest_is_read() {
        let url = "postgres://u@h?passfile=/p&sslrootcert=/c&target_session_attrs=any&connect_timeout=7";
        let address = read(url).unwrap();
        assert_eq!(address.password_file, Some("/p".into()));
        assert_eq!(address.root_certificates, Some("/c".into()));
        assert_eq!((address.must_be_writable, address.connect_timeout), (false, Duration::from_secs(7)));
        assert_eq!(read("postgres://u@h?sslrootcert=system").unwrap().root_certificates, None);
        assert!(read("postgres://u@h").unwrap().must_be_writable);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let check = |url: &str, expected: &str| {
            let error = read(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        };
        check("mysql://u:secret@h", "does not begin");
        check("postgres://h/d", "no user");
        check("postgres://u:secret@h:0", "hosts");
        check("postgres://u:secret@h:+1", "hosts");
        check("postgres://u@a,,b", "hosts");
        check("postgres://u@[::1", "hosts");
        check("postgres://u@[h]", "hosts");
        check("postgres://u%00@h", "user");
        check("postgres://u:secret%FF@h", "password");
        check("postgres://u@h?sslmode", "parameters");
        check("postgres://u@a,b,c?port=1,2", "3 hosts");
        check("postgres://u@h?port=0", "1 to 65535");
        check("postgres://u:secret@h?sslmode=prefer", "verify-full");
        check("postgres://u:secret@h?sslmode=require", "verify-full");
        check("postgres://u@h?sslmode=on", "disable or verify-full");
        check("postgres://u@h?target_session_attrs=standby", "read-write");
        check("postgres://u@h?connect_timeout=0", "1 to 600");
        check("postgres://u@h?options=-c%20x", "poolers");
        check("postgres://u:secret@h?sslcert=x", "not known");
    }

    #[test]
    fn a_password_is_shown_nowhere() {
        for url in ["postgres://u:secret@h", "postgres://u@h?password=secret"] {
            let address = read(url).unwrap();
            assert_eq!(address.password.as_ref().map(Password::expose), Some("secret"));
            assert!(!format!("{address:?}").contains("secret"));
            assert_eq!(DatabaseAddress::parse(url, Origin::CommandLine), Err(AddressError::ExposedPassword));
        }
        assert!(DatabaseAddress::parse("postgres://u@h", Origin::CommandLine).is_ok());
    }

    proptest! {
        /// Whatever is written, it is an address with hosts and a user, or it is said what is wrong, without a
        /// password.
        #[test]
        fn any_text_is_read_or_refused(rest in "[a-c:@/,?&=%0-9\\[\\]]{0,24}") {
            match read(&format!("postgres://u:sesame{rest}")) {
                Ok(address) => prop_assert!(!address.hosts.is_empty() && !address.user.is_empty()),
                Err(AddressError::UnknownKey(_) | AddressError::Value { .. } | AddressError::HalfTls(_)) => {}
                Err(error) => prop_assert!(!error.to_string().contains("sesame")),
            }
        }
    }
}
