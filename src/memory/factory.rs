//! Factories of ids and metadata, under the names of the contract in snake case.
//!
//! Ids are checked when they are made. Details are taken as they are but for the importance, whose missing half is
//! derived; whoever fills them from outside reads them through `strict` first.

use super::cognitive::{CognitiveProcessDetails, CognitiveProcessMetadata};
use super::document::{DocumentDetails, DocumentMetadata};
use super::field::Reference;
use super::id::{EntityType, IdError, StructuredId};
use super::message::{MessageDetails, MessageMetadata};
use super::metadata::{Base, ThreadInfo};
use super::task::{TaskDetails, TaskMetadata};
use super::vocabulary::{
    CognitiveProcessType, CommunicationType, DocumentSource, MessagePriority, MessageRole, TaskPriority, TaskStatus,
};
use crate::strict::Violation;

/// Values that do not make metadata.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactoryError {
    /// Not a name of a thread.
    #[error("`{0}` is no name of a thread: 1 to 512 characters, none of them a control character")]
    Thread(String),
    /// Level and score of the importance say different things.
    #[error(transparent)]
    Importance(#[from] Violation),
}

pub fn create_user_id(id: &str) -> Result<StructuredId, IdError> {
    StructuredId::new("user", "user", id, None)
}

pub fn create_agent_id(id: &str) -> Result<StructuredId, IdError> {
    StructuredId::new("agent", "agent", id, None)
}

pub fn create_chat_id(id: &str) -> Result<StructuredId, IdError> {
    StructuredId::new("chat", "chat", id, None)
}

/// `chat:thread:{id}`: threads live in chats.
pub fn create_thread_id(id: &str) -> Result<StructuredId, IdError> {
    StructuredId::new("chat", "thread", id, None)
}

pub fn create_system_id(entity_type: &EntityType, id: &str) -> Result<StructuredId, IdError> {
    StructuredId::new("system", entity_type.as_str(), id, None)
}

/// The id of a text form; nothing if it is none. Parsing it as a [`StructuredId`] says why not.
pub fn parse_structured_id(text: &str) -> Option<StructuredId> {
    text.parse().ok()
}

/// Where a message stands: 0 is the first position.
pub fn create_thread_info(thread_id: &str, position: u64, parent_id: Option<&str>) -> Result<ThreadInfo, FactoryError> {
    let name = |name: &str| Reference::new(name).ok_or_else(|| FactoryError::Thread(name.chars().take(40).collect()));
    Ok(ThreadInfo { id: name(thread_id)?, position, parent_id: parent_id.map(name).transpose()? })
}

fn settle(base: &mut Base) -> Result<(), FactoryError> {
    Ok(base.agree()?)
}

/// Metadata of a message.
pub fn create_message_metadata(
    role: MessageRole,
    user_id: StructuredId,
    agent_id: StructuredId,
    chat_id: StructuredId,
    thread: ThreadInfo,
    mut details: MessageDetails,
) -> Result<MessageMetadata, FactoryError> {
    settle(&mut details.base)?;
    Ok(MessageMetadata { role, user_id, agent_id, chat_id, thread, details })
}

/// What a message between agents has beside the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Communication {
    pub sender_agent_id: StructuredId,
    /// Who is spoken to; nobody in particular if absent.
    pub receiver_agent_id: Option<StructuredId>,
    /// What it is for.
    pub communication_type: CommunicationType,
    /// How pressing it is.
    pub priority: MessagePriority,
    /// Does the sender wait for an answer?
    pub requires_response: bool,
}

/// Metadata of a message between agents.
pub fn create_enhanced_message_metadata(
    role: MessageRole,
    user_id: StructuredId,
    agent_id: StructuredId,
    chat_id: StructuredId,
    thread: ThreadInfo,
    communication: Communication,
    details: MessageDetails,
) -> Result<MessageMetadata, FactoryError> {
    let details = MessageDetails {
        sender_agent_id: Some(communication.sender_agent_id),
        receiver_agent_id: communication.receiver_agent_id,
        communication_type: Some(communication.communication_type),
        priority: Some(communication.priority),
        requires_response: Some(communication.requires_response),
        ..details
    };
    create_message_metadata(role, user_id, agent_id, chat_id, thread, details)
}

/// Metadata of any cognitive process.
pub fn create_cognitive_process_metadata(
    process_type: CognitiveProcessType,
    agent_id: StructuredId,
    mut details: CognitiveProcessDetails,
) -> Result<CognitiveProcessMetadata, FactoryError> {
    settle(&mut details.base)?;
    Ok(CognitiveProcessMetadata { process_type, agent_id, details })
}

/// Metadata of a thought.
pub fn create_thought_metadata(
    agent_id: StructuredId,
    details: CognitiveProcessDetails,
) -> Result<CognitiveProcessMetadata, FactoryError> {
    create_cognitive_process_metadata(CognitiveProcessType::Thought, agent_id, details)
}

/// Metadata of a reflection.
pub fn create_reflection_metadata(
    agent_id: StructuredId,
    details: CognitiveProcessDetails,
) -> Result<CognitiveProcessMetadata, FactoryError> {
    create_cognitive_process_metadata(CognitiveProcessType::Reflection, agent_id, details)
}

/// Metadata of an insight.
pub fn create_insight_metadata(
    agent_id: StructuredId,
    details: CognitiveProcessDetails,
) -> Result<CognitiveProcessMetadata, FactoryError> {
    create_cognitive_process_metadata(CognitiveProcessType::Insight, agent_id, details)
}

/// Metadata of a plan.
pub fn create_planning_metadata(
    agent_id: StructuredId,
    details: CognitiveProcessDetails,
) -> Result<CognitiveProcessMetadata, FactoryError> {
    create_cognitive_process_metadata(CognitiveProcessType::Planning, agent_id, details)
}

/// Metadata of an evaluation.
pub fn create_evaluation_metadata(
    agent_id: StructuredId,
    details: CognitiveProcessDetails,
) -> Result<CognitiveProcessMetadata, FactoryError> {
    create_cognitive_process_metadata(CognitiveProcessType::Evaluation, agent_id, details)
}

/// Metadata of a decision.
pub fn create_decision_metadata(
    agent_id: StructuredId,
    details: CognitiveProcessDetails,
) -> Result<CognitiveProcessMetadata, FactoryError> {
    create_cognitive_process_metadata(CognitiveProcessType::Decision, agent_id, details)
}

/// Metadata of a document.
pub fn create_document_metadata(
    source: DocumentSource,
    agent_id: StructuredId,
    mut details: DocumentDetails,
) -> Result<DocumentMetadata, FactoryError> {
    settle(&mut details.base)?;
    Ok(DocumentMetadata { source, agent_id, details })
}

/// Metadata of a task.
pub fn create_task_metadata(
    title: &str,
    status: TaskStatus,
    priority: TaskPriority,
    agent_id: StructuredId,
    mut details: TaskDetails,
) -> Result<TaskMetadata, FactoryError> {
    settle(&mut details.base)?;
    Ok(TaskMetadata { title: title.to_owned(), status, priority, agent_id, details })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::Metadata;
    use crate::memory::field::Share;
    use crate::memory::vocabulary::ImportanceLevel;

    #[test]
    fn ids_have_the_namespaces_of_the_contract() {
        for (made, text) in [
            (create_user_id("x"), "user:user:x"),
            (create_agent_id("x"), "agent:agent:x"),
            (create_chat_id("x"), "chat:chat:x"),
            (create_thread_id("a:b"), "chat:thread:a%3Ab"),
            (create_system_id(&EntityType::Message, "x"), "system:message:x"),
            (create_system_id(&EntityType::Other("job".into()), "x"), "system:job:x"),
        ] {
            let made = made.unwrap();
            assert_eq!(made.to_string(), text);
            assert_eq!(parse_structured_id(text), Some(made));
        }
        assert_eq!(parse_structured_id("a:b"), None);
        assert_eq!(create_user_id(""), Err(IdError::Empty("id")));
    }

    type Create = fn(StructuredId, CognitiveProcessDetails) -> Result<CognitiveProcessMetadata, FactoryError>;

    #[test]
    fn each_factory_makes_what_its_name_says() {
        let agent = || create_agent_id("a").unwrap();
        let wire = json!({"namespace": "agent", "type": "agent", "id": "a"});
        let factories: [(Create, &str); 6] = [
            (create_thought_metadata, "thought"),
            (create_reflection_metadata, "reflection"),
            (create_insight_metadata, "insight"),
            (create_planning_metadata, "planning"),
            (create_evaluation_metadata, "evaluation"),
            (create_decision_metadata, "decision"),
        ];
        let disagreeing =
            || Base { importance: Some(ImportanceLevel::Low), importance_score: Share::new(0.9), ..Base::default() };
        for (create, process) in factories {
            let details =
                CognitiveProcessDetails { context_id: Reference::new("c"), ..CognitiveProcessDetails::default() };
            let made = Metadata::CognitiveProcess(create(agent(), details).unwrap()).to_json();
            let whole = json!({"processType": process, "agentId": wire, "contextId": "c", "schemaVersion": "1.0.0"});
            assert_eq!(made, whole);
            let details = CognitiveProcessDetails { base: disagreeing(), ..CognitiveProcessDetails::default() };
            assert!(matches!(create(agent(), details), Err(FactoryError::Importance(_))), "{process}");
        }
        let details = DocumentDetails { title: Some("T".into()), ..DocumentDetails::default() };
        let document = create_document_metadata(DocumentSource::Api, agent(), details).unwrap();
        let whole = json!({"source": "api", "agentId": wire, "title": "T", "schemaVersion": "1.0.0"});
        assert_eq!(Metadata::Document(document).to_json(), whole);
        let details = DocumentDetails { base: disagreeing(), ..DocumentDetails::default() };
        assert!(create_document_metadata(DocumentSource::Api, agent(), details).is_err());
        let (status, priority) = (TaskStatus::Failed, TaskPriority::Urgent);
        let details = TaskDetails { progress: Share::new(0.5), ..TaskDetails::default() };
        let task = create_task_metadata("t", status, priority, agent(), details).unwrap();
        let whole = json!({"title": "t", "status": "failed", "priority": "urgent", "agentId": wire, "progress": 0.5,
            "schemaVersion": "1.0.0"});
        assert_eq!(Metadata::Task(task).to_json(), whole);
        let details = TaskDetails { base: disagreeing(), ..TaskDetails::default() };
        assert!(create_task_metadata("t", status, priority, agent(), details).is_err());
        let thread = create_thread_info("t", 7, Some("p")).unwrap();
        let details = MessageDetails { base: disagreeing(), ..MessageDetails::default() };
        let (user, chat) = (create_user_id("u").unwrap(), create_chat_id("c").unwrap());
        let message = |details| {
            create_message_metadata(MessageRole::Tool, user.clone(), agent(), chat.clone(), thread.clone(), details)
        };
        assert!(message(details).is_err());
        let message = Metadata::Message(message(MessageDetails::default()).unwrap()).to_json();
        let id = |kind: &str, id: &str| json!({"namespace": kind, "type": kind, "id": id});
        let whole = json!({"role": "tool", "userId": id("user", "u"), "agentId": wire, "chatId": id("chat", "c"),
            "thread": {"id": "t", "position": 7, "parentId": "p"}, "schemaVersion": "1.0.0"});
        assert_eq!(message, whole);
    }

    #[test]
    fn metadata_is_whole() {
        let agent = || create_agent_id("a").unwrap();
        let details = CognitiveProcessDetails {
            base: Base { importance: Some(ImportanceLevel::High), ..Base::default() },
            ..CognitiveProcessDetails::default()
        };
        let thought = Metadata::CognitiveProcess(create_thought_metadata(agent(), details).unwrap());
        assert_eq!(
            thought.to_json(),
            json!({
                "processType": "thought", "agentId": {"namespace": "agent", "type": "agent", "id": "a"},
                "importance": "high", "importance_score": 0.75, "schemaVersion": "1.0.0",
            })
        );
        assert!(create_thread_info("t", 0, Some("")).is_err());
        let message = create_enhanced_message_metadata(
            MessageRole::Assistant,
            create_user_id("u").unwrap(),
            agent(),
            create_chat_id("c").unwrap(),
            create_thread_info("t", 3, None).unwrap(),
            Communication {
                sender_agent_id: agent(),
                receiver_agent_id: None,
                communication_type: CommunicationType::Broadcast,
                priority: MessagePriority::Normal,
                requires_response: false,
            },
            MessageDetails::default(),
        );
        let message = Metadata::Message(message.unwrap()).to_json();
        let said = ["senderAgentId", "receiverAgentId", "communicationType", "priority", "requiresResponse"]
            .map(|key| &message[key]);
        let sender = json!({"namespace": "agent", "type": "agent", "id": "a"});
        assert_eq!(said, [&sender, &json!(null), &json!("broadcast"), &json!("normal"), &json!(false)]);
    }
}
