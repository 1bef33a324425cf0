use std::fs;
use std::net::TcpListener;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};

use super::super::address::Origin;
use super::super::test_server::{Proxy, TestServer};
use super::*;

/// Everybody by a socket, by the network those who know their password; one user only if it is encrypted.
const RULES: &str = "local all all trust\nhostssl all safe 127.0.0.1/32 scram-sha-256\nhostnossl all safe 127.0.0.1/32 \
                     reject\nhost all all 127.0.0.1/32 scram-sha-256\n";

async fn fault(address: &DatabaseAddress) -> DatabaseFault {
    DatabaseSession::open(address).await.map(drop).unwrap_err()
}

fn at(url: &str) -> DatabaseAddress {
    DatabaseAddress::parse(url, Origin::Configuration).unwrap()
}

async fn server_with_roles(settings: &str) -> Option<(TestServer, DatabaseSession)> {
    let server = TestServer::with(settings, RULES)?;
    let session = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
    session.run("CREATE ROLE known LOGIN PASSWORD 'pa:ss'; CREATE ROLE safe LOGIN PASSWORD 'word'").await.unwrap();
    Some((server, session))
}

#[tokio::test]
async fn who_is_not_let_in_is_told_why() {
    let Some((server, session)) = server_with_roles("max_connections = 6").await else { return };
    let port = server.port();
    let check = async |url: &str, expected: &str, is_setting: bool| {
        let fault = fault(&at(url)).await;
        let text = fault.to_string();
        assert!(text.contains(expected) && !text.contains('\n') && !text.contains("hunter"), "{url}: {text}");
        assert_eq!(fault.is_setting(), is_setting, "{text}");
        assert!(!fault.keeps_session() || is_setting, "{text}");
    };
    drop(DatabaseSession::open(&at(&format!("postgres://known:pa%3Ass@127.0.0.1:{port}/postgres"))).await.unwrap());
    check(&format!("postgres://known:hunter@127.0.0.1:{port}/postgres"), "refuses the user or the pass", true).await;
    check(&format!("postgres://known@127.0.0.1:{port}/postgres"), "none is given; name a file", true).await;
    check(&format!("postgres://nobody:hunter@127.0.0.1:{port}/postgres"), "refuses the user", true).await;
    check(&format!("postgres://known:pa%3Ass@127.0.0.1:{port}/nowhere"), "createdb", true).await;
    check(&format!("postgres://safe:word@127.0.0.1:{port}/postgres"), "refuses the user", true).await;
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    check(&format!("postgres://known@127.0.0.1:{closed}/postgres"), "cannot be reached", false).await;
    check("postgres:///postgres?host=/nonexistent&user=known", "cannot be reached", false).await;
    // By a file.
    let file = server.put("pgpass", &format!("127.0.0.1:{port}:*:known:pa\\:ss\n"));
    let by_file = |user: &str| format!("postgres://{user}@127.0.0.1:{port}/postgres?passfile={}", file.display());
    drop(DatabaseSession::open(&at(&by_file("known"))).await.unwrap());
    check(&by_file("other"), "or by PGPASSFILE", true).await;
    // A role, or a server, that may only read.
    session.run("ALTER ROLE known SET default_transaction_read_only = on").await.unwrap();
    check(&by_file("known"), "may only be read", false).await;
    drop(DatabaseSession::open(&at(&format!("{}&target_session_attrs=any", by_file("known")))).await.unwrap());
    session.run("ALTER ROLE known RESET ALL").await.unwrap();
    // The first of several that lets in is taken.
    let both = format!("postgres://known:pa%3Ass@127.0.0.1:{closed},127.0.0.1:{port}/postgres");
    drop(DatabaseSession::open(&at(&both)).await.unwrap());
    let neither = format!("postgres://known:hunter@127.0.0.1:{port},127.0.0.1:{closed}/postgres");
    check(&neither, "refuses the user or the password", true).await;
    // Three connections are kept for administrators.
    let known = at(&format!("postgres://known:pa%3Ass@127.0.0.1:{port}/postgres"));
    let mut open = Vec::new();
    let used_up = loop {
        match DatabaseSession::open(&known).await {
            Ok(session) => open.push(session),
            Err(fault) => break fault,
        }
        assert!(open.len() < 6);
    };
    assert!(matches!(used_up, DatabaseFault::ConnectionsUsedUp(_)) && !used_up.is_setting(), "{used_up}");
}

#[tokio::test]
async fn a_server_proves_who_it_is() {
    let Some((mut server, _)) = server_with_roles("").await else { return };
    let authority = |name: &str| {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &ours).unwrap();
    let (ours, theirs) = (server.put("ours.pem", &ours.pem()), server.put("theirs.pem", &theirs.pem()));
    let empty = server.put("empty.pem", "");
    let url = |host: &str, file: &std::path::Path| {
        let (port, file) = (server.port(), file.display());
        format!("postgres://safe:word@{host}:{port}/postgres?sslmode=verify-full&sslrootcert={file}")
    };
    let [without, with, wrong_name, wrong_authority, no_authority, no_file] = [
        url("localhost", &ours),
        url("localhost", &ours),
        url("127.0.0.1", &ours),
        url("localhost", &theirs),
        url("localhost", &empty),
        url("localhost", "/nonexistent".as_ref()),
    ];
    let refused = fault(&at(&without)).await;
    assert!(matches!(&refused, DatabaseFault::Untrusted { .. }), "a server without TLS: {refused}");
    let (certificate, key) = (server.put("cert.pem", &certificate.pem()), server.put("key.pem", &key.serialize_pem()));
    let settings = server.data().join("postgresql.auto.conf");
    let tls = format!(
        "{}ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\n",
        fs::read_to_string(&settings).unwrap(),
        certificate.display(),
        key.display()
    );
    fs::write(settings, tls).unwrap();
    server.kill();
    server.restart();
    let session = DatabaseSession::open(&at(&with)).await.unwrap();
    let version = "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(session.query_one(version, &[]).await.unwrap().get::<_, &str>(0), "TLSv1.3");
    for address in [wrong_name, wrong_authority] {
        let refused = fault(&at(&address)).await;
        assert!(matches!(&refused, DatabaseFault::Untrusted { .. }) && refused.is_setting(), "{refused}");
    }
    for address in [no_authority, no_file] {
        let refused = fault(&at(&address)).await;
        assert!(matches!(&refused, DatabaseFault::Certificates { .. }) && refused.is_setting(), "{refused}");
    }
}

#[tokio::test]
async fn a_network_that_swallows_packets_is_given_up() {
    let Some(server) = TestServer::start() else { return };
    let proxy = Proxy::before(&server);
    let mut address = proxy.address();
    drop(DatabaseSession::open(&address).await.unwrap());
    proxy.swallow_answers(true);
    address.connect_timeout = Duration::from_millis(100);
    let fault = fault(&address).await;
    assert!(fault.to_string().contains("no answer within 100ms"), "{fault}");
}

#[tokio::test]
async fn a_commit_that_is_answered_with_a_warning_counts_as_lost() {
    let Some(server) = TestServer::start() else { return };
    let session = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
    let warn = "CREATE FUNCTION warn() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'no standby'; RETURN 1; \
                END $$";
    session.run(warn).await.unwrap();
    let commit = async |sql: &str| session.commit(sql, &[], PATIENCE).await.map(|rows| rows.len());
    for _ in 0..20 {
        let lost = commit("SELECT warn()").await.unwrap_err();
        assert!(matches!(&lost, DatabaseFault::NotReplicated(why) if why == "no standby"), "{lost}");
        assert!(!lost.keeps_session() && lost.may_pass());
        assert_eq!(commit("SELECT 1").await.unwrap(), 1, "it is the warned one's alone");
    }
}

/// What the server answers, and what is to be done about it.
#[tokio::test]
async fn faults_are_told_apart() {
    let Some(server) = TestServer::start() else { return };
    let session = DatabaseSession::open(&server.address("postgres", "")).await.unwrap();
    session.run("CREATE TABLE t (a int PRIMARY KEY CHECK (a > 0), b int)").await.unwrap();
    let fail = "CREATE FUNCTION fail(code text) RETURNS int LANGUAGE plpgsql AS
                $$ BEGIN RAISE USING ERRCODE = code; END $$";
    session.run(fail).await.unwrap();
    let check = async |sql: &str, is: fn(&DatabaseFault) -> bool, keeps: bool, may_pass: bool| {
        let fault = session.query(sql, &[]).await.unwrap_err();
        assert!(is(&fault), "{sql}: {fault:?}");
        assert_eq!((fault.keeps_session(), fault.may_pass()), (keeps, may_pass), "{sql}: {fault:?}");
    };
    check("INSERT INTO t VALUES (0)", |fault| matches!(fault, DatabaseFault::Record(_)), true, false).await;
    check("SELECT 1 / 0", |fault| matches!(fault, DatabaseFault::Record(_)), true, false).await;
    check("SELECT fail('40001')", |fault| matches!(fault, DatabaseFault::Conflict(_)), true, true).await;
    check("SELECT fail('40P01')", |fault| matches!(fault, DatabaseFault::Conflict(_)), true, true).await;
    check("SELECT fail('57014')", |fault| matches!(fault, DatabaseFault::GivenUp(_)), true, true).await;
    check("SELECT fail('53100')", |fault| matches!(fault, DatabaseFault::Full(_)), true, true).await;
    check("SELECT fail('25006')", |fault| matches!(fault, DatabaseFault::ReadOnly { .. }), false, true).await;
    check("SELECT fail('57P01')", |fault| matches!(fault, DatabaseFault::Unreachable { .. }), false, true).await;
    check("SELECT * FROM nowhere", |fault| matches!(fault, DatabaseFault::Other { .. }), true, true).await;
    check(
        "SELECT pg_terminate_backend(pg_backend_pid())",
        |fault| matches!(fault, DatabaseFault::Unreachable { .. }),
        false,
        true,
    )
    .await;
    check("SELECT 1", |fault| matches!(fault, DatabaseFault::Unreachable { .. }), false, true).await;
    assert!(session.is_closed());
}
