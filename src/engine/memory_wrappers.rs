//! The wrappers of the contract, one to add and one to search for each kind: the explicit arguments and options are merged with
//! the metadata that is given, and the whole is read as strictly as what comes from outside.

use serde_json::{Map, Value, json};

use super::Engine;
use super::memory::{Memory, RecallError, Recalled};
use crate::memory::merge::patched;
use crate::memory::metadata::{MessageAttachment, ThreadInfo};
use crate::memory::search::Recall;
use crate::memory::vocabulary::{
    CognitiveProcessType, DocumentSource, ImportanceLevel, MessageRole, TaskPriority, TaskStatus,
};
use crate::memory::{Kind, Metadata, StructuredId};
use crate::strict::decode::decode_with;

/// Whose memories are meant, and what may be said beside the arguments.
#[derive(Debug, Clone, Default)]
pub struct MessageOptions {
    /// Such as greeting.
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
    /// Its title.
    pub title: Option<String>,
    /// Its media type.
    pub content_type: Option<String>,
    /// Where it is.
    pub url: Option<String>,
    /// Its file's name.
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
    /// Of this person.
    pub user_id: Option<StructuredId>,
    /// Of this agent.
    pub agent_id: Option<StructuredId>,
    /// Of this chat.
    pub chat_id: Option<StructuredId>,
    /// In this role.
    pub role: Option<MessageRole>,
    /// Of this thread.
    pub thread_id: Option<String>,
    /// Of this type.
    pub message_type: Option<String>,
}

/// Which cognitive processes are meant.
#[derive(Debug, Clone, Default)]
pub struct CognitiveProcessCriteria {
    /// Of this agent.
    pub agent_id: Option<StructuredId>,
    /// Of this type.
    pub process_type: Option<CognitiveProcessType>,
    /// In this context.
    pub context_id: Option<String>,
    /// That have to do with this.
    pub related_to: Option<String>,
}

/// Which documents are meant.
#[derive(Debug, Clone, Default)]
pub struct DocumentCriteria {
    /// From there.
    pub source: Option<DocumentSource>,
    /// Of this agent.
    pub agent_id: Option<StructuredId>,
    /// Of this person.
    pub user_id: Option<StructuredId>,
    /// Of this title.
    pub title: Option<String>,
    /// Of this media type.
    pub content_type: Option<String>,
}

/// Which tasks are meant.
#[derive(Debug, Clone, Default)]
pub struct TaskCriteria {
    /// Of this agent.
    pub agent_id: Option<StructuredId>,
    /// For this one to do.
    pub assigned_to: Option<StructuredId>,
    /// So far.
    pub status: Option<TaskStatus>,
    /// So pressing.
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
    /// Largest first?
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

/// What is given, without what is not.
fn given(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

impl Engine {
    async fn add(
        &self,
        tenant: &str,
        kind: Kind,
        content: &str,
        metadata: Map<String, Value>,
        explicit: Value,
    ) -> Result<Memory, RecallError> {
        let merged = Value::Object(patched(metadata, given(explicit)));
        let metadata = decode_with(merged.into(), |node, at| Metadata::read(kind, node, at));
        let metadata = metadata.map_err(RecallError::Faulty)?;
        Ok(self.remember(tenant, content.to_owned(), &metadata, None).await?.0)
    }

    async fn find(
        &self,
        tenant: &str,
        kind: Kind,
        criteria: Value,
        options: &SearchOptions,
    ) -> Result<Vec<Recalled>, RecallError> {
        let asked = json!({"criteria": criteria, "options": options.to_json()});
        let recall = decode_with(asked.into(), |node, at| Recall::read(kind, node, at)).map_err(RecallError::Faulty)?;
        Ok(self.recall(tenant, &recall).await?.memories)
    }

    /// Adds a message.
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
        self.add(tenant, Kind::Message, content, metadata, explicit).await
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
        self.find(tenant, Kind::Message, criteria, options).await
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
        self.add(tenant, Kind::CognitiveProcess, content, metadata, explicit).await
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
        self.find(tenant, Kind::CognitiveProcess, criteria, options).await
    }

    /// Adds a document.
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
        self.add(tenant, Kind::Document, content, metadata, explicit).await
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
        self.find(tenant, Kind::Document, criteria, options).await
    }

    /// Adds a task.
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
        self.add(tenant, Kind::Task, content, metadata, explicit).await
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
        self.find(tenant, Kind::Task, criteria, options).await
    }
}
