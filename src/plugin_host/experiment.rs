//! What the validator tries on a library, beyond calling it: run in the worker, where a fault is a finding.

use std::time::Duration;

use almanac_plugin_abi::{Array, Pair, Request, Str};

use super::ask::{Ask, ComplexityLevel, Proposal, Snapshot, Tool};
use super::instance::Instance;
use super::wire::{Experiment, Flaw, MAX_PROPOSALS, Refusal};
use super::worker::chain;

/// What a call may take, as the library is told.
const PATIENCE: Duration = Duration::from_secs(1);

/// Instances made and destroyed.
const INSTANCES: usize = 100;

/// A request as a newer host makes it.
#[repr(C)]
struct LongRequest {
    known: Request,
    unknown: [u8; 64],
}

/// Elements as a newer host makes them.
#[repr(C)]
struct LongStr {
    known: Str,
    unknown: [u64; 2],
}

#[repr(C)]
struct LongPair {
    known: Pair,
    unknown: [u64; 2],
}

/// Runs one experiment: what was seen, or what is wrong. A library that falls over takes this process with it.
pub(super) fn run(instance: &mut Instance, experiment: Experiment) -> Result<String, Flaw> {
    match experiment {
        Experiment::Instances => instances(instance),
        Experiment::SmallStructs => small_structs(instance),
        Experiment::LargeStructs => large_structs(instance),
        Experiment::StopAtOnce => stop_at_once(instance),
        Experiment::BadSettings => bad_settings(instance),
        Experiment::HostileInputs => hostile_inputs(instance),
        Experiment::Rebirth => rebirth(instance),
        Experiment::Flaws => flaws(instance),
    }
}

fn flaws(instance: &Instance) -> Result<String, Flaw> {
    let flaws = instance.flaws();
    if flaws.is_empty() { Ok("all proposals were taken as they were".to_owned()) } else { Err(flaws.join("; ").into()) }
}

fn plain() -> Ask {
    Ask {
        tool: "reasoning_divergent".to_owned(),
        complexity: Some(ComplexityLevel::Complex),
        num_outputs: 4,
        history: vec!["a".to_owned(), "b".to_owned()],
        context: vec![("k".to_owned(), "v".to_owned())],
        ..Ask::default()
    }
}

/// An error is an answer; a panic is not.
fn tolerate(outcome: Result<Vec<Proposal>, Refusal>, when: &str) -> Result<usize, Flaw> {
    match outcome {
        Ok(proposals) => Ok(proposals.len()),
        Err(refusal) if refusal.for_good => Err(format!("it panicked {when}: {refusal}").into()),
        Err(_) => Ok(0),
    }
}

fn with_another<T>(
    instance: &Instance,
    body: impl FnOnce(&Instance, std::ptr::NonNull<std::ffi::c_void>) -> Result<T, Flaw>,
) -> Result<T, Flaw> {
    let another = instance.make(instance.settings()).map_err(|refusal| format!("a further instance: {refusal}"))?;
    let outcome = body(instance, another);
    instance.unmake(another);
    outcome
}

fn instances(instance: &mut Instance) -> Result<String, Flaw> {
    for _ in 0..INSTANCES {
        with_another(instance, |instance, another| {
            let outcome = instance.ask_of(another, &plain(), PATIENCE, MAX_PROPOSALS, |_| {});
            tolerate(outcome, "in a further instance")
        })?;
    }
    tolerate(instance.ask(&plain(), PATIENCE), "after further instances were destroyed")?;
    Ok(format!("{INSTANCES} further instances made, asked and destroyed"))
}

fn small_structs(instance: &mut Instance) -> Result<String, Flaw> {
    with_another(instance, |instance, another| {
        for size in [0, 4, 8, 16, size_of::<Request>() as u32 - 8] {
            let bend = |request: &mut Request| request.struct_size = size;
            let when = format!("at a request of {size} bytes");
            tolerate(instance.ask_of(another, &plain(), PATIENCE, MAX_PROPOSALS, bend), &when)?;
        }
        Ok("requests that say they are smaller than version 1.0 has them".to_owned())
    })
}

fn large_structs(instance: &mut Instance) -> Result<String, Flaw> {
    let unknown = [u64::MAX; 2];
    let history = ["a", "b"].map(|text| LongStr { known: Str::new(text), unknown });
    let pair = Pair { key: Str::new("k"), value: Str::new("v") };
    let context = [LongPair { known: pair, unknown }];
    with_another(instance, |instance, another| {
        let usual = instance.ask_of(another, &plain(), PATIENCE, MAX_PROPOSALS, |_| {});
        let mut long = None;
        let outcome = instance.ask_with(another, &plain(), PATIENCE, MAX_PROPOSALS, |request| {
            let mut known = *request;
            known.struct_size = size_of::<LongRequest>() as u32;
            (known.history, known.context) = (Array::new(&history), Array::new(&context));
            let long = long.insert(LongRequest { known, unknown: [0xff; 64] });
            (&raw const *long).cast()
        });
        let tools = |outcome: &Result<Vec<Proposal>, Refusal>| {
            outcome.as_ref().map_or_else(|_| Vec::new(), |list| list.iter().map(|each| each.tool.clone()).collect())
        };
        let same = tools(&outcome) == tools(&usual);
        tolerate(outcome, "at longer structs")?;
        if !same {
            return Err("it answers otherwise when structs and elements are longer: does it use the stride?".into());
        }
        Ok("a longer request, and longer elements of arrays".to_owned())
    })
}

fn stop_at_once(instance: &mut Instance) -> Result<String, Flaw> {
    with_another(instance, |instance, another| {
        let taken = tolerate(instance.ask_of(another, &plain(), PATIENCE, 1, |_| {}), "when told to stop")?;
        Ok(format!("a sink that says stop after one proposal; {taken} came"))
    })
}

fn bad_settings(instance: &mut Instance) -> Result<String, Flaw> {
    let mut refused = 0;
    let deep = "[".repeat(100_000);
    for settings in ["", "{", "null", "[]", "{\"no_such_setting\":1}", "\u{0}", &deep] {
        match instance.make(settings) {
            Ok(another) => instance.unmake(another),
            Err(refusal) if refusal.for_good => return Err(format!("`create` panicked: {refusal}").into()),
            Err(_) => refused += 1,
        }
    }
    Ok(format!("7 odd configurations, of which it refused {refused}"))
}

fn hostile_inputs(instance: &mut Instance) -> Result<String, Flaw> {
    let long = "x".repeat(1 << 20);
    let odd = ["", "\u{0}", "../../etc/passwd", "%s%n%s", "ünï\u{202e}cödé", "'; drop table tools; --", &long];
    let mut asked = 0;
    for text in odd {
        let text = text.to_owned();
        let many = vec![text.chars().take(100).collect::<String>(); 10_000];
        let asks = [
            Ask { tool: text.clone(), ..Ask::default() },
            Ask { mode: Some(text.clone()), goal: Some(text.clone()), session_id: Some(text.clone()), ..plain() },
            Ask { history: many, context: vec![(text.clone(), text.clone())], ..plain() },
        ];
        for ask in asks {
            tolerate(instance.ask(&ask, PATIENCE), &format!("at {:?}", text.chars().take(20).collect::<String>()))?;
            asked += 1;
        }
    }
    with_another(instance, |instance, another| {
        let bends: [fn(&mut Request); 4] = [
            |request| request.complexity = i32::MAX,
            |request| request.num_outputs = u64::MAX,
            |request| request.has_branches = -1,
            |request| request.deadline_ns = 1,
        ];
        for bend in bends {
            tolerate(instance.ask_of(another, &plain(), PATIENCE, MAX_PROPOSALS, bend), "at a number beyond its edge")?;
        }
        Ok(())
    })?;
    let tool = Tool { name: long.clone(), category: String::new(), capabilities: vec![long; 3], keywords: Vec::new() };
    for tools in [Vec::new(), vec![tool], (0..10_000).map(|number| named(&number.to_string())).collect()] {
        let generation = instance.generation() + 1;
        if let Err(refusal) = instance.set_snapshot(&Snapshot { generation, tools })
            && refusal.for_good
        {
            return Err(format!("it panicked at an odd catalog: {refusal}").into());
        }
    }
    Ok(format!("{asked} odd requests, 4 numbers beyond their edges, 3 odd catalogs"))
}

fn named(name: &str) -> Tool {
    Tool { name: format!("tool_{name}"), ..Tool::default() }
}

fn rebirth(instance: &mut Instance) -> Result<String, Flaw> {
    for _ in 0..2 {
        instance.remake().map_err(|error| Flaw::from(chain(&error)))?;
        tolerate(instance.ask(&plain(), PATIENCE), "before it was told a catalog")?;
    }
    Ok("its instance destroyed and made again, twice, and asked before it knew the catalog".to_owned())
}
