//! The wrappers of the contract, one to add and one to search for each kind: the explicit arguments and options are
//! merged with the metadata that is given, and the whole is read as strictly as what comes from outside.

use serde_json::{Map, Value, json};

use super::Engine;
use super::memory::{Memory, RecallError, Recalled};
use crate::memory::metadata::{MessageAttachment, ThreadInfo};
use crate::memory::search::Recall;
use crate::memory::vocabulary::{
    CognitiveProcessType, DocumentSource, ImportanceLevel, MessageRole, TaskPriority, TaskStatus,
};
use crate::memory::{Kind, Metadata, StructuredId};
use crate::strict::decode::decode_with;

/// What may be said of a message.
#[derive(Debug, Clone, Default)]
pub struct MessageOptions {
    pub message_type: Option<String>,
    /// How much it matters.
    pub importance: Option<ImportanceLevel>,
    /// What came with it.
    pub attachments: Option<Vec<MessageAttachment>>,
    /// Any other metadata; the explicit options win.
    pub metadata: Map<String, Value>,
}

/// What may be said of a cognitive process.
#[derive(Debug, Clone, Default)]
pub struct CognitiveProcessOptions {
    /// What it was thought about.
    pub context_id: Option<String>,
    /// Memories it has to do with.
    pub related_to: Vec<String>,
    /// How much it matters.
    pub importance: Option<ImportanceLevel>,
    /// Any other metadata; the explicit options win.
    pub metadata: Map<String, Value>,
}

/// What may be said of a document.
#[derive(Debug, Clone, Default)]
pub struct DocumentOptions {
    pub title: Option<String>,
    pub content_type: Option<String>,
    pub url: Option<String>,
    pub file_name: Option<String>,
    /// The person it belongs to.
    pub user_id: Option<StructuredId>,
    /// How much it matters.
    pub importance: Option<ImportanceLevel>,
    /// Any other metadata; the explicit options win.
    pub metadata: Map<String, Value>,
}

/// What may be said of a task.
#[derive(Debug, Clone, Default)]
pub struct TaskOptions {
    /// What is to be done, at length.
    pub description: Option<String>,
    /// Who is to do it.
    pub assigned_to: Option<StructuredId>,
    /// When it should be done, in RFC 3339.
    pub due_date: Option<String>,
    /// The task it is a part of.
    pub parent_task_id: Option<String>,
    /// How much it matters.
    pub importance: Option<ImportanceLevel>,
    /// Any other metadata; the explicit options win.
    pub metadata: Map<String, Value>,
}

/// Which messages are meant.
#[derive(Debug, Clone, Default)]
pub struct MessageCriteria {
    pub user_id: Option<StructuredId>,
    pub agent_id: Option<StructuredId>,
    pub chat_id: Option<StructuredId>,
    pub role: Option<MessageRole>,
    pub thread_id: Option<String>,
    pub message_type: Option<String>,
}

/// Which cognitive processes are meant.
#[derive(Debug, Clone, Default)]
pub struct CognitiveProcessCriteria {
    pub agent_id: Option<StructuredId>,
    pub process_type: Option<CognitiveProcessType>,
    pub context_id: Option<String>,
    /// That have to do with this.
    pub related_to: Option<String>,
}

/// Which documents are meant.
#[derive(Debug, Clone, Default)]
pub struct DocumentCriteria {
    pub source: Option<DocumentSource>,
    pub agent_id: Option<StructuredId>,
    pub user_id: Option<StructuredId>,
    pub title: Option<String>,
    /// Of this media type.
    pub content_type: Option<String>,
}

/// Which tasks are meant.
#[derive(Debug, Clone, Default)]
pub struct TaskCriteria {
    pub agent_id: Option<StructuredId>,
    /// For this one to do.
    pub assigned_to: Option<StructuredId>,
    pub status: Option<TaskStatus>,
    pub priority: Option<TaskPriority>,
    /// Parts of this task.
    pub parent_task_id: Option<String>,
}

/// How memories are searched for.
#[derive(Debug, Clone, Default)]
pub struct SearchOptions {
    /// What they are about.
    pub query: Option<String>,
    /// At most so many, 1 to 200; 10 by default.
    pub limit: Option<usize>,
    /// So many left out.
    pub offset: Option<usize>,
    /// A field's path, `createdAt`, `updatedAt` or `score`.
    pub sort_by: Option<String>,
    pub descending: Option<bool>,
}

impl SearchOptions {
    fn to_json(&self) -> Value {
        let direction = self.descending.map(|descending| if descending { "desc" } else { "asc" });
        json!({
            "query": self.query, "limit": self.limit, "offset": self.offset, "sortBy": self.sort_by,
            "sortDirection": direction,
        })
    }
}

/// The metadata with what is said explicitly in place of what it says there: whole values, since half of one id and
/// half of another is nobody's. A level that is said explicitly wins over a score as well: one is derived from the
/// other.
fn over(mut metadata: Map<String, Value>, explicit: Value) -> Map<String, Value> {
    let Value::Object(explicit) = explicit else { return metadata };
    for (key, value) in explicit.into_iter().filter(|(_, value)| !value.is_null()) {
        if key == "importance" {
            metadata.shift_remove("importance_score");
        }
        metadata.insert(key, value);
    }
    metadata
}

impl Engine {
    async fn add_memory(
        &self,
        tenant: &str,
        kind: Kind,
        content: &str,
        metadata: Map<String, Value>,
        explicit: Value,
    ) -> Result<Memory, RecallError> {
        let metadata =
            decode_with(Value::Object(over(metadata, explicit)).into(), |node, at| Metadata::read(kind, node, at));
        let metadata = metadata.map_err(RecallError::Faulty)?;
        Ok(self.remember(tenant, content.to_owned(), &metadata, None).await?.0)
    }

    async fn find_memories(
        &self,
        tenant: &str,
        kind: Kind,
        criteria: Value,
        options: &SearchOptions,
    ) -> Result<Vec<Recalled>, RecallError> {
        // What is not asked for is no criterion.
        let criteria = over(Map::new(), criteria);
        let asked = json!({"criteria": criteria, "options": options.to_json()});
        let recall = decode_with(asked.into(), |node, at| Recall::read(kind, node, at)).map_err(RecallError::Faulty)?;
        Ok(self.recall(tenant, &recall).await?.memories)
    }

    #[expect(clippy::too_many_arguments, reason = "the arguments of the contract")]
    pub async fn add_message_memory(
        &self,
        tenant: &str,
        content: &str,
        role: MessageRole,
        user_id: &StructuredId,
        agent_id: &StructuredId,
        chat_id: &StructuredId,
        thread: &ThreadInfo,
        options: MessageOptions,
    ) -> Result<Memory, RecallError> {
        let MessageOptions { message_type, importance, attachments, metadata } = options;
        let explicit = json!({
            "role": role, "userId": user_id, "agentId": agent_id, "chatId": chat_id, "thread": thread,
            "messageType": message_type, "importance": importance, "attachments": attachments,
        });
        self.add_memory(tenant, Kind::Message, content, metadata, explicit).await
    }

    /// Messages that are looked for.
    pub async fn search_messages(
        &self,
        tenant: &str,
        criteria: &MessageCriteria,
        options: &SearchOptions,
    ) -> Result<Vec<Recalled>, RecallError> {
        let MessageCriteria { user_id, agent_id, chat_id, role, thread_id, message_type } = criteria;
        let criteria = json!({
            "userId": user_id, "agentId": agent_id, "chatId": chat_id, "role": role, "threadId": thread_id,
            "messageType": message_type,
        });
        self.find_memories(tenant, Kind::Message, criteria, options).await
    }

    /// Adds a cognitive process.
    pub async fn add_cognitive_process_memory(
        &self,
        tenant: &str,
        content: &str,
        process_type: CognitiveProcessType,
        agent_id: &StructuredId,
        options: CognitiveProcessOptions,
    ) -> Result<Memory, RecallError> {
        let CognitiveProcessOptions { context_id, related_to, importance, metadata } = options;
        let related_to = Some(related_to).filter(|names| !names.is_empty());
        let explicit = json!({
            "processType": process_type, "agentId": agent_id, "contextId": context_id, "relatedTo": related_to,
            "importance": importance,
        });
        self.add_memory(tenant, Kind::CognitiveProcess, content, metadata, explicit).await
    }

    /// Cognitive processes that are looked for.
    pub async fn search_cognitive_processes(
        &self,
        tenant: &str,
        criteria: &CognitiveProcessCriteria,
        options: &SearchOptions,
    ) -> Result<Vec<Recalled>, RecallError> {
        let CognitiveProcessCriteria { agent_id, process_type, context_id, related_to } = criteria;
        let criteria = json!({
            "agentId": agent_id, "processType": process_type, "contextId": context_id, "relatedTo": related_to,
        });
        self.find_memories(tenant, Kind::CognitiveProcess, criteria, options).await
    }

    pub async fn add_document_memory(
        &self,
        tenant: &str,
        content: &str,
        source: DocumentSource,
        agent_id: &StructuredId,
        options: DocumentOptions,
    ) -> Result<Memory, RecallError> {
        let DocumentOptions { title, content_type, url, file_name, user_id, importance, metadata } = options;
        let explicit = json!({
            "source": source, "agentId": agent_id, "title": title, "contentType": content_type, "url": url,
            "fileName": file_name, "userId": user_id, "importance": importance,
        });
        self.add_memory(tenant, Kind::Document, content, metadata, explicit).await
    }

    /// Documents that are looked for.
    pub async fn search_documents(
        &self,
        tenant: &str,
        criteria: &DocumentCriteria,
        options: &SearchOptions,
    ) -> Result<Vec<Recalled>, RecallError> {
        let DocumentCriteria { source, agent_id, user_id, title, content_type } = criteria;
        let criteria = json!({
            "source": source, "agentId": agent_id, "userId": user_id, "title": title, "contentType": content_type,
        });
        self.find_memories(tenant, Kind::Document, criteria, options).await
    }

    #[expect(clippy::too_many_arguments, reason = "the arguments of the contract")]
    pub async fn add_task_memory(
        &self,
        tenant: &str,
        content: &str,
        title: &str,
        status: TaskStatus,
        priority: TaskPriority,
        agent_id: &StructuredId,
        options: TaskOptions,
    ) -> Result<Memory, RecallError> {
        let TaskOptions { description, assigned_to, due_date, parent_task_id, importance, metadata } = options;
        let explicit = json!({
            "title": title, "status": status, "priority": priority, "agentId": agent_id, "description": description,
            "assignedTo": assigned_to, "dueDate": due_date, "parentTaskId": parent_task_id, "importance": importance,
        });
        self.add_memory(tenant, Kind::Task, content, metadata, explicit).await
    }

    /// Tasks that are looked for.
    pub async fn search_tasks(
        &self,
        tenant: &str,
        criteria: &TaskCriteria,
        options: &SearchOptions,
    ) -> Result<Vec<Recalled>, RecallError> {
        let TaskCriteria { agent_id, assigned_to, status, priority, parent_task_id } = criteria;
        let criteria = json!({
            "agentId": agent_id, "assignedTo": assigned_to, "status": status, "priority": priority,
            "parentTaskId": parent_task_id,
        });
        self.find_memories(tenant, Kind::Task, criteria, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::engine::memory::MemoryPatch;
    use crate::memory::stored::{Draft, Keys, SearchKeys};
    use crate::memory::{create_agent_id, create_chat_id, create_thread_info, create_user_id};
    use crate::store::{Sqlite, Store, sqlite};

    const TENANT: &str = "default";

    fn check(test: impl AsyncFnOnce(Engine, Arc<Sqlite>)) {
        let directory = TempDir::new().unwrap();
        let options = sqlite::Options::file(sqlite::file_in(directory.path()));
        let store = Arc::new(Sqlite::start(options, Box::new(|_, _| ())).unwrap());
        let engine = Engine::on(Arc::clone(&store) as Arc<dyn Store>);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test(engine, store));
    }

    fn object(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_message_is_added_and_its_thread_is_read_in_order() {
        check(async |engine, _| {
            let (user, agent) = (create_user_id("john-doe").unwrap(), create_agent_id("assistant").unwrap());
            let chat = create_chat_id("general").unwrap();
            for position in [1, 0, 2] {
                let options = MessageOptions {
                    importance: Some(ImportanceLevel::Medium),
                    message_type: Some("greeting".into()),
                    metadata: object(
                        &json!({"tags": ["initial-contact"], "messageType": "other", "importance_score": 0.9}),
                    ),
                    ..MessageOptions::default()
                };
                let thread = create_thread_info("thread-123", position, None).unwrap();
                let text = format!("at {position}");
                let role = MessageRole::Assistant;
                let memory =
                    engine.add_message_memory(TENANT, &text, role, &user, &agent, &chat, &thread, options).await;
                let metadata = memory.unwrap().metadata;
                assert_eq!(
                    (&metadata["tags"][0], &metadata["messageType"]),
                    (&json!("initial-contact"), &json!("greeting"))
                );
                assert_eq!(metadata["importance_score"], 0.5, "explicit options win");
            }
            let criteria = MessageCriteria { thread_id: Some("thread-123".into()), ..MessageCriteria::default() };
            let options = SearchOptions {
                limit: Some(10),
                sort_by: Some("thread.position".into()),
                descending: Some(false),
                ..SearchOptions::default()
            };
            let found = engine.search_messages(TENANT, &criteria, &options).await.unwrap();
            let texts: Vec<&str> = found.iter().map(|found| found.memory.content.as_str()).collect();
            assert_eq!(texts, ["at 0", "at 1", "at 2"]);
            assert!(engine.search_messages("other", &criteria, &options).await.unwrap().is_empty());
        });
    }

    #[test]
    fn what_is_said_explicitly_wins_whole() {
        let before = object(&json!({
            "thread": {"id": "x", "position": 9, "parentId": "p"}, "importance": "low", "importance_score": 0.1,
            "userId": {"namespace": "user", "type": "user", "id": "x", "version": 3}, "own": {"k": null},
                "title": "kept",
        }));
        let user = json!({"namespace": "user", "type": "user", "id": "u"});
        let explicit =
            json!({"thread": {"id": "t", "position": 0}, "userId": user, "importance": "high", "title": null});
        let whole = json!({
            "thread": {"id": "t", "position": 0}, "importance": "high", "userId": user, "own": {"k": null},
                "title": "kept",
        });
        assert_eq!(Value::Object(over(before.clone(), explicit)), whole);
        assert_eq!(over(before.clone(), json!({"title": null})), before);
    }

    #[test]
    fn the_other_kinds_have_theirs() {
        check(async |engine, _| {
            let agent = create_agent_id("assistant").unwrap();
            let options = CognitiveProcessOptions {
                context_id: Some("conversation-123".into()),
                related_to: vec!["x".into()],
                metadata: object(&json!({"category": "reasoning"})),
                ..CognitiveProcessOptions::default()
            };
            let process = CognitiveProcessType::Thought;
            engine.add_cognitive_process_memory(TENANT, "hm", process, &agent, options).await.unwrap();
            let criteria = CognitiveProcessCriteria { related_to: Some("x".into()), ..Default::default() };
            let all = SearchOptions::default();
            assert_eq!(engine.search_cognitive_processes(TENANT, &criteria, &all).await.unwrap().len(), 1);
            let options = DocumentOptions { title: Some("T".into()), ..DocumentOptions::default() };
            engine.add_document_memory(TENANT, "d", DocumentSource::Web, &agent, options).await.unwrap();
            let criteria =
                DocumentCriteria { title: Some("T".into()), source: Some(DocumentSource::Web), ..Default::default() };
            assert_eq!(engine.search_documents(TENANT, &criteria, &all).await.unwrap().len(), 1);
            let (status, priority) = (TaskStatus::Pending, TaskPriority::High);
            let options = TaskOptions { assigned_to: Some(agent.clone()), ..TaskOptions::default() };
            engine.add_task_memory(TENANT, "t", "title", status, priority, &agent, options).await.unwrap();
            let criteria =
                TaskCriteria { assigned_to: Some(agent.clone()), status: Some(status), ..Default::default() };
            assert_eq!(engine.search_tasks(TENANT, &criteria, &all).await.unwrap().len(), 1);
            let faulty = TaskOptions { metadata: object(&json!({"progres": 1})), ..TaskOptions::default() };
            let refused = engine.add_task_memory(TENANT, "t", "title", status, priority, &agent, faulty).await;
            assert!(matches!(refused, Err(RecallError::Faulty(faults)) if faults[0].pointer() == "/progres"));
        });
    }

    #[test]
    fn what_was_stored_in_an_older_format_is_read_in_the_current_one() {
        check(async |engine, store| {
            let old = json!({"processType": "Thought", "agentId": "bot", "mood": 1, "schemaVersion": "0.9.0"});
            let draft = Draft {
                kind: Kind::CognitiveProcess.number(),
                content: "x".into(),
                metadata: old.to_string(),
                deleted: false,
                keys: Keys::default(),
                index: SearchKeys {
                    words: String::new(),
                    speaker: String::new(),
                    vector: crate::text::embedding::Quantized::from(&crate::text::embedding::Vector::ZERO),
                },
                links: Vec::new(),
            };
            let id = store.memories().add(TENANT, draft, None).unwrap().durable().await.unwrap().memory.id;
            let memory = engine.memory(TENANT, &id, false).await.unwrap();
            let agent = json!({"namespace": "agent", "type": "agent", "id": "bot"});
            assert_eq!((&memory.metadata["agentId"], &memory.metadata["processType"]), (&agent, &json!("thought")));
            assert_eq!((&memory.metadata["schemaVersion"], &memory.metadata["mood"]), (&json!("1.0.0"), &json!(1)));
            let patch = MemoryPatch { content: Some("y".into()), ..MemoryPatch::default() };
            engine.revise_memory(TENANT, &id, None, patch).await.unwrap();
            let (history, _) = engine.memory_history(TENANT, &id, false, u64::MAX, 10).await.unwrap();
            let archive = engine.export_memories(TENANT, "", 10).await.unwrap();
            for past in [&history[0], &archive[0].1[0]] {
                assert_eq!((past.content.as_str(), &past.metadata), ("x", &memory.metadata));
            }
        });
    }
}
