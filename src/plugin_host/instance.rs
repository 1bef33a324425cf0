//! A library that is loaded, and its one instance: safe calls around the functions of the interface.
//!
//! The only place, beside the functions that a library calls back, where foreign code is entered. What a library says
//! about itself is copied when it is loaded; nothing of it is looked at twice. A library is never unloaded: reopening a
//! path can give the old code, and a library's thread-local destructors crash once its code is gone.
#![allow(unsafe_code, reason = "calls foreign code")]

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::time::Duration;

use almanac_plugin_abi::{
    self as abi, ABI_MINOR, Array, Descriptor, ENTRY_SYMBOL, EntryFn, FLAGS_MUST_KNOW, Pair, Request, Str, Vtable,
    code, complexity, read_prefix,
};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::ask::{Ask, ComplexityLevel, Proposal, Snapshot};
use super::services::{LogSink, Services, now_ns};
use super::sink::Collector;
use super::text;
use super::wire::{Hello, MAX_PROPOSALS, Refusal};

/// Longest text of a descriptor, in bytes; longer ones are cut.
const MAX_ABOUT_BYTES: usize = 256;

/// A library cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum InstanceError {
    #[error("it cannot be loaded")]
    Load(#[source] libloading::Error),
    #[error(
        "it exports no `{}`: its entry has another name or is hidden, it was built for another major version of the \
         interface, \
         or it is no rule library",
        ENTRY_SYMBOL.to_string_lossy()
    )]
    Entry(#[source] libloading::Error),
    #[error("{0}")]
    Descriptor(&'static str),
    #[error("it was built for version 1.{0} of the interface, and this host has 1.{ABI_MINOR}")]
    Minor(u32),
    #[error("its descriptor says {descriptor}, and its note says {noted}")]
    Note { descriptor: String, noted: String },
    #[error("its `create` failed: {0}")]
    Create(String),
}

/// A loaded library with its instance.
pub(super) struct Instance {
    vtable: Vtable,
    about: Hello,
    services: &'static Services,
    collector: &'static Collector,
    settings: String,
    pointer: Option<NonNull<c_void>>,
    generation: u64,
}

// SAFETY: the interface lets `create`, `destroy` and `suggest` be called on any thread, one at a time, which `&mut`
// ensures.
unsafe impl Send for Instance {}

impl Instance {
    /// Loads the library at `path`, whose note says `noted`, and makes an instance from `settings`, a JSON object.
    pub(super) fn load(
        path: &Path,
        noted: (&str, &str),
        settings: String,
        log: LogSink,
    ) -> Result<Self, InstanceError> {
        // SAFETY: runs the library's constructors, which is what the caller wants and has confined as far as it is to
        // be.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(InstanceError::Load)?;
        // Never unloaded; see above.
        let library = ManuallyDrop::new(library);
        // SAFETY: the interface gives the function of this name this type.
        let entry = unsafe { library.get::<EntryFn>(ENTRY_SYMBOL.to_bytes_with_nul()) };
        let entry = entry.map_err(InstanceError::Entry)?;
        // SAFETY: the interface lets the entry function be called at any time after loading.
        let descriptor = unsafe { describe(entry()) }?;
        // SAFETY: the descriptor is one, by the interface.
        let (vtable, about) = unsafe { (functions(&descriptor)?, about(&descriptor)?) };
        if (about.id.as_str(), about.version.as_str()) != noted {
            let descriptor = format!("{} {}", about.id, about.version);
            return Err(InstanceError::Note { descriptor, noted: format!("{} {}", noted.0, noted.1) });
        }
        let services = Services::leak(log);
        let collector = Collector::leak();
        let mut instance = Self { vtable, about, services, collector, settings, pointer: None, generation: 0 };
        instance.create()?;
        Ok(instance)
    }

    /// What the library says about itself.
    pub(super) fn about(&self) -> &Hello {
        &self.about
    }

    /// What it was made from.
    pub(super) fn settings(&self) -> &str {
        &self.settings
    }

    /// The generation that was told last.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    fn create(&mut self) -> Result<(), InstanceError> {
        let settings = self.settings.clone();
        self.pointer = Some(self.make(&settings).map_err(|refusal| InstanceError::Create(refusal.message))?);
        Ok(())
    }

    /// Makes a further instance, from any text.
    pub(super) fn make(&self, settings: &str) -> Result<NonNull<c_void>, Refusal> {
        let mut pointer = ptr::null_mut();
        let create = self.vtable.create.expect("`functions` saw to it");
        // SAFETY: the host's table and the place for the pointer live, the settings are lent, and nothing else runs.
        let returned = unsafe { create(self.services.host(), Str::new(settings), &raw mut pointer) };
        self.judge(returned)?;
        NonNull::new(pointer)
            .ok_or_else(|| Refusal { message: "it made no instance, and reported success".to_owned(), for_good: false })
    }

    /// Destroys an instance that [`Instance::make`] made, and that is not used again.
    pub(super) fn unmake(&self, pointer: NonNull<c_void>) {
        let destroy = self.vtable.destroy.expect("`functions` saw to it");
        // SAFETY: made by this library's `create`, destroyed once.
        unsafe { destroy(pointer.as_ptr()) };
    }

    /// Destroys the instance and makes it again. It has to be told the catalog anew.
    pub(super) fn remake(&mut self) -> Result<(), InstanceError> {
        self.destroy();
        self.create()
    }

    fn destroy(&mut self) {
        if let Some(pointer) = self.pointer.take() {
            self.unmake(pointer);
        }
    }

    pub(super) fn set_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), Refusal> {
        self.generation = snapshot.generation;
        let (Some(on_snapshot), Some(pointer)) = (self.vtable.on_snapshot, self.pointer) else { return Ok(()) };
        let texts: Vec<Vec<Str>> =
            snapshot.tools.iter().flat_map(|tool| [strs(&tool.capabilities), strs(&tool.keywords)]).collect();
        let tools: Vec<abi::Tool> = (snapshot.tools.iter().zip(texts.chunks_exact(2)))
            .map(|(tool, texts)| abi::Tool {
                name: Str::new(&tool.name),
                category: Str::new(&tool.category),
                capabilities: Array::new(&texts[0]),
                keywords: Array::new(&texts[1]),
            })
            .collect();
        let snapshot = abi::Snapshot {
            struct_size: size_of::<abi::Snapshot>() as u32,
            reserved: 0,
            generation: snapshot.generation,
            tools: Array::new(&tools),
        };
        // SAFETY: all that the snapshot points to lives until the call returns, and nothing else runs.
        let returned = unsafe { on_snapshot(pointer.as_ptr(), &raw const snapshot) };
        self.judge(returned)
    }

    /// Asks for proposals. Nobody waits for longer than `patience`.
    pub(super) fn ask(&mut self, ask: &Ask<impl AsRef<str>>, patience: Duration) -> Result<Vec<Proposal>, Refusal> {
        let Some(pointer) = self.pointer else { return Ok(Vec::new()) };
        self.ask_of(pointer, ask, patience, MAX_PROPOSALS, |_| {})
    }

    /// Asks an instance; `bend` may change the request before it is sent.
    pub(super) fn ask_of(
        &self,
        pointer: NonNull<c_void>,
        ask: &Ask<impl AsRef<str>>,
        patience: Duration,
        most: usize,
        bend: impl FnOnce(&mut Request),
    ) -> Result<Vec<Proposal>, Refusal> {
        let bent = |request: &mut Request| {
            bend(request);
            &raw const *request
        };
        self.ask_with(pointer, ask, patience, most, bent)
    }

    /// Asks an instance by the request that `send` points to: the one it is given, or one that is made of it and lives
    /// on.
    pub(super) fn ask_with(
        &self,
        pointer: NonNull<c_void>,
        ask: &Ask<impl AsRef<str>>,
        patience: Duration,
        most: usize,
        send: impl FnOnce(&mut Request) -> *const Request,
    ) -> Result<Vec<Proposal>, Refusal> {
        let deadline_ns = now_ns().saturating_add(patience.as_nanos() as u64);
        let history = strs(&ask.history);
        let mut facts: Vec<(&str, &str)> =
            ask.context.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
        facts.sort_unstable();
        let pair = |(key, value)| Pair { key: Str::new(key), value: Str::new(value) };
        let context: Vec<Pair> = facts.into_iter().map(pair).collect();
        let maybe = |text: &Option<_>| text.as_ref().map(AsRef::as_ref).into();
        let mut request = Request {
            struct_size: size_of::<Request>() as u32,
            complexity: ask.complexity.map_or(complexity::ABSENT, number_of),
            generation: self.generation,
            tool: Str::new(ask.tool.as_ref()),
            mode: maybe(&ask.mode),
            session_id: maybe(&ask.session_id),
            goal: maybe(&ask.goal),
            num_outputs: ask.num_outputs,
            has_branches: ask.has_branches.into(),
            reserved: 0,
            history: Array::new(&history),
            context: Array::new(&context),
            deadline_ns,
        };
        let sent = send(&mut request);
        self.services.set_deadline(deadline_ns);
        let sink = self.collector.open(most);
        let suggest = self.vtable.suggest.expect("`functions` saw to it");
        // SAFETY: all that the request points to lives until the call returns, the sink for ever, and nothing else
        // runs.
        let returned = unsafe { suggest(pointer.as_ptr(), sent, sink) };
        self.services.set_deadline(0);
        let proposals = self.collector.close();
        for flaw in self.collector.new_flaws() {
            self.services.warn(&flaw.to_string());
        }
        self.judge(returned).map(|()| proposals)
    }

    /// What was wrong with proposals so far, each kind once.
    pub(super) fn flaws(&self) -> Vec<String> {
        self.collector.flaws().iter().map(ToString::to_string).collect()
    }

    /// What a return code means.
    fn judge(&self, returned: i32) -> Result<(), Refusal> {
        let said = self.services.take_error();
        if returned >= 0 {
            return Ok(());
        }
        let message = said.unwrap_or_else(|| match returned {
            code::INVALID => "it refuses an argument".to_owned(),
            code::UNSUPPORTED => "it finds this host too old".to_owned(),
            code::CONFIG => "its configuration is wrong".to_owned(),
            code::INTERNAL => "it failed, and did not say why".to_owned(),
            code::PANICKED => "it panicked".to_owned(),
            code::CANCELLED => "it gave up".to_owned(),
            _ => format!("it returned {returned}"),
        });
        Err(Refusal { message, for_good: returned == code::PANICKED })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.destroy();
    }
}

fn strs(texts: &[impl AsRef<str>]) -> Vec<Str> {
    texts.iter().map(|text| Str::new(text.as_ref())).collect()
}

fn number_of(complexity: ComplexityLevel) -> i32 {
    match complexity {
        ComplexityLevel::Simple => complexity::SIMPLE,
        ComplexityLevel::Moderate => complexity::MODERATE,
        ComplexityLevel::Complex => complexity::COMPLEX,
    }
}

/// # Safety
/// `descriptor` is null, or a descriptor as long as it says.
unsafe fn describe(descriptor: *const Descriptor) -> Result<Descriptor, InstanceError> {
    if descriptor.is_null() {
        return Err(InstanceError::Descriptor("its entry function returns nothing"));
    }
    // SAFETY: the size is the first field of every version, and covers the rest.
    let known = unsafe { read_prefix(descriptor, descriptor.cast::<u32>().read_unaligned() as usize) };
    let known = known.ok_or(InstanceError::Descriptor("its descriptor is smaller than that of version 1.0"))?;
    if known.abi_minor > ABI_MINOR {
        return Err(InstanceError::Minor(known.abi_minor));
    }
    if known.flags & FLAGS_MUST_KNOW != 0 {
        return Err(InstanceError::Descriptor("its flags demand something that this host does not know"));
    }
    Ok(known)
}

/// # Safety
/// The descriptor points to a table of functions as long as it says, or to nothing.
unsafe fn functions(descriptor: &Descriptor) -> Result<Vtable, InstanceError> {
    if descriptor.vtable.is_null() {
        return Err(InstanceError::Descriptor("it has no table of functions"));
    }
    // SAFETY: the size is the first field of every version, and covers the rest.
    let known = unsafe { read_prefix(descriptor.vtable, descriptor.vtable.cast::<u32>().read_unaligned() as usize) };
    let known = known.ok_or(InstanceError::Descriptor("its table of functions is smaller than that of version 1.0"))?;
    if known.create.is_none() || known.destroy.is_none() || known.suggest.is_none() {
        return Err(InstanceError::Descriptor("it lacks `create`, `destroy` or `suggest`, which are required"));
    }
    Ok(known)
}

/// # Safety
/// The descriptor's texts are readable.
unsafe fn about(descriptor: &Descriptor) -> Result<Hello, InstanceError> {
    let said = |text: Str, what: &'static str| {
        // SAFETY: by the contract; the texts are static.
        let text = unsafe { text::cut(text, MAX_ABOUT_BYTES) };
        text.map(str::to_owned).ok_or(InstanceError::Descriptor(what))
    };
    let maybe = |text: Str| said(text, "").unwrap_or_default();
    Ok(Hello {
        id: said(descriptor.id, "its id is no UTF-8")?,
        name: maybe(descriptor.name),
        version: said(descriptor.version, "its version is no UTF-8")?,
        vendor: maybe(descriptor.vendor),
        url: maybe(descriptor.url),
        abi_minor: descriptor.abi_minor,
        // SAFETY: `functions` was read before.
        wants_snapshots: unsafe { functions(descriptor) }?.on_snapshot.is_some(),
        ..Hello::default()
    })
}
