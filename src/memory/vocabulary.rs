//! The words of a memory's metadata. Each vocabulary is closed: an unknown word is a fault that lists the known ones.

use schemars::JsonSchema;
use serde::Serialize;

use crate::strict::Word;

/// Who wrote the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "a role")]
pub enum MessageRole {
    /// A person.
    User,
    /// An agent.
    Assistant,
    /// The frame around them.
    System,
    /// A tool's answer.
    Tool,
}

/// How much a memory matters; its number is [`ImportanceLevel::score`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "an importance")]
pub enum ImportanceLevel {
    /// .25, for scores below .3.
    Low,
    /// .5, for scores from .3 on.
    Medium,
    /// .75, for scores from .6 on.
    High,
    /// .95, for scores from .9 on.
    Critical,
}

/// What kind of thinking it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "a process type")]
pub enum CognitiveProcessType {
    /// A thought.
    Thought,
    /// A look back.
    Reflection,
    /// Something understood.
    Insight,
    /// A plan.
    Planning,
    /// A judgement.
    Evaluation,
    /// A choice.
    Decision,
}

/// Where a document came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "a source")]
pub enum DocumentSource {
    /// A file.
    File,
    /// A page of the web.
    Web,
    /// An interface for programs.
    Api,
    /// A person.
    User,
    /// An agent.
    Agent,
    /// A tool.
    Tool,
    /// The system itself.
    System,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "a status")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
    /// Tried in vain.
    Failed,
}

/// How pressing a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "a task's priority")]
pub enum TaskPriority {
    /// When there is time.
    Low,
    /// In its turn.
    Medium,
    /// Soon.
    High,
    /// Now.
    Urgent,
}

/// How pressing a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "a message's priority")]
pub enum MessagePriority {
    /// When there is time.
    Low,
    /// In its turn.
    Normal,
    /// Soon.
    High,
    /// Now.
    Urgent,
}

/// What a message between agents is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "a communication type")]
pub enum CommunicationType {
    /// It asks.
    Request,
    /// It answers.
    Response,
    /// It tells.
    Notification,
    /// It tells all.
    Broadcast,
}

impl ImportanceLevel {
    /// The number that stands for the level.
    pub fn score(self) -> f64 {
        match self {
            Self::Low => 0.25,
            Self::Medium => 0.5,
            Self::High => 0.75,
            Self::Critical => 0.95,
        }
    }

    /// The least score of the level.
    pub fn least(self) -> f64 {
        match self {
            Self::Low => 0.0,
            Self::Medium => 0.3,
            Self::High => 0.6,
            Self::Critical => 0.9,
        }
    }

    /// The level of a score of 0 to 1.
    pub fn of(score: f64) -> Self {
        Self::ALL.into_iter().rfind(|level| score >= level.least()).unwrap_or(Self::Low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::decode::decode;
    use crate::strict::{FromNode, Node};

    #[test]
    fn levels_have_the_scores_of_the_scale() {
        for (score, level) in [
            (0.0, "low"),
            (0.29, "low"),
            (0.3, "medium"),
            (0.59, "medium"),
            (0.6, "high"),
            (0.89, "high"),
            (0.9, "critical"),
            (1.0, "critical"),
        ] {
            assert_eq!(ImportanceLevel::of(score).as_str(), level, "{score}");
        }
        for level in ImportanceLevel::ALL {
            assert_eq!(ImportanceLevel::of(level.score()), level);
        }
    }

    fn check<T: FromNode + Copy>(all: &[T], as_str: fn(T) -> &'static str, words: &str) {
        let spelt: Vec<&str> = all.iter().map(|&word| as_str(word)).collect();
        assert_eq!(spelt.join(" "), words);
        for word in spelt {
            assert_eq!(decode::<T>(Node::String(word.to_owned())).map(as_str), Ok(word));
        }
        assert!(decode::<T>(Node::String("no such word".to_owned())).is_err());
    }

    #[test]
    fn vocabularies_are_spelt_as_in_the_contract() {
        check(&MessageRole::ALL, MessageRole::as_str, "user assistant system tool");
        check(&ImportanceLevel::ALL, ImportanceLevel::as_str, "low medium high critical");
        let processes = "thought reflection insight planning evaluation decision";
        check(&CognitiveProcessType::ALL, CognitiveProcessType::as_str, processes);
        check(&DocumentSource::ALL, DocumentSource::as_str, "file web api user agent tool system");
        check(&TaskStatus::ALL, TaskStatus::as_str, "pending in_progress completed cancelled failed");
        check(&TaskPriority::ALL, TaskPriority::as_str, "low medium high urgent");
        check(&MessagePriority::ALL, MessagePriority::as_str, "low normal high urgent");
        check(&CommunicationType::ALL, CommunicationType::as_str, "request response notification broadcast");
    }

    #[test]
    fn a_near_word_is_suggested() {
        let faults = decode::<TaskStatus>(Node::String("in_progres".to_owned())).unwrap_err();
        assert_eq!(faults[0].hint.as_deref(), Some("did you mean `in_progress`?"));
    }
}
