//! The step between the daemon and a server's program: this binary executed again, which confines itself and becomes
//! the program.
//!
//! What it sets holds for the program as well: that it ends with the daemon, that it gains no privileges, and which
//! files it sees. Between `fork` and `exec` of the daemon itself that would need code which must not allocate.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus,
};
use rustix::process::{Signal, set_parent_process_death_signal};

/// The argument that makes the daemon's binary a server's program. Not for people.
pub const ARGUMENT: &str = "mcp-server";

/// Between the paths that the program may use and the program itself.
pub(super) const PROGRAM: &str = "--";

/// Says that the program may use only the paths which follow.
pub(super) const ONLY: &str = "only";

/// Between the paths that it may do anything with and those that it may read.
pub(super) const READS: &str = "reads";

/// The program could not be started: `EX_UNAVAILABLE`.
const UNAVAILABLE: u8 = 69;

/// What interpreters and libraries live in; readable by any program that is confined.
const SYSTEM: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
];

/// Devices that harm nobody.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm"];

#[derive(Debug, thiserror::Error)]
enum LaunchError {
    #[error("called by hand")]
    ByHand,
    #[error("cannot be made to end with the daemon")]
    DeathSignal(#[source] io::Error),
    #[error("cannot give up new privileges")]
    Privileges(#[source] io::Error),
    #[error("its files cannot be confined")]
    Files(#[from] landlock::RulesetError),
    #[error("`files` is set, and this kernel cannot confine files (no Landlock)")]
    NoLandlock,
    #[error("cannot use {} of `files`", .path.display())]
    Path { path: PathBuf, source: landlock::PathFdError },
    #[error("cannot start {}", .program.to_string_lossy())]
    Program { program: OsString, source: io::Error },
}

/// Becomes the program; returns only if that fails.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(2).collect();
    let error = launch(&arguments);
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    let _ = writeln!(io::stderr(), "almanacd: {text}");
    UNAVAILABLE.into()
}

fn launch(arguments: &[OsString]) -> LaunchError {
    match prepare(arguments) {
        Ok((program, arguments)) => {
            let source = Command::new(&program).args(arguments).exec();
            LaunchError::Program { program, source }
        }
        Err(error) => error,
    }
}

fn prepare(arguments: &[OsString]) -> Result<(OsString, Vec<OsString>), LaunchError> {
    let mut parts = arguments.split(|part| part == PROGRAM);
    let (Some(confined), Some(_)) = (parts.next(), parts.next()) else { return Err(LaunchError::ByHand) };
    let mut program = arguments[confined.len() + 1..].iter().cloned();
    let first = program.next().ok_or(LaunchError::ByHand)?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| LaunchError::DeathSignal(error.into()))?;
    rustix::thread::set_no_new_privs(true).map_err(|error| LaunchError::Privileges(error.into()))?;
    if let Some((_, paths)) = confined.split_first().filter(|(word, _)| *word == ONLY) {
        confine(paths)?;
    }
    Ok((first, program.collect()))
}

/// Leaves the process the system's directories to read, and `paths` to do anything with, but those behind [`READS`] to
/// read.
fn confine(paths: &[OsString]) -> Result<(), LaunchError> {
    let mut parts = paths.split(|path| path == READS);
    let (paths, reads) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    // What a program that works with files needs; ioctl of devices, of a later version, would break terminals.
    let all = AccessFs::from_all(ABI::V3);
    let read = AccessFs::from_read(ABI::V3);
    let file = AccessFs::from_file(ABI::V3);
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(all)?.create()?;
    let system = SYSTEM.iter().filter_map(|path| Some(PathBeneath::new(PathFd::new(path).ok()?, read)));
    let devices = DEVICES.iter().filter_map(|path| {
        let access = if std::path::Path::new(path).is_dir() { all } else { file };
        Some(PathBeneath::new(PathFd::new(path).ok()?, access))
    });
    let mut own = Vec::new();
    for path in paths {
        let opened = PathFd::new(path).map_err(|source| LaunchError::Path { path: path.into(), source })?;
        own.push(PathBeneath::new(opened, if std::path::Path::new(path).is_dir() { all } else { file }));
    }
    let reads = reads.iter().filter_map(|path| Some(PathBeneath::new(PathFd::new(path).ok()?, read)));
    let rules = system.chain(devices).chain(own).chain(reads).map(Ok::<_, landlock::RulesetError>);
    let status = ruleset.add_rules(rules)?.restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced { Err(LaunchError::NoLandlock) } else { Ok(()) }
}
