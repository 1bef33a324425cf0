//! From the trait to the C table: what [`export_plugin!`](crate::export_plugin) is made of. Not for use by hand.
//!
//! Every function that C calls runs the author's code behind `guarded`: a panic must not cross the boundary, and what
//! panicked is dropped, as it may be half changed.

use std::ffi::c_void;
use std::mem;
use std::panic::{self, AssertUnwindSafe};

use almanac_plugin_abi::{ABI_MINOR, Descriptor, Host, Note, Request, Sink, Snapshot, Str, Vtable, code};

use crate::host::{Level, Services};
use crate::view::{Invalid, text};
use crate::{Error, Rule, Setup};

/// What a library says of itself; the keys of the macro.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// Reverse DNS: 1 to 127 of `a-z 0-9 - _ .`, with at least one dot.
    pub id: &'static str,
    /// For people.
    pub name: &'static str,
    /// 1 to 63 bytes of printable ASCII; the package's version if not given.
    pub version: &'static str,
    /// Who made it; may be empty.
    pub vendor: &'static str,
    /// Where to read about it; may be empty.
    pub url: &'static str,
    /// JSON Schema of its configuration; empty if it has none.
    pub config_schema: &'static str,
}

impl Info {
    /// What stands when nothing else is said.
    pub const fn defaults(version: &'static str) -> Self {
        Self { id: "", name: "", version, vendor: "", url: "", config_schema: "" }
    }

    /// Checks the rules of the interface, at compile time.
    ///
    /// # Panics
    /// If one is broken.
    #[must_use]
    pub const fn checked(self) -> Self {
        let id = self.id.as_bytes();
        let (mut at, mut dots) = (0, 0);
        while at < id.len() {
            assert!(matches!(id[at], b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'), "id: only a-z 0-9 - _ .");
            if id[at] == b'.' {
                dots += 1;
            }
            at += 1;
        }
        assert!(dots > 0, "id: reverse DNS, such as org.example.rules");
        assert!(!self.name.is_empty(), "name: what people call the library");
        let version = self.version.as_bytes();
        at = 0;
        while at < version.len() {
            assert!(version[at].is_ascii_graphic(), "version: printable ASCII");
            at += 1;
        }
        self
    }

    /// The descriptor that the entry returns.
    pub const fn descriptor(&self, vtable: &'static Vtable) -> Descriptor {
        Descriptor {
            struct_size: size_of::<Descriptor>() as u32,
            abi_minor: ABI_MINOR,
            flags: 0,
            id: Str::new(self.id),
            name: Str::new(self.name),
            version: Str::new(self.version),
            vendor: Str::new(self.vendor),
            url: Str::new(self.url),
            config_schema: Str::new(self.config_schema),
            vtable,
        }
    }

    /// The ELF note.
    pub const fn note(&self) -> Note {
        Note::new(self.id, self.version)
    }
}

/// The functions of a rule, for C.
pub const fn vtable<R: Rule>() -> Vtable {
    Vtable {
        struct_size: size_of::<Vtable>() as u32,
        reserved: 0,
        create: Some(create::<R>),
        destroy: Some(destroy::<R>),
        on_snapshot: Some(on_snapshot::<R>),
        suggest: Some(suggest::<R>),
        get_extension: None,
    }
}

/// An instance as C holds it. The rule is gone once it has panicked.
struct Instance<R> {
    services: Services,
    rule: Option<R>,
}

impl<R: Rule> Instance<R> {
    /// Makes one from the host's arguments, with the return code to fail with.
    ///
    /// # Safety
    /// As [`Vtable::create`] says.
    unsafe fn create(host: *const Host, config: Str) -> Result<Self, i32> {
        // SAFETY: a host lives until `destroy` has returned.
        let services = unsafe { Services::read(host) }.ok_or(code::INVALID)?;
        // SAFETY: borrowed for this call, as the setup is.
        let config = match unsafe { text(config) } {
            Ok(config) => config.unwrap_or("{}"),
            Err(invalid) => return Err(refused(&services, invalid)),
        };
        // The error is put into words behind the guard, since that is code of the author's as well.
        let made = guarded(&services, "create", || {
            R::create(&Setup::new(config, services.host())).map_err(|error| in_words(&error))
        });
        match made {
            Some(Ok(rule)) => Ok(Self { services, rule: Some(rule) }),
            Some(Err(error)) => {
                services.log(Level::Error, &error);
                Err(code::CONFIG)
            }
            None => Err(code::PANICKED),
        }
    }

    /// Runs a call on the rule, and drops the rule if that panics.
    fn call(&mut self, what: &str, call: impl FnOnce(&mut R, &Services) -> Result<(), Invalid>) -> i32 {
        let Self { services, rule } = self;
        let Some(living) = rule else { return code::PANICKED };
        match guarded(services, what, || call(living, services)) {
            Some(Ok(())) => code::OK,
            Some(Err(invalid)) => refused(services, invalid),
            None => {
                let broken = rule.take();
                guarded(services, "the drop after the panic", || drop(broken));
                code::PANICKED
            }
        }
    }
}

unsafe extern "C" fn create<R: Rule>(host: *const Host, config: Str, instance: *mut *mut c_void) -> i32 {
    if instance.is_null() {
        return code::INVALID;
    }
    // SAFETY: passed on as the host gave it.
    match unsafe { Instance::<R>::create(host, config) } {
        Ok(made) => {
            // SAFETY: not null, and the host's to be written.
            unsafe { instance.write(Box::into_raw(Box::new(made)).cast()) };
            code::OK
        }
        Err(code) => code,
    }
}

unsafe extern "C" fn destroy<R: Rule>(instance: *mut c_void) {
    if instance.is_null() {
        return;
    }
    // SAFETY: made by `create`, and by the contract this is the last call for it.
    let Instance { services, rule } = *unsafe { Box::from_raw(instance.cast::<Instance<R>>()) };
    guarded(&services, "destroy", || drop(rule));
}

unsafe extern "C" fn on_snapshot<R: Rule>(instance: *mut c_void, snapshot: *const Snapshot) -> i32 {
    // SAFETY: null, or made by `create`; one call at a time, so nobody else has it.
    let Some(instance) = (unsafe { instance.cast::<Instance<R>>().as_mut() }) else { return code::INVALID };
    instance.call("on_snapshot", |rule, services| {
        // SAFETY: borrowed for this call.
        rule.on_snapshot(&unsafe { crate::Snapshot::new(snapshot, services.host()) }?);
        Ok(())
    })
}

unsafe extern "C" fn suggest<R: Rule>(instance: *mut c_void, request: *const Request, sink: *const Sink) -> i32 {
    // SAFETY: null, or made by `create`; one call at a time, so nobody else has it.
    let Some(instance) = (unsafe { instance.cast::<Instance<R>>().as_mut() }) else { return code::INVALID };
    instance.call("suggest", |rule, services| {
        // SAFETY: both are borrowed for this call.
        let (request, mut sink) = unsafe { (crate::Request::new(request, services.host())?, crate::Sink::new(sink)?) };
        rule.suggest(&request, &mut sink);
        Ok(())
    })
}

/// What the body returns, or None if it panicked, which is then in the log.
fn guarded<T>(services: &Services, what: &str, body: impl FnOnce() -> T) -> Option<T> {
    // Whoever calls this drops what the body can have left half changed.
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => Some(value),
        Err(payload) => {
            let said = payload.downcast_ref::<&str>().copied();
            let said = said.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            services.log(Level::Error, &format!("{what} panicked: {}", said.unwrap_or("no message")));
            // A payload can be anything, and its drop can panic again.
            mem::forget(payload);
            None
        }
    }
}

fn refused(services: &Services, Invalid(why): Invalid) -> i32 {
    services.log(Level::Error, why);
    code::INVALID
}

/// An error and its sources, in one line.
fn in_words(error: &Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words.push_str(": ");
        words.push_str(&error.to_string());
        source = error.source();
    }
    words
}

/// Makes the crate a rule library: exports a [`Rule`] under an id and a name.
///
/// ```
/// # use almanac_plugin::{Error, Request, Rule, Setup, Sink};
/// # struct MyRule;
/// # impl Rule for MyRule {
/// #     fn create(_: &Setup<'_>) -> Result<Self, Error> { Ok(Self) }
/// #     fn suggest(&mut self, _: &Request<'_>, _: &mut Sink<'_>) {}
/// # }
/// almanac_plugin::export_plugin!(
///     MyRule,
///     id = "org.example.rules", // reverse DNS, a-z 0-9 - _ .
///     name = "Example rules",
///     // These may be left out:
///     version = "1.2.0",        // else the package's version
///     vendor = "Example",
///     url = "https://example.org/rules",
///     config_schema = r#"{"type": "object"}"#, // of what `Setup::config` gives
/// );
/// ```
///
/// It also puts the id and the version into an ELF note, so that the daemon can read them without running the library.
/// A text that breaks the rules of the interface is an error at compile time. Once per library.
#[macro_export]
macro_rules! export_plugin {
    ($rule:ty, $($key:ident = $value:expr),+ $(,)?) => {
        const _: () = {
            const INFO: $crate::export::Info = $crate::export::Info {
                $($key: $value,)+
                ..$crate::export::Info::defaults(::core::env!("CARGO_PKG_VERSION"))
            }
            .checked();
            static VTABLE: $crate::abi::Vtable = $crate::export::vtable::<$rule>();
            static DESCRIPTOR: $crate::abi::Descriptor = INFO.descriptor(&VTABLE);

            #[used]
            #[unsafe(link_section = ".note.almanac")]
            static NOTE: $crate::abi::Note = INFO.note();

            #[unsafe(no_mangle)]
            extern "C" fn almanac_plugin_entry_v1() -> *const $crate::abi::Descriptor {
                &raw const DESCRIPTOR
            }
        };
    };
}
