//! What a worker may still do once foreign code runs in it: compute, read system libraries, and talk on what is open.
//!
//! Four walls, none of which can be taken down again. Limits of resources hold what a library may use up; namespaces
//! leave it neither the daemon's user nor its network; Landlock leaves it the files that the dynamic loader needs and
//! no way to others, no TCP and no signals to other processes; and seccomp lets through the system calls that computing
//! takes. That is a list of what is allowed: what a new kernel adds is refused. A refused call answers EPERM instead of
//! killing, so that a library that merely asks is not lost.
#![allow(unsafe_code, reason = "leaves namespaces")]

use std::collections::BTreeMap;
use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, unshare_unsafe};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::file_status;
use super::wire::{Confined, Lack};

/// Files a worker may have open: those it starts with, and what the loader opens one after the other.
const MAX_FILES: u64 = 32;

/// Where the dynamic loader finds what a library needs; Rust libraries need `libgcc_s`.
const LIBRARIES: [&str; 4] = ["/usr/lib", "/lib", "/lib64", "/usr/lib64"];

/// The loader's index of those.
const LIBRARY_INDEX: &str = "/etc/ld.so.cache";

/// Below all of the daemon: what a library computes yields to answers. Much more (19 is the most) and it would miss its
/// deadlines on a busy machine.
const NICENESS: i32 = 5;

/// The latest rights that are asked for; an older kernel gives what it has.
const LANDLOCK: ABI = ABI::V6;

/// The sandbox cannot be entered.
#[derive(Debug, thiserror::Error)]
pub(super) enum SandboxError {
    #[error("new privileges cannot be given up")]
    Privileges(#[source] io::Error),
    #[error("the limits of resources cannot be set")]
    Limits(#[source] io::Error),
    #[error("the capabilities of its own namespaces cannot be given up")]
    Capabilities(#[source] io::Error),
    #[error("`stat` cannot be answered")]
    FileStatus(#[source] io::Error),
    #[error("the access to files cannot be confined")]
    Files(#[from] landlock::RulesetError),
    #[error("the kernel cannot confine the access to files (no Landlock), which `plugins.require_sandbox` demands")]
    NoLandlock,
    #[error("the system calls cannot be confined")]
    Calls(#[from] seccompiler::Error),
    #[error("the filter of system calls is wrong")]
    Filter(#[from] seccompiler::BackendError),
}

/// Whether a library may have threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threads {
    /// As many as [`super::thread_limit`] lets it.
    Limited,
    /// Nobody would count them.
    None,
}

/// How a worker is confined.
#[derive(Debug, Default)]
pub(super) struct Sandbox {
    pub(super) confined: Confined,
    /// What it lacks to be confined fully.
    pub(super) lacks: Vec<Lack>,
}

/// Enters the sandbox, for good. Called before the process has a second thread.
pub(super) fn enter(max_memory_bytes: u64, require_landlock: bool, threads: Threads) -> Result<Sandbox, SandboxError> {
    rustix::thread::set_no_new_privs(true).map_err(|error| SandboxError::Privileges(error.into()))?;
    for (resource, most) in [(Resource::As, max_memory_bytes), (Resource::Core, 0), (Resource::Nofile, MAX_FILES)] {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|error| SandboxError::Limits(error.into()))?;
    }
    rustix::process::setpriority_process(None, NICENESS).map_err(|error| SandboxError::Limits(error.into()))?;
    let mut lacks = leave_namespaces()?;
    let files = confine_files()?;
    if require_landlock && files == RulesetStatus::NotEnforced {
        return Err(SandboxError::NoLandlock);
    }
    file_status::install().map_err(SandboxError::FileStatus)?;
    for filter in filters(threads)? {
        seccompiler::apply_filter(&filter)?;
    }
    match files {
        RulesetStatus::FullyEnforced => {}
        RulesetStatus::PartiallyEnforced => lacks.push(Lack::LandlockRights),
        RulesetStatus::NotEnforced => lacks.push(Lack::Landlock),
    }
    let confined = match files {
        RulesetStatus::NotEnforced => Confined::Calls,
        _ if lacks.is_empty() => Confined::Fully,
        _ => Confined::Partly,
    };
    Ok(Sandbox { confined, lacks })
}

/// Goes to a user namespace, in which it is nobody, and to a network without a way out, as far as the kernel and
/// whoever set it up let it; says what they do not.
fn leave_namespaces() -> Result<Vec<Lack>, SandboxError> {
    let namespaces = [(UnshareFlags::NEWUSER, Lack::UserNamespace), (UnshareFlags::NEWNET, Lack::NetworkNamespace)];
    // SAFETY: neither touches memory or descriptors, and the process has one thread.
    let kept = namespaces.into_iter().filter(|(namespace, _)| unsafe { unshare_unsafe(*namespace) }.is_err());
    let kept = kept.map(|(_, lack)| lack).collect();
    // Whoever makes a user namespace is its administrator.
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(|error| SandboxError::Capabilities(error.into()))?;
    Ok(kept)
}

/// Whether this kernel can confine the access to files at all.
pub(super) fn has_landlock() -> bool {
    let made = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    made.is_ok()
}

fn confine_files() -> Result<RulesetStatus, landlock::RulesetError> {
    // The loader asks whether directories are there; to list one takes a system call that is refused.
    let load: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?;
    // What is not there needs no rule.
    let libraries = LIBRARIES.iter().filter_map(|path| Some(PathBeneath::new(PathFd::new(path).ok()?, load)));
    let index = PathFd::new(LIBRARY_INDEX).ok().map(|index| PathBeneath::new(index, AccessFs::ReadFile));
    let rules = libraries.chain(index).map(Ok::<_, landlock::RulesetError>);
    Ok(ruleset.add_rules(rules)?.restrict_self()?.ruleset)
}

/// System calls that take no argument worth looking at.
const CALLS: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    // Answered by the other filter.
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    // Trapped by another filter.
    libc::SYS_newfstatat,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
];

/// The program of filters, in the order in which they are to be installed: each one must let the next be.
fn filters(threads: Threads) -> Result<[BpfProgram; 3], seccompiler::BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    // The C library then falls back to clone, whose flags can be looked at.
    let clone3 = [(libc::SYS_clone3, Vec::new())].into();
    let no_clone3 = SeccompFilter::new(clone3, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32), arch)?;
    let stat = [(libc::SYS_newfstatat, Vec::new())].into();
    let trapped_stat = SeccompFilter::new(stat, SeccompAction::Allow, SeccompAction::Trap, arch)?;
    let anything = CALLS.iter().map(|&call| (call, Vec::new()));
    let mut rules: BTreeMap<_, _> = anything.chain(guarded()?).collect();
    if threads == Threads::None {
        rules.remove(&libc::SYS_clone);
    }
    let allowed = SeccompFilter::new(rules, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow, arch)?;
    Ok([no_clone3.try_into()?, trapped_stat.try_into()?, allowed.try_into()?])
}

/// Mapping a file to be executed, not written, without taking the place of zeros (`MAP_ANONYMOUS`).
const EXECUTABLE_FILE: [(u8, SeccompCmpOp, u64); 2] = [
    (2, SeccompCmpOp::MaskedEq(libc::PROT_WRITE as u64), 0),
    (3, SeccompCmpOp::MaskedEq(libc::MAP_ANONYMOUS as u64), 0),
];

/// Calls that are let through for some arguments only.
fn guarded() -> Result<Vec<(libc::c_long, Vec<SeccompRule>)>, seccompiler::BackendError> {
    let rule = |conditions: &[(u8, SeccompCmpOp, u64)]| {
        let conditions = conditions.iter().map(|(argument, operator, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Qword, operator.clone(), *value)
        });
        SeccompRule::new(conditions.collect::<Result<_, _>>()?)
    };
    let own = u64::from(std::process::id());
    let thread = (libc::CLONE_THREAD | libc::CLONE_VM) as u64;
    let is = |argument, value| rule(&[(argument, SeccompCmpOp::Eq, value)]);
    let without = |argument, bits: libc::c_int| rule(&[(argument, SeccompCmpOp::MaskedEq(bits as u64), 0)]);
    Ok(vec![
        // Code comes from files, as the loader maps it: no memory is both written and executed, nor becomes code.
        (libc::SYS_mmap, vec![without(2, libc::PROT_EXEC)?, rule(&EXECUTABLE_FILE)?]),
        (libc::SYS_mprotect, vec![without(2, libc::PROT_EXEC)?]),
        // Landlock lets everything be opened that is not to be read; then it could be asked about.
        (libc::SYS_openat, vec![without(2, libc::O_PATH)?]),
        // Threads, no processes.
        (libc::SYS_clone, vec![rule(&[(0, SeccompCmpOp::MaskedEq(thread), thread)])?]),
        // What abort and raise send; to itself only.
        (libc::SYS_tgkill, vec![is(0, own)?]),
        // Its limits may be read, not set.
        (libc::SYS_prlimit64, vec![rule(&[(0, SeccompCmpOp::Eq, 0), (2, SeccompCmpOp::Eq, 0)])?]),
        (libc::SYS_prctl, vec![is(0, libc::PR_SET_NAME as u64)?, is(0, libc::PR_SET_VMA as u64)?]),
        (libc::SYS_fcntl, vec![is(1, libc::F_GETFD as u64)?, is(1, libc::F_GETFL as u64)?]),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_can_be_made() {
        let made = [Threads::Limited, Threads::None].map(|threads| filters(threads).unwrap());
        assert!(made.concat().iter().all(|program| !program.is_empty()));
    }
}
