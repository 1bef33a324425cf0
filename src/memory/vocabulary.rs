//! The words of a memory's metadata. Each vocabulary is closed: an unknown word is a fault that lists the known ones.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::strict::{At, FaultCode, FromNode, Node};
use crate::text::near;

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$of:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
        pub enum $name { $($(#[$of])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// All of them, in the order of the vocabulary.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// What the word stands for; nothing if it is not of the vocabulary.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl From<$name> for &'static str {
            fn from(word: $name) -> Self {
                word.as_str()
            }
        }

        impl FromNode for $name {
            fn from_node(node: Node, at: &mut At) -> Option<Self> {
                let word = String::from_node(node, at)?;
                let known = Self::parse(&word);
                if known.is_none() {
                    refuse(&word, $what, Self::ALL.iter().map(|known| known.as_str()).collect(), at);
                }
                known
            }
        }
    };
}

fn refuse(word: &str, what: &str, known: Vec<&'static str>, at: &mut At) {
    let message = format!("{what} is one of {}, not `{}`", known.join(", "), word.chars().take(40).collect::<String>());
    let hint = near::nearest(word, known).map(|near| format!("did you mean `{near}`?"));
    at.fault(FaultCode::BadValue, message, hint);
}

vocabulary! {
    /// Who speaks.
    MessageRole, "a role" {
        /// A person.
        User = "user",
        /// An agent.
        Assistant = "assistant",
        /// The frame around them.
        System = "system",
        /// A tool's answer.
        Tool = "tool",
    }
}

vocabulary! {
    /// How much a memory matters; its number is [`ImportanceLevel::score`].
    ImportanceLevel, "an importance" {
        /// .25, for scores below .3.
        Low = "low",
        /// .5, for scores from .3 on.
        Medium = "medium",
        /// .75, for scores from .6 on.
        High = "high",
        /// .95, for scores from .9 on.
        Critical = "critical",
    }
}

vocabulary! {
    /// What kind of thinking it was.
    CognitiveProcessType, "a process type" {
        /// A thought.
        Thought = "thought",
        /// A look back.
        Reflection = "reflection",
        /// Something understood.
        Insight = "insight",
        /// A plan.
        Planning = "planning",
        /// A judgement.
        Evaluation = "evaluation",
        /// A choice.
        Decision = "decision",
    }
}

vocabulary! {
    /// Where a document came from.
    DocumentSource, "a source" {
        /// A file.
        File = "file",
        /// A page of the web.
        Web = "web",
        /// An interface for programs.
        Api = "api",
        /// A person.
        User = "user",
        /// An agent.
        Agent = "agent",
        /// A tool.
        Tool = "tool",
        /// The system itself.
        System = "system",
    }
}

vocabulary! {
    /// How far a task is.
    TaskStatus, "a status" {
        /// Not begun.
        Pending = "pending",
        /// Begun.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
        /// Given up.
        Cancelled = "cancelled",
        /// Tried in vain.
        Failed = "failed",
    }
}

vocabulary! {
    /// How pressing a task is.
    TaskPriority, "a task's priority" {
        /// When there is time.
        Low = "low",
        /// In its turn.
        Medium = "medium",
        /// Soon.
        High = "high",
        /// Now.
        Urgent = "urgent",
    }
}

vocabulary! {
    /// How pressing a message is.
    MessagePriority, "a message's priority" {
        /// When there is time.
        Low = "low",
        /// In its turn.
        Normal = "normal",
        /// Soon.
        High = "high",
        /// Now.
        Urgent = "urgent",
    }
}

vocabulary! {
    /// What a message between agents is for.
    CommunicationType, "a communication type" {
        /// It asks.
        Request = "request",
        /// It answers.
        Response = "response",
        /// It tells.
        Notification = "notification",
        /// It tells all.
        Broadcast = "broadcast",
    }
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

    /// The level of a score of 0 to 1.
    pub fn of(score: f64) -> Self {
        match score {
            score if score >= 0.9 => Self::Critical,
            score if score >= 0.6 => Self::High,
            score if score >= 0.3 => Self::Medium,
            _ => Self::Low,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::decode::decode;

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
        for &level in ImportanceLevel::ALL {
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
        check(MessageRole::ALL, MessageRole::as_str, "user assistant system tool");
        check(ImportanceLevel::ALL, ImportanceLevel::as_str, "low medium high critical");
        let processes = "thought reflection insight planning evaluation decision";
        check(CognitiveProcessType::ALL, CognitiveProcessType::as_str, processes);
        check(DocumentSource::ALL, DocumentSource::as_str, "file web api user agent tool system");
        check(TaskStatus::ALL, TaskStatus::as_str, "pending in_progress completed cancelled failed");
        check(TaskPriority::ALL, TaskPriority::as_str, "low medium high urgent");
        check(MessagePriority::ALL, MessagePriority::as_str, "low normal high urgent");
        check(CommunicationType::ALL, CommunicationType::as_str, "request response notification broadcast");
    }

    #[test]
    fn a_near_word_is_suggested() {
        let faults = decode::<TaskStatus>(Node::String("in_progres".to_owned())).unwrap_err();
        assert_eq!(faults[0].hint.as_deref(), Some("did you mean `in_progress`?"));
    }
}
