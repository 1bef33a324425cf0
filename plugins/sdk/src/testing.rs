//! Drives a rule through the very functions that the daemon calls, without loading a library.
//!
//! The driver plays a host that is newer than this crate: its structs and its arrays' elements are longer than the
//! library knows, so whoever ignores sizes and strides fails here and not in five years.
//!
//! ```
//! # use almanac_plugin::{Error, Request, Rule, Setup, Sink};
//! use almanac_plugin::Complexity;
//! use almanac_plugin::testing::{Call, Driver, Tool};
//! # struct MyRule;
//! # impl Rule for MyRule {
//! #     fn create(_: &Setup<'_>) -> Result<Self, Error> { Ok(Self) }
//! #     fn suggest(&mut self, _: &Request<'_>, _: &mut Sink<'_>) {}
//! # }
//!
//! let mut driver = Driver::new::<MyRule>("{}")?;
//! driver.snapshot(1, &[Tool::new("web_fetch", "web"), Tool::new("web_search", "web")])?;
//! let suggested = driver.suggest(&Call::after("web_search").outputs(3).complexity(Complexity::Simple))?;
//! assert_eq!(suggested, []);
//! # Ok::<(), almanac_plugin::testing::Failure>(())
//! ```

mod call;
mod host;
mod longer;

pub use call::{Call, Tool};

use std::ffi::c_void;
use std::rc::Rc;
use std::{fmt, ptr};

use almanac_plugin_abi::{self as abi, Record, Str, Vtable, code, read_prefix};

use crate::{Rule, export};
use host::HostState;
use longer::Longer;

/// How many suggestions the driver's sink takes before it says stop.
pub const MOST_SUGGESTIONS: usize = 64;

/// A suggestion as the daemon would have got it.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// The tool's name.
    pub tool: String,
    /// Why.
    pub reason: String,
    /// From 0 to 1, clamped.
    pub score: f64,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The return code; see the header's `ALMANAC_E_*`.
    pub code: i32,
    /// What the library said last at the level of errors, as the daemon would show it.
    pub reason: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}: {}", self.code, self.reason.as_deref().unwrap_or("the library said nothing"))
    }
}

impl std::error::Error for Failure {}

/// One instance of a rule, and a host around it.
#[derive(Debug)]
pub struct Driver {
    vtable: Vtable,
    instance: *mut c_void,
    // The library keeps its address, so it must not move with the driver.
    host: Rc<HostState>,
}

impl Driver {
    /// Makes an instance of a rule with this configuration, a JSON object.
    pub fn new<R: Rule>(config: &str) -> Result<Self, Failure> {
        // SAFETY: the functions of this crate keep the rules of the interface.
        unsafe { Self::of(export::vtable::<R>(), config) }
    }

    /// Makes an instance of a library in any language, by its entry function.
    ///
    /// # Safety
    /// The library keeps the rules of the interface, and stays loaded as long as the driver lives.
    pub unsafe fn from_entry(entry: abi::EntryFn, config: &str) -> Result<Self, Failure> {
        let unsound = |what: &str| Failure { code: code::INVALID, reason: Some(what.to_owned()) };
        // SAFETY: an entry may be called at any time by the contract.
        let descriptor = unsafe { entry() };
        // SAFETY: a descriptor and its table start with their sizes, have as many bytes, and are static.
        unsafe {
            let descriptor = read(descriptor).ok_or_else(|| unsound("no descriptor, or one that is too small"))?;
            let vtable = read(descriptor.vtable).ok_or_else(|| unsound("no table, or one that is too small"))?;
            Self::of(vtable, config)
        }
    }

    /// # Safety
    /// The functions keep the rules of the interface as long as the driver lives.
    unsafe fn of(vtable: Vtable, config: &str) -> Result<Self, Failure> {
        let mut driver = Self { vtable, instance: ptr::null_mut(), host: HostState::new() };
        let create = driver.vtable.create.ok_or_else(|| driver.failure(code::UNSUPPORTED))?;
        let mut instance = ptr::null_mut();
        // SAFETY: the host lives longer than the instance, the configuration as long as the call.
        let code = unsafe { create(driver.host.table(), Str::new(config), &raw mut instance) };
        driver.done(code)?;
        if instance.is_null() {
            return Err(driver.failure(code::INTERNAL));
        }
        driver.instance = instance;
        Ok(driver)
    }

    /// Tells the catalog. The daemon orders tools by name, and so does this.
    pub fn snapshot(&mut self, generation: u64, tools: &[Tool]) -> Result<(), Failure> {
        let Some(on_snapshot) = self.vtable.on_snapshot else { return Ok(()) };
        let mut tools: Vec<_> = tools.iter().collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let lists: Vec<_> =
            tools.iter().map(|tool| (longer::texts(&tool.capabilities), longer::texts(&tool.keywords))).collect();
        let tools: Vec<_> = tools
            .iter()
            .zip(&lists)
            .map(|(tool, (capabilities, keywords))| {
                Longer::new(abi::Tool {
                    name: Str::new(&tool.name),
                    category: Str::new(&tool.category),
                    capabilities: abi::Array::new(capabilities),
                    keywords: abi::Array::new(keywords),
                })
            })
            .collect();
        let snapshot = Longer::new(abi::Snapshot {
            struct_size: Longer::<abi::Snapshot>::SIZE,
            reserved: 0,
            generation,
            tools: abi::Array::new(&tools),
        });
        // SAFETY: the instance lives, and everything in the snapshot outlives the call.
        let code = unsafe { on_snapshot(self.instance, &raw const snapshot.known) };
        self.done(code)
    }

    /// Asks for suggestions.
    pub fn suggest(&mut self, call: &Call) -> Result<Vec<Suggestion>, Failure> {
        let suggest = self.vtable.suggest.ok_or_else(|| self.failure(code::UNSUPPORTED))?;
        let mut taken = Vec::new();
        let sink = Longer::new(abi::Sink {
            struct_size: Longer::<abi::Sink>::SIZE,
            reserved: 0,
            context: (&raw mut taken).cast(),
            push: Some(push),
        });
        let code = call.with_raw(|request| {
            // SAFETY: the instance lives, and request and sink outlive the call.
            unsafe { suggest(self.instance, request, &raw const sink.known) }
        });
        self.done(code)?;
        Ok(taken)
    }

    /// What the library has said so far: the level, from 1 for errors to 5 for traces, and the message.
    pub fn messages(&self) -> Vec<(i32, String)> {
        self.host.messages()
    }

    /// Whether the library is told that nobody waits for it.
    pub fn cancel(&self, cancelled: bool) {
        self.host.cancel(cancelled);
    }

    fn done(&self, code: i32) -> Result<(), Failure> {
        if code < 0 { Err(self.failure(code)) } else { Ok(()) }
    }

    fn failure(&self, code: i32) -> Failure {
        let said = self.host.messages().into_iter().rfind(|(level, _)| *level == abi::level::ERROR);
        Failure { code, reason: said.map(|(_, message)| message) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let (Some(destroy), false) = (self.vtable.destroy, self.instance.is_null()) {
            // SAFETY: made by `create`, and nobody uses it after this.
            unsafe { destroy(self.instance) };
        }
    }
}

/// A record that starts with its size; None if it is absent or too small.
///
/// # Safety
/// It is null, or as readable as it says.
unsafe fn read<T: Record>(record: *const T) -> Option<T> {
    if record.is_null() {
        return None;
    }
    // SAFETY: all such records start with their size.
    let size = unsafe { record.cast::<u32>().read() };
    // SAFETY: by the contract.
    unsafe { read_prefix(record, size as usize) }
}

/// The sink's end: copies, refuses what breaks the rules, clamps, and says stop.
unsafe extern "C" fn push(sink: *const abi::Sink, suggestion: *const abi::Suggestion) -> i32 {
    // SAFETY: the sink of `suggest`, whose context is its list; nobody else has it during the call.
    let taken = unsafe { &mut *(*sink).context.cast::<Vec<Suggestion>>() };
    // SAFETY: a suggestion is as long as it says.
    let Some(suggestion) = (unsafe { read(suggestion) }) else { return code::INVALID };
    // SAFETY: its texts are borrowed for the call.
    let texts = unsafe { (crate::view::text(suggestion.tool), crate::view::text(suggestion.reason)) };
    let (Ok(Some(tool)), Ok(Some(reason))) = texts else { return code::INVALID };
    if tool.is_empty() || reason.is_empty() || suggestion.score.is_nan() {
        return code::INVALID;
    }
    if taken.len() < MOST_SUGGESTIONS {
        let score = suggestion.score.clamp(0.0, 1.0);
        taken.push(Suggestion { tool: tool.to_owned(), reason: reason.to_owned(), score });
    }
    if taken.len() < MOST_SUGGESTIONS { code::OK } else { code::STOP }
}
