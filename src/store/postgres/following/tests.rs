use std::time::Duration;

use super::super::group::commit;
use super::super::migrations::{Migration, open};
use super::super::partitions::prepare;
use super::super::revision::Revision;
use super::super::test_server::TestServer;
use super::super::{history, notes};
use super::*;
use crate::store::ReplayLimits;
use crate::store::notes::{ChoiceNote, Note, TurnNote};
use crate::store::suite::records::execution;
use crate::timing::Execution;

const NOTHING: [Vec<String>; 3] = [const { Vec::new() }; 3];

fn incarnation(byte: u8) -> Incarnation {
    Incarnation::from_hex(&format!("{byte:02x}").repeat(16)).unwrap()
}

/// A writer with the number of its last record.
struct Writer {
    session: DatabaseSession,
    name: Incarnation,
    last: i64,
}

impl Writer {
    async fn open(server: &TestServer, name: u8) -> Self {
        let session = open(&server.address("postgres", ""), Migration::Auto).await.unwrap();
        prepare(&session).await.unwrap();
        Self { session, name: incarnation(name), last: 0 }
    }

    async fn record(&mut self, session: &str) {
        self.last += 1;
        let call = Execution { session: Some(session.into()), ..execution("tool", None, 5, None) };
        commit(&self.session, self.name, &[(self.last, call)], Duration::from_secs(60)).await.unwrap();
    }

    /// In a transaction that somebody else ends.
    async fn note(&self, session: &str) {
        let revision = Revision::next(&self.session, self.name).await.unwrap();
        // Its own, whose choices nobody waits for.
        let tenant = self.name.to_hex();
        let turn =
            TurnNote { tenant: tenant.clone(), session: session.into(), number: 1, state: "{}".into(), kept: None };
        let choice =
            ChoiceNote { tenant, tool: "tool".into(), message: session.into(), trust: 1.0, adaptation: Vec::new() };
        notes::write(&self.session, &revision, &Note::Turn(turn), 1).await.unwrap();
        notes::write(&self.session, &revision, &Note::Choice(choice), 1).await.unwrap();
    }

    async fn note_alone(&self, session: &str) {
        self.session.begin().await.unwrap();
        self.note(session).await;
        self.session.end(true).await.unwrap();
    }
}

/// The sessions of the calls, turns and choices that are followed, each in order.
async fn followed(following: &Following, session: &DatabaseSession) -> [Vec<String>; 3] {
    let (mut calls, mut turns, mut choices) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let followed = following.follow(session).await.unwrap();
        calls.extend(followed.calls.into_iter().map(|call| call.session));
        turns.extend(followed.turns.into_iter().map(|turn| turn.session));
        choices.extend(followed.choices.into_iter().map(|choice| choice.message));
        if !followed.is_partial {
            break;
        }
    }
    for all in [&mut calls, &mut turns, &mut choices] {
        all.sort();
    }
    [calls, turns, choices]
}

fn following(own: u8) -> Following {
    Following::new(incarnation(own), LearningDaemon { daemon: incarnation(own), host: "here".into() })
}

#[tokio::test]
async fn a_transaction_of_somebody_else_delays_nothing_and_hides_nothing() {
    let Some(server) = TestServer::start() else { return };
    let (mut one, other, mut slow) =
        (Writer::open(&server, 1).await, Writer::open(&server, 2).await, Writer::open(&server, 3).await);
    let reader = Writer::open(&server, 4).await;
    let follower = following(4);
    one.record("before").await;
    other.note_alone("before").await;
    assert_eq!(followed(&follower, &reader.session).await, NOTHING, "there is no history yet");
    let history = history::read(&reader.session, &follower, ReplayLimits::default()).await.unwrap();
    assert_eq!((history.calls.len(), history.notes.choices.len()), (1, 1));
    // One has begun and does not end; nor does one in another database.
    other.session.run("CREATE DATABASE elsewhere").await.unwrap();
    let elsewhere = DatabaseSession::open(&server.address("postgres", "/elsewhere")).await.unwrap();
    elsewhere.begin().await.unwrap();
    elsewhere.run("CREATE TABLE held (a int)").await.unwrap();
    slow.session.begin().await.unwrap();
    slow.record("slow").await;
    slow.note("slow").await;
    let mut expected = Vec::new();
    for number in 0..500 {
        let name = format!("{number:03}");
        one.record(&name).await;
        other.note_alone(&name).await;
        expected.push(name);
        if number % 100 == 7 {
            let now = [(); 3].map(|()| expected.clone());
            assert_eq!(followed(&follower, &reader.session).await, now, "what is committed is there at once");
            expected.clear();
        }
    }
    assert_eq!(followed(&follower, &reader.session).await, [(); 3].map(|()| expected.clone()));
    assert_eq!(follower.lag().unwrap().behind, 0, "what is not committed is not waited for");
    slow.session.end(true).await.unwrap();
    assert_eq!(followed(&follower, &reader.session).await, [(); 3].map(|()| vec!["slow".to_owned()]));
    assert_eq!(followed(&follower, &reader.session).await, NOTHING, "once");
    elsewhere.end(false).await.unwrap();
}

#[tokio::test]
async fn what_is_its_own_is_not_followed_and_much_comes_in_parts() {
    let Some(server) = TestServer::start() else { return };
    let (mut own, mut other) = (Writer::open(&server, 1).await, Writer::open(&server, 2).await);
    let follower = following(1);
    history::read(&own.session, &follower, ReplayLimits::default()).await.unwrap();
    own.record("own").await;
    own.note_alone("own").await;
    let call = |_| Execution { session: Some("s".into()), ..execution("tool", None, 5, None) };
    let calls: Vec<(i64, Execution)> = (1..=AT_ONCE + 1).map(|number| (number, call(number))).collect();
    for group in calls.chunks(1000) {
        commit(&other.session, other.name, group, Duration::from_secs(60)).await.unwrap();
    }
    other.last = AT_ONCE + 1;
    let first = follower.follow(&own.session).await.unwrap();
    assert_eq!((first.calls.len() as i64, first.is_partial, first.turns.len()), (AT_ONCE, true, 0));
    assert_eq!(follower.lag().unwrap().behind, AT_ONCE.cast_unsigned() + 1);
    let second = follower.follow(&own.session).await.unwrap();
    assert_eq!((second.calls.len(), second.is_partial), (1, false));
    other.record("later").await;
    assert_eq!(followed(&follower, &own.session).await[0], ["later"]);
}
