//! Removing memories for good, from the store and from what selection makes of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::Engine;
use super::memory::{RecallError, unavailable};
use super::qualifier::OldAdaptation;
use crate::blocking;
use crate::memory::StructuredId;
use crate::store::memories::{Forgotten, Purge};
use crate::store::{ChoiceNote, Store, StoreError};

/// How long removing a few notes may take that are not waited for to leave the files.
const A_MOMENT: Duration = Duration::from_secs(1);

/// For so long, and so often, that is tried if the store is busy or in trouble.
const PATIENCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(100);

impl Engine {
    /// Removes memories for good, with all that was made from them, and what selection learnt from messages of the same
    /// text. Says how many. It is done when no file of the store has a byte of them.
    pub async fn purge_memories(&self, tenant: &str, which: Purge) -> Result<u64, RecallError> {
        let purge = self.store.memories().purge(tenant, which, sessions_of)?;
        let (qualifier, store, tenant) = (Arc::clone(&self.qualifier), Arc::clone(&self.store), tenant.to_owned());
        let told = Arc::clone(&self.purged);
        // Selection forgets also if nobody waits any more, or not all could be removed.
        let purged = tokio::spawn(async move {
            let forgotten = Arc::new(purge.durable().await?);
            let (memories, mut failure) = (forgotten.memories, forgotten.failure.clone());
            if !forgotten.texts.is_empty() || !forgotten.sessions.is_empty() {
                qualifier.forget_purged(&tenant, &forgotten).await;
                let since = purge_noted_since(&*store, &tenant, &forgotten).await;
                failure = failure.or(since.failure);
                let left = (forgotten.has_choices || since.has_choices).then_some({
                    let tenant = tenant.clone();
                    move || choices_left(&*store, &tenant, &forgotten)
                });
                let forget =
                    blocking::run(move || qualifier.forget(&tenant, &since.sessions, left, OldAdaptation::Forgotten))
                        .await;
                told.notify_one();
                forget.map_err(unavailable)?;
            }
            failure.map_or(Ok(memories), |failure| Err(failure.into()))
        });
        purged.await.map_err(|_| StoreError::Closed)?
    }

    /// Removes for good what is known of a person: the memories about it, in every version of its id; what selection
    /// learnt from messages of the same text; and where sessions stand that are named after their chats and
    /// threads. Says how many memories that were.
    pub async fn forget_user(&self, tenant: &str, user: &StructuredId) -> Result<u64, RecallError> {
        let bare = StructuredId::new(user.namespace(), user.entity(), user.id(), None);
        let bare = bare.map_or_else(|_| user.to_string(), |bare| bare.to_string());
        self.purge_memories(tenant, Purge::Person(bare)).await
    }

    /// Removes all of a tenant's memories for good, and with them what goes with a person. Says how many.
    pub async fn forget_everybody(&self, tenant: &str) -> Result<u64, RecallError> {
        self.purge_memories(tenant, Purge::Everybody).await
    }
}

/// Removes what selection noted of what went until it had forgotten it.
async fn purge_noted_since(store: &dyn Store, tenant: &str, forgotten: &Forgotten) -> Forgotten {
    let begun = Instant::now();
    loop {
        let (texts, sessions) = (Arc::clone(&forgotten.texts), forgotten.sessions.clone());
        let since = match store.memories().purge(tenant, Purge::NotedSince { texts, sessions }, sessions_of) {
            // What keeps the memories in a file keeps these; they may be removed by then, or not.
            Ok(since) if forgotten.failure.is_some() => match timeout(A_MOMENT, since.durable()).await {
                Ok(since) => since,
                Err(_) => Ok(Forgotten { has_choices: true, ..Forgotten::default() }),
            },
            Ok(since) => since.durable().await,
            Err(error) => Err(error.into()),
        };
        match since {
            // Nobody who asks again would find what was noted.
            Err(_) if begun.elapsed() < PATIENCE => sleep(AGAIN).await,
            Err(error) => {
                let failure = Some(StoreError::Unavailable(error.to_string()));
                return Forgotten { has_choices: true, failure, ..Forgotten::default() };
            }
            Ok(since) => return since,
        }
    }
}

/// Choices that the store has left, of which those for what went are to go. If it cannot be read, nothing is taught
/// until the next start: what went must not stay.
fn choices_left(store: &dyn Store, tenant: &str, forgotten: &Forgotten) -> Vec<ChoiceNote> {
    // What was chosen before this is written when this is.
    if let Ok(written) = store.note(Vec::new()) {
        written.wait();
    }
    // A connection may just have gone; the next one is another.
    let kept = store.kept_choices(tenant).or_else(|_| store.kept_choices(tenant));
    let mut left = kept.unwrap_or_else(|error| {
        tracing::warn!(%error, tenant, "what selection learnt is forgotten with what was purged, until the next start");
        Vec::new()
    });
    left.retain(|choice| !forgotten.texts.has(&choice.message));
    left
}

/// What a session of a chat may be called: as the chat is, with or without what says that it is one.
fn sessions_of(chat: &str) -> Vec<String> {
    let bare = chat.parse().map(|chat: StructuredId| chat.id().to_owned());
    bare.into_iter().chain([chat.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};
    use tempfile::TempDir;

    use super::*;
    use crate::access::Grant;
    use crate::catalog::load::{LoadOptions, load};
    use crate::qualify::Question;
    use crate::store::notes::TurnNote;
    use crate::store::suite::memories::draft as stored_draft;
    use crate::store::{Note, Notepad, ReplayLimits, Sqlite, sqlite};

    const TENANT: &str = "default";

    const TOOL: &str =
        "name: tool\ntitle: t\ndescription: d\ncategory: test\ncapabilities: []\nkeywords: []\nuse_cases: []\n";

    /// An engine with a tool, on a database.
    fn engine_with_a_tool() -> (TempDir, Arc<Sqlite>, Engine) {
        let directory = TempDir::new().unwrap();
        let options = sqlite::Options::file(sqlite::file_in(directory.path()));
        let store = Arc::new(Sqlite::start(options, Box::new(|_, _| ())).unwrap());
        let engine = Engine::on(Arc::clone(&store) as Arc<dyn Store>);
        let tools = directory.path().join("tools");
        std::fs::create_dir(&tools).unwrap();
        std::fs::write(tools.join("tool.yaml"), TOOL).unwrap();
        engine.publish(&load(LoadOptions::directory(&tools)));
        (directory, store, engine)
    }

    #[test]
    fn what_is_asked_while_it_is_purged_brings_nothing_back() {
        let ((_directory, store, engine), grant) = (engine_with_a_tool(), Grant::anonymous());
        let secret = "how high is the lighthouse of Genoa";
        let question = Question { message: secret, ..Question::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            engine.qualify(&engine.generation(), &grant, Some("s"), &question);
            let draft = stored_draft(secret, &Value::Object(Map::new()));
            store.memories().add(TENANT, draft, None).unwrap().durable().await.unwrap();
            let (turn, looked_for) = (engine.turn(&grant, "s").unwrap(), engine.purges(TENANT));
            let asking = engine.qualifier.enter();
            let purge = engine.purge_memories(TENANT, Purge::Everybody);
            let mut purge = std::pin::pin!(purge);
            let deadline = Instant::now() + Duration::from_secs(60);
            while engine.turn(&grant, "s").is_some() {
                assert!(Instant::now() < deadline && timeout(Duration::ZERO, &mut purge).await.is_err());
            }
            let note = TurnNote {
                tenant: TENANT.to_owned(),
                session: "s".to_owned(),
                number: 1,
                state: serde_json::to_string(&*turn).unwrap(),
                kept: None,
            };
            let _ = store.note(vec![Note::Turn(note)]).unwrap();
            engine.choose(TENANT, (secret, looked_for), "tool");
            assert!(timeout(Duration::ZERO, &mut purge).await.is_err(), "somebody asks still");
            drop(asking);
            assert_eq!(purge.await.unwrap(), 1);
            engine.choose(TENANT, (secret, looked_for), "tool");
            assert_eq!(engine.qualifier.usage(TENANT).choices(), 0);
            let purges = engine.purges(TENANT);
            assert_ne!(purges, looked_for);
            assert_eq!(engine.purge_memories(TENANT, Purge::Everybody).await.unwrap(), 0);
            assert_eq!(engine.purges(TENANT), purges, "nothing went");
            let left = store.replay(ReplayLimits::default()).unwrap().notes;
            assert!(left.turns.is_empty() && left.choices.is_empty(), "{left:?}");
        });
    }

    #[test]
    fn selection_forgets_what_was_purged_although_nobody_waits() {
        let (_directory, store, engine) = engine_with_a_tool();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (secret, other) = ("how high is the lighthouse of Genoa", "which lighthouse is the tallest one");
            let mut notes = Notepad::new(&*store);
            for message in [secret, other] {
                assert!(engine.qualifier.choose(&engine.generation(), &mut notes, TENANT, (message, 0), "tool"));
            }
            notes.close().unwrap().durable().await.unwrap();
            let draft = stored_draft(secret, &Value::Object(Map::new()));
            store.memories().add(TENANT, draft, None).unwrap().durable().await.unwrap();
            let purge = engine.purge_memories(TENANT, Purge::Everybody);
            assert!(timeout(Duration::ZERO, purge).await.is_err(), "it is not done at once");
            let deadline = Instant::now() + Duration::from_secs(60);
            while engine.qualifier.usage(TENANT).choices() != 1 {
                assert!(Instant::now() < deadline);
                tokio::task::yield_now().await;
            }
        });
    }
}
