//! The catalog, as a rule sees it.

use std::fmt;

use almanac_plugin_abi::{self as abi, read_prefix};

use crate::view::{Invalid, List, text};
use crate::{Host, Strings};

/// A tool of the catalog.
#[derive(Debug, Clone, Copy)]
pub struct Tool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its category; may be empty.
    pub category: &'a str,
    /// What it can do, in single terms.
    pub capabilities: Strings<'a>,
    /// Words by which it is found.
    pub keywords: Strings<'a>,
}

impl Tool<'_> {
    /// # Safety
    /// The texts and arrays are readable and don't change as long as the result lives.
    unsafe fn new(raw: &abi::Tool) -> Result<Self, Invalid> {
        // SAFETY: by the contract.
        unsafe {
            Ok(Self {
                name: text(raw.name)?.ok_or(Invalid("a tool without a name"))?,
                category: text(raw.category)?.unwrap_or_default(),
                capabilities: Strings::new(raw.capabilities)?,
                keywords: Strings::new(raw.keywords)?,
            })
        }
    }
}

/// All tools of one generation of the catalog, ordered by name. Borrowed for the length of the call: copy what you
/// keep.
pub struct Snapshot<'a> {
    host: Host<'a>,
    generation: u64,
    tools: List<'a, abi::Tool>,
}

impl<'a> Snapshot<'a> {
    /// # Safety
    /// `snapshot` is null, or a snapshot that is readable and doesn't change for `'a`.
    pub(crate) unsafe fn new(snapshot: *const abi::Snapshot, host: Host<'a>) -> Result<Self, Invalid> {
        if snapshot.is_null() {
            return Err(Invalid("there is no snapshot"));
        }
        // SAFETY: every snapshot starts with its size, by the contract.
        let size = unsafe { (&raw const (*snapshot).struct_size).read() };
        // SAFETY: it has as many bytes as it says.
        let raw = unsafe { read_prefix(snapshot, size as usize) }.ok_or(Invalid("a snapshot is too small"))?;
        // SAFETY: the tools of a snapshot live as long as it does.
        let tools = unsafe { List::<abi::Tool>::new(raw.tools) }?;
        for tool in tools.iter() {
            // SAFETY: and so do their texts.
            unsafe { Tool::new(&tool) }?;
        }
        Ok(Self { host, generation: raw.generation, tools })
    }

    /// The services of the daemon.
    pub fn host(&self) -> Host<'a> {
        self.host
    }

    /// Grows with every change of the catalog.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How many tools.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All tools, ordered by name.
    pub fn tools(&self) -> impl DoubleEndedIterator<Item = Tool<'a>> + ExactSizeIterator + use<'a> {
        self.tools.iter().map(|raw| {
            // SAFETY: the texts live for `'a` by the contract of `new`.
            unsafe { Tool::new(&raw) }.expect("`new` has looked at every tool, and they don't change")
        })
    }
}

impl fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { generation, tools, .. } = self;
        f.debug_struct("Snapshot").field("generation", generation).field("tools", &tools.len()).finish_non_exhaustive()
    }
}
