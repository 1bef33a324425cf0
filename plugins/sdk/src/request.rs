//! What has happened, as a rule sees it.

use almanac_plugin_abi::{self as abi, complexity, read_prefix};

use crate::view::{Invalid, text};
use crate::{Host, Pairs, Strings};

/// How complex a result was, as its tool judged it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Complexity {
    /// "simple".
    Simple,
    /// "moderate".
    Moderate,
    /// "complex".
    Complex,
    /// A degree that this version of the crate has no name for.
    Other(i32),
}

/// A call that has ended, and what is known about it. Everything in it is borrowed for the length of the call.
#[derive(Debug)]
pub struct Request<'a> {
    host: Host<'a>,
    complexity: i32,
    generation: u64,
    tool: &'a str,
    mode: Option<&'a str>,
    session_id: Option<&'a str>,
    goal: Option<&'a str>,
    num_outputs: u64,
    has_branches: bool,
    history: Strings<'a>,
    context: Pairs<'a>,
    deadline_ns: u64,
}

impl<'a> Request<'a> {
    /// # Safety
    /// `request` is null, or a request that is readable and doesn't change for `'a`.
    pub(crate) unsafe fn new(request: *const abi::Request, host: Host<'a>) -> Result<Self, Invalid> {
        if request.is_null() {
            return Err(Invalid("there is no request"));
        }
        // SAFETY: every request starts with its size, by the contract.
        let size = unsafe { (&raw const (*request).struct_size).read() };
        // SAFETY: it has as many bytes as it says.
        let raw = unsafe { read_prefix(request, size as usize) }.ok_or(Invalid("a request is too small"))?;
        // SAFETY: the texts and arrays of a request live as long as it does.
        unsafe {
            Ok(Self {
                host,
                complexity: raw.complexity,
                generation: raw.generation,
                tool: text(raw.tool)?.ok_or(Invalid("a request without a tool"))?,
                mode: text(raw.mode)?,
                session_id: text(raw.session_id)?,
                goal: text(raw.goal)?,
                num_outputs: raw.num_outputs,
                has_branches: raw.has_branches != 0,
                history: Strings::new(raw.history)?,
                context: Pairs::new(raw.context)?,
                deadline_ns: raw.deadline_ns,
            })
        }
    }

    /// The services of the daemon.
    pub fn host(&self) -> Host<'a> {
        self.host
    }

    /// The tool that was called.
    pub fn tool(&self) -> &'a str {
        self.tool
    }

    /// The mode that it ran in.
    pub fn mode(&self) -> Option<&'a str> {
        self.mode
    }

    /// How complex the result was, if the tool said so.
    pub fn complexity(&self) -> Option<Complexity> {
        match self.complexity {
            complexity::ABSENT => None,
            complexity::SIMPLE => Some(Complexity::Simple),
            complexity::MODERATE => Some(Complexity::Moderate),
            complexity::COMPLEX => Some(Complexity::Complex),
            other => Some(Complexity::Other(other)),
        }
    }

    /// How many results the tool gave; 0 if nobody said.
    pub fn num_outputs(&self) -> u64 {
        self.num_outputs
    }

    /// Whether the result has open branches.
    pub fn has_branches(&self) -> bool {
        self.has_branches
    }

    /// The session that the call belongs to.
    pub fn session_id(&self) -> Option<&'a str> {
        self.session_id
    }

    /// What the agent is after, in words.
    pub fn goal(&self) -> Option<&'a str> {
        self.goal
    }

    /// Tools called recently, the oldest first, repeats kept.
    pub fn history(&self) -> Strings<'a> {
        self.history
    }

    /// Further facts about the result.
    pub fn context(&self) -> Pairs<'a> {
        self.context
    }

    /// The generation of the catalog; [`Rule::on_snapshot`](crate::Rule::on_snapshot) has seen it.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// When the answer goes out without this library, on the clock of [`Host::now`]; None for never.
    pub fn deadline(&self) -> Option<std::time::Duration> {
        (self.deadline_ns > 0).then(|| std::time::Duration::from_nanos(self.deadline_ns))
    }
}
