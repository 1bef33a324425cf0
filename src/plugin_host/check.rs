//! The validator: everything that a host may do to a library, and more, tried before a daemon does it.

use std::time::{Duration, Instant};

use super::ask::{Ask, ComplexityLevel, Snapshot, Tool};
use super::fault::LibraryFault;
use super::library::Library;
use super::process::describe;
use super::settings::Launch;
use super::trial::{EXPERIMENT_TIME, Trial, TrialError};
use super::wire::{Experiment, Flaw, Hello, Lack, confinement};

/// Calls that are watched for leaks; the first fifth is to settle in.
const CALLS: usize = 10_000;

/// Calls after which a library that is late at most of them is given up.
const SOON: usize = 100;

/// What the memory may grow by after settling in, in bytes: pages that an allocator keeps, not 64 bytes a call.
const GROWTH: u64 = 512 << 10;

/// Threads of a worker that are let be until all calls were made.
const MAX_THREADS: usize = 4;

/// How long a call under trial is waited for. A machine at work delays single calls, which is not the library's fault;
/// one that takes this long is stuck.
pub const CALL_TIME: Duration = Duration::from_secs(5);

/// What was tried, and how it came out: what was seen, or what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub what: &'static str,
    /// How it came out.
    pub outcome: Result<String, Flaw>,
}

/// Tries everything on a library that a host might do to it, and more. Each trial has a worker of its own.
pub async fn check(
    library: &Library,
    launch: &Launch,
    settings: &str,
    mut report: impl FnMut(&Finding),
    print: impl Fn(&str) + Clone + Send + 'static,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |what, outcome| {
        let finding = Finding { what, outcome };
        report(&finding);
        findings.push(finding);
    };
    let start = || Trial::start(library, launch, settings.to_owned(), &CATALOG, print.clone());
    let begun = Instant::now();
    let started = match start().await {
        Ok(trial) => trial,
        Err(fault) => {
            found("start", Err(fault.to_string().into()));
            return findings;
        }
    };
    found("start", Ok(introduction(started.hello(), begun.elapsed())));
    found("calls", calls(started, launch.deadline).await);
    found("catalogs", trial(start().await, async |trial| catalogs(trial).await).await);
    for (what, experiment) in EXPERIMENTS {
        found(what, trial(start().await, async |trial| trial.experiment(experiment).await).await);
    }
    found("end", end(start().await).await);
    findings
}

fn introduction(hello: &Hello, took: Duration) -> String {
    let Hello { id, version, abi_minor, sandbox, lacks, .. } = hello;
    let lacks: Vec<&str> = lacks.iter().copied().map(Lack::as_str).collect();
    let (took, sandbox) = (took.as_secs_f64() * 1e3, confinement(sandbox.as_str(), &lacks));
    format!("{id} {version}, interface 1.{abi_minor}, ready in {took:.1} ms, sandbox: {sandbox}")
}

const EXPERIMENTS: [(&str, Experiment); 7] = [
    ("instances", Experiment::Instances),
    ("destroyed and made again", Experiment::Rebirth),
    ("smaller structs", Experiment::SmallStructs),
    ("larger structs", Experiment::LargeStructs),
    ("a sink that stops", Experiment::StopAtOnce),
    ("odd configurations", Experiment::BadSettings),
    ("hostile inputs", Experiment::HostileInputs),
];

/// The catalog that a library under trial is told.
static CATALOG: std::sync::LazyLock<Snapshot> = std::sync::LazyLock::new(|| catalog(1));

fn catalog(generation: u64) -> Snapshot {
    let tool = |number: usize| Tool {
        name: format!("tool_{number:04}"),
        category: format!("category_{}", number % 10),
        capabilities: vec![format!("capability_{}", number % 7)],
        keywords: vec!["keyword".to_owned(), format!("keyword_{}", number % 50)],
    };
    let reasoning = ["reasoning_decision", "reasoning_divergent", "reasoning_linear", "reasoning_reflection"];
    let named = reasoning.iter().map(|name| Tool { name: (*name).to_owned(), ..Tool::default() });
    Snapshot { generation, tools: named.chain((0..1000).map(tool)).collect() }
}

async fn trial(
    started: Result<Trial, LibraryFault>,
    body: impl AsyncFnOnce(&mut Trial) -> Result<String, Flaw>,
) -> Result<String, Flaw> {
    let mut trial = started.map_err(|fault| format!("it did not start again: {fault}"))?;
    body(&mut trial).await
}

/// Ordinary calls, many of them, each in time, without anything being left behind.
async fn calls(mut trial: Trial, deadline: Duration) -> Result<String, Flaw> {
    let usage = |trial: &Trial| trial.usage().map_err(|error| format!("its process cannot be looked at: {error}"));
    let (mut took, mut proposed, mut refusals) = (Vec::with_capacity(CALLS), 0, Vec::new());
    let (mut settled, mut late) = (usage(&trial)?, 0);
    for number in 0..CALLS {
        let begun = Instant::now();
        match trial.ask(&ordinary(number), CALL_TIME).await {
            Ok(proposals) => proposed += proposals.len(),
            Err(TrialError::Refusal(reason)) => refusals.push(reason),
            Err(TrialError::LibraryFault(fault)) => return Err(format!("at call {number}: {fault}").into()),
        }
        took.push(begun.elapsed());
        late += usize::from(begun.elapsed() > deadline);
        // What is late this often is late at the end, which may be hours away.
        if late > CALLS / 10 || number + 1 == SOON && late > SOON / 2 {
            let share = format!("{late} of {} calls took longer than the {deadline:?} that a host waits", number + 1);
            return Err(share.into());
        }
        if number == CALLS / 5 {
            settled = usage(&trial)?;
        }
        // More of them would take the processor from all further calls.
        if number % 50 == 49 && usage(&trial)?.threads > MAX_THREADS {
            return Err(format!("it leaves threads behind, more than {MAX_THREADS} after {number} calls").into());
        }
    }
    let after = usage(&trial)?;
    if let Some(reason) = refusals.first().filter(|_| refusals.len() == CALLS) {
        return Err(format!("it answers every call with an error: {reason}").into());
    }
    trial.experiment(Experiment::Flaws).await?;
    if after.memory > settled.memory + GROWTH {
        let bytes = (after.memory - settled.memory) / (CALLS as u64 * 4 / 5);
        return Err(format!("it leaks some {bytes} bytes a call").into());
    }
    if after.threads > 1 {
        return Err(format!("it leaves {} threads behind", after.threads - 1).into());
    }
    if after.files > settled.files {
        return Err(format!("it leaves {} files open", after.files - settled.files).into());
    }
    took.sort();
    let (median, longest) = (took[CALLS / 2].as_secs_f64() * 1e6, took[CALLS - 1].as_secs_f64() * 1e3);
    Ok(format!(
        "{CALLS} calls, {proposed} proposals, {} errors; {median:.0} µs at the median, {longest:.1} ms at most; \
         nothing \
         leaked",
        refusals.len()
    ))
}

fn ordinary(number: usize) -> Ask {
    const TOOLS: [&str; 5] =
        ["reasoning_divergent", "reasoning_linear", "reasoning_decision", "tool_0001", "not_in_the_catalog"];
    const COMPLEXITIES: [Option<ComplexityLevel>; 4] =
        [None, Some(ComplexityLevel::Simple), Some(ComplexityLevel::Moderate), Some(ComplexityLevel::Complex)];
    let tool = |number: usize| TOOLS[number % TOOLS.len()].to_owned();
    Ask {
        tool: tool(number),
        mode: number.is_multiple_of(3).then(|| format!("mode_{}", number % 9)),
        complexity: COMPLEXITIES[number % COMPLEXITIES.len()],
        num_outputs: number as u64 % 6,
        has_branches: number.is_multiple_of(2),
        session_id: number.is_multiple_of(5).then(|| format!("session_{}", number % 20)),
        goal: number.is_multiple_of(7).then(|| "decide which of several plans to follow".to_owned()),
        history: (0..number % 21).map(tool).collect(),
        context: vec![("source".to_owned(), "check".to_owned())],
    }
}

/// New catalogs, many of them.
async fn catalogs(trial: &mut Trial) -> Result<String, Flaw> {
    const CATALOGS: u64 = 200;
    let usage = |trial: &Trial| trial.usage().map_err(|error| format!("its process cannot be looked at: {error}"));
    let mut settled = usage(trial)?;
    for generation in 2..2 + CATALOGS {
        let taken = trial.send_snapshot(catalog(generation), EXPERIMENT_TIME).await;
        taken.map_err(|error| format!("at catalog {generation}: {error}"))?;
        if generation == CATALOGS / 5 {
            settled = usage(trial)?;
        }
    }
    let after = usage(trial)?;
    // One catalog more or less is what an allocator may hold back.
    if after.memory > settled.memory + 4 * GROWTH {
        return Err(
            format!("it leaks some {} bytes a catalog", (after.memory - settled.memory) / (CATALOGS * 4 / 5)).into()
        );
    }
    Ok(format!("{CATALOGS} catalogs of 1,004 tools; nothing leaked"))
}

/// The end of the orders is the end of the process.
async fn end(started: Result<Trial, LibraryFault>) -> Result<String, Flaw> {
    let trial = started.map_err(|fault| format!("it did not start again: {fault}"))?;
    let begun = Instant::now();
    let status = trial.hang_up(Duration::from_millis(500)).await;
    match status {
        Some(status) if status.success() => {
            Ok(format!("destroyed and ended in {:.1} ms", begun.elapsed().as_secs_f64() * 1e3))
        }
        Some(status) => Err(describe(status).into()),
        None => Err("it goes on after its instance was destroyed".into()),
    }
}
