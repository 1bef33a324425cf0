//! Memories from Rust: the examples of the contract by its names, and every option and criterion of the wrappers.

use std::sync::Arc;

use almanac::Engine;
use almanac::engine::memory::Recalled;
use almanac::engine::memory_wrappers::{
    CognitiveProcessCriteria, CognitiveProcessOptions, DocumentCriteria, DocumentOptions, MessageCriteria,
    MessageOptions, SearchOptions, TaskCriteria, TaskOptions,
};
use almanac::memory::metadata::MessageAttachment;
use almanac::memory::vocabulary::{
    CognitiveProcessType, DocumentSource, ImportanceLevel, MessageRole, TaskPriority, TaskStatus,
};
use almanac::memory::{StructuredId, create_agent_id, create_chat_id, create_thread_info, create_user_id};
use almanac::store::{Sqlite, sqlite};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

fn check(test: impl AsyncFnOnce(Engine) -> anyhow::Result<()>) {
    let directory = TempDir::new().unwrap();
    let file = sqlite::file_in(directory.path());
    let open = || -> anyhow::Result<Engine> {
        let store = Sqlite::start(sqlite::Options::file(file), Box::new(|_, _| ()))?;
        let engine = Engine::on(Arc::new(store));
        Ok(engine)
    };
    let engine = open().unwrap();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test(engine)).unwrap();
}

fn contents(found: &[Recalled]) -> Vec<&str> {
    found.iter().map(|found| found.memory.content.as_str()).collect()
}

#[test]
fn the_examples_of_the_contract() {
    check(async |engine| {
        let user_id = create_user_id("john-doe")?;
        let agent_id = create_agent_id("assistant")?;
        let chat_id = create_chat_id("general")?;
        let thread_info = create_thread_info("thread-123", 0, None)?;
        let message = engine
            .add_message_memory(
                "default",
                "Hello, how can I help you today?",
                MessageRole::Assistant,
                &user_id,
                &agent_id,
                &chat_id,
                &thread_info,
                MessageOptions {
                    importance: Some(ImportanceLevel::Medium),
                    message_type: Some("greeting".into()),
                    metadata: Map::from_iter([("tags".to_owned(), json!(["initial-contact", "greeting"]))]),
                    ..MessageOptions::default()
                },
            )
            .await?;
        let thought = engine
            .add_cognitive_process_memory(
                "default",
                "The user seems to be asking about machine learning concepts.",
                CognitiveProcessType::Thought,
                &agent_id,
                CognitiveProcessOptions {
                    context_id: Some("conversation-123".into()),
                    importance: Some(ImportanceLevel::Medium),
                    metadata: Map::from_iter([("category".to_owned(), json!("reasoning"))]),
                    ..CognitiveProcessOptions::default()
                },
            )
            .await?;
        let messages_in_thread = engine
            .search_messages(
                "default",
                &MessageCriteria { thread_id: Some("thread-123".into()), ..MessageCriteria::default() },
                &SearchOptions {
                    limit: Some(10),
                    sort_by: Some("thread.position".into()),
                    descending: Some(false),
                    ..SearchOptions::default()
                },
            )
            .await?;
        let id = |kind: &str, id: &str| json!({"namespace": kind, "type": kind, "id": id});
        let whole = json!({
            "role": "assistant", "userId": id("user", "john-doe"), "agentId": id("agent", "assistant"),
            "chatId": id("chat", "general"), "thread": {"id": "thread-123", "position": 0}, "importance": "medium",
            "importance_score": 0.5, "tags": ["initial-contact", "greeting"], "schemaVersion": "1.0.0",
            "messageType": "greeting",
        });
        assert_eq!(Value::Object(message.metadata.clone()), whole);
        let whole = json!({
            "processType": "thought", "agentId": id("agent", "assistant"), "importance": "medium",
                "importance_score": 0.5,
            "schemaVersion": "1.0.0", "contextId": "conversation-123", "category": "reasoning",
        });
        assert_eq!(Value::Object(thought.metadata), whole);
        assert_eq!(messages_in_thread.len(), 1);
        assert_eq!(messages_in_thread[0].memory, message);
        Ok(())
    });
}

/// What the guide shows is what is tested here.
#[test]
fn the_guide_shows_what_is_tested() {
    let (guide, here) = (include_str!("../../docs/MEMORY.md"), include_str!("memory_rust.rs"));
    let (_, block) = guide.split_once("```rust\n").unwrap();
    let (block, _) = block.split_once("```\n").unwrap();
    let known: Vec<&str> = here.lines().map(str::trim).collect();
    for line in block.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("use ")) {
        assert!(known.contains(&line), "no test has the guide's line `{line}`");
    }
}

/// Some memories of a kind, of which each criterion finds one, and what each has of its options.
struct Asked<C> {
    name: &'static str,
    criteria: C,
}

fn asked<C>(name: &'static str, criteria: C) -> Asked<C> {
    Asked { name, criteria }
}

const ALL: SearchOptions = SearchOptions { query: None, limit: None, offset: None, sort_by: None, descending: None };

fn ids(name: &str) -> anyhow::Result<[StructuredId; 3]> {
    Ok([create_user_id(name)?, create_agent_id(name)?, create_chat_id(name)?])
}

#[test]
fn every_option_and_criterion_of_messages() {
    check(async |engine| {
        let attachment = MessageAttachment {
            kind: "image".into(),
            url: Some("u".into()),
            data: None,
            filename: None,
            content_type: None,
            metadata: None,
        };
        for (name, role) in [("one", MessageRole::User), ("two", MessageRole::Tool)] {
            let ([user, agent, chat], thread) = (ids(name)?, create_thread_info(name, 0, None)?);
            let options = MessageOptions {
                message_type: Some(name.into()),
                importance: Some(ImportanceLevel::High),
                attachments: Some(vec![attachment.clone()]),
                metadata: Map::from_iter([("category".to_owned(), json!("c"))]),
            };
            let kept = engine
                .add_message_memory("default", name, role, &user, &agent, &chat, &thread, options)
                .await?
                .metadata;
            assert_eq!(kept["attachments"], json!([{"type": "image", "url": "u"}]));
            let said = ["messageType", "importance", "category"].map(|key| kept[key].as_str());
            assert_eq!(said, [Some(name), Some("high"), Some("c")]);
        }
        let [user, agent, chat] = ids("two")?;
        let none = MessageCriteria::default;
        for Asked { name, criteria } in [
            asked("user_id", MessageCriteria { user_id: Some(user), ..none() }),
            asked("agent_id", MessageCriteria { agent_id: Some(agent), ..none() }),
            asked("chat_id", MessageCriteria { chat_id: Some(chat), ..none() }),
            asked("role", MessageCriteria { role: Some(MessageRole::Tool), ..none() }),
            asked("thread_id", MessageCriteria { thread_id: Some("two".into()), ..none() }),
            asked("message_type", MessageCriteria { message_type: Some("two".into()), ..none() }),
        ] {
            assert_eq!(contents(&engine.search_messages("default", &criteria, &ALL).await?), ["two"], "{name}");
        }
        Ok(())
    });
}

#[test]
fn every_option_and_criterion_of_cognitive_processes() {
    check(async |engine| {
        for (name, process) in [("one", CognitiveProcessType::Insight), ("two", CognitiveProcessType::Decision)] {
            let options = CognitiveProcessOptions {
                context_id: Some(name.into()),
                related_to: vec![name.into(), "both".into()],
                importance: Some(ImportanceLevel::Low),
                metadata: Map::from_iter([("relatedTo".to_owned(), json!("other"))]),
            };
            let agent = create_agent_id(name)?;
            let kept = engine.add_cognitive_process_memory("default", name, process, &agent, options).await?.metadata;
            assert_eq!((&kept["relatedTo"], &kept["importance_score"]), (&json!([name, "both"]), &json!(0.25)));
        }
        let none = CognitiveProcessCriteria::default;
        for Asked { name, criteria } in [
            asked("agent_id", CognitiveProcessCriteria { agent_id: Some(create_agent_id("two")?), ..none() }),
            asked(
                "process_type",
                CognitiveProcessCriteria { process_type: Some(CognitiveProcessType::Decision), ..none() },
            ),
            asked("context_id", CognitiveProcessCriteria { context_id: Some("two".into()), ..none() }),
            asked("related_to", CognitiveProcessCriteria { related_to: Some("two".into()), ..none() }),
        ] {
            assert_eq!(
                contents(&engine.search_cognitive_processes("default", &criteria, &ALL).await?),
                ["two"],
                "{name}"
            );
        }
        Ok(())
    });
}

#[test]
fn every_option_and_criterion_of_documents() {
    check(async |engine| {
        for (name, source) in [("one", DocumentSource::File), ("two", DocumentSource::Web)] {
            let [user, agent, _] = ids(name)?;
            let options = DocumentOptions {
                title: Some(name.into()),
                content_type: Some(name.into()),
                url: Some("u".into()),
                file_name: Some("f".into()),
                user_id: Some(user),
                importance: Some(ImportanceLevel::Critical),
                metadata: Map::from_iter([("url".to_owned(), json!("other")), ("authors".to_owned(), json!(["A"]))]),
            };
            let kept = engine.add_document_memory("default", name, source, &agent, options).await?.metadata;
            let said = ["url", "fileName", "importance"].map(|key| kept[key].as_str());
            assert_eq!((said, &kept["authors"]), ([Some("u"), Some("f"), Some("critical")], &json!(["A"])));
        }
        let ([user, agent, _], none) = (ids("two")?, DocumentCriteria::default);
        for Asked { name, criteria } in [
            asked("source", DocumentCriteria { source: Some(DocumentSource::Web), ..none() }),
            asked("agent_id", DocumentCriteria { agent_id: Some(agent), ..none() }),
            asked("user_id", DocumentCriteria { user_id: Some(user), ..none() }),
            asked("title", DocumentCriteria { title: Some("two".into()), ..none() }),
            asked("content_type", DocumentCriteria { content_type: Some("two".into()), ..none() }),
        ] {
            assert_eq!(contents(&engine.search_documents("default", &criteria, &ALL).await?), ["two"], "{name}");
        }
        Ok(())
    });
}

#[test]
fn every_option_and_criterion_of_tasks() {
    check(async |engine| {
        for (name, status, priority) in
            [("one", TaskStatus::Pending, TaskPriority::Low), ("two", TaskStatus::Failed, TaskPriority::Urgent)]
        {
            let [user, agent, _] = ids(name)?;
            let options = TaskOptions {
                description: Some("d".into()),
                assigned_to: Some(user),
                due_date: Some("2026-12-24T18:00:00Z".into()),
                parent_task_id: Some(name.into()),
                importance: Some(ImportanceLevel::Medium),
                metadata: Map::from_iter([("progress".to_owned(), json!(0.5))]),
            };
            let kept =
                engine.add_task_memory("default", name, "title", status, priority, &agent, options).await?.metadata;
            let said = ["title", "description", "dueDate", "importance"].map(|key| kept[key].as_str());
            assert_eq!(said, [Some("title"), Some("d"), Some("2026-12-24T18:00:00Z"), Some("medium")]);
            assert_eq!(kept["progress"], 0.5);
        }
        let ([user, agent, _], none) = (ids("two")?, TaskCriteria::default);
        for Asked { name, criteria } in [
            asked("agent_id", TaskCriteria { agent_id: Some(agent), ..none() }),
            asked("assigned_to", TaskCriteria { assigned_to: Some(user), ..none() }),
            asked("status", TaskCriteria { status: Some(TaskStatus::Failed), ..none() }),
            asked("priority", TaskCriteria { priority: Some(TaskPriority::Urgent), ..none() }),
            asked("parent_task_id", TaskCriteria { parent_task_id: Some("two".into()), ..none() }),
        ] {
            assert_eq!(contents(&engine.search_tasks("default", &criteria, &ALL).await?), ["two"], "{name}");
        }
        let text = |text: &str| Some(text.to_owned());
        for (name, options, expected) in [
            ("newest first", ALL, vec!["two", "one"]),
            ("query", SearchOptions { query: text("one"), ..ALL }, vec!["one", "two"]),
            ("limit", SearchOptions { limit: Some(1), ..ALL }, vec!["two"]),
            ("offset", SearchOptions { offset: Some(1), ..ALL }, vec!["one"]),
            ("sort_by", SearchOptions { sort_by: text("parentTaskId"), ..ALL }, vec!["one", "two"]),
            (
                "descending",
                SearchOptions { sort_by: text("parentTaskId"), descending: Some(true), ..ALL },
                vec!["two", "one"],
            ),
        ] {
            assert_eq!(contents(&engine.search_tasks("default", &none(), &options).await?), expected, "{name}");
        }
        let faulty = SearchOptions { limit: Some(0), ..ALL };
        assert!(engine.search_tasks("default", &none(), &faulty).await.is_err());
        Ok(())
    });
}
