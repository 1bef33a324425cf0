//! `POST /v1/plans/check`: is this sequence of calls a good one, how long will it take, and what would be better?

use std::sync::Arc;

use crate::catalog::plan::{Instead, PlannedCall, Review};
use crate::catalog::price::PriceDifference;
use crate::engine::learner::Learnt;
use crate::engine::{Acquaintance, Asked, Generation};
use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::wire::plan::{CheaperPlan, FasterPlan, PlanAnswer, PlanFault, PlanInstead, PlanRequest};
use crate::wire::problem::Code;
use crate::wire::timing::{Timing, degraded};

/// Faster plans that are offered, and cheaper ones.
const MAX_OFFERED: usize = 3;

pub(super) fn check_operation() -> Operation {
    Operation::new("checkPlan", "Whether a sequence of calls is a good one, and how long it will take.")
        .with_body::<PlanRequest>()
        .answering::<PlanAnswer>("What speaks against it.")
}

pub(super) fn check(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let PlanRequest { steps, goal, session_id, timeout_ms } = request.take_body()?;
    let goal = goal.or_else(|| context.engine.goal(&request.grant, session_id.as_deref()));
    let (generation, learnt) = (context.engine.generation(), context.engine.learnt());
    let asked: Vec<Asked> = steps.into_iter().map(Asked::from).collect();
    let steps: Vec<String> = asked.iter().map(|call| call.tool.clone()).collect();
    let calls: Vec<PlannedCall<'_>> =
        asked.iter().map(|call| PlannedCall { tool: &call.tool, mode: call.mode.as_deref() }).collect();
    let session = session_id.as_deref().and_then(|session| learnt.sessions.history(&request.grant.tenant, session));
    let earlier: &[Arc<str>] = session.map_or(&[], |calls| &calls[..]);
    let review = generation.review(&calls, earlier, goal.as_deref().unwrap_or_default());
    let plan = context.engine.estimate_plan(&generation, &learnt, &asked);
    let plan = plan.ok_or_else(|| Problem::invalid(Code::InvalidBody, "a plan has at least one step"))?;
    let faults = faults(&review, &steps);
    let flaws = |review: &Review| review.conflicts.len() + review.missing.len();
    // What mends one thing and breaks another is no better plan.
    let is_no_worse = |Instead { step, tool, .. }: &Instead| {
        let mut calls = calls.clone();
        calls[*step] = PlannedCall { tool, mode: None };
        flaws(&generation.review(&calls, earlier, "")) <= flaws(&review)
    };
    let better: Vec<&Instead> = review.instead.iter().filter(|instead| is_no_worse(instead)).collect();
    let replaced = Replaced::of(context, &generation, &learnt, &better, &asked);
    let tools = steps.iter().map(|tool| context.engine.acquaintance(&generation, &learnt, tool));
    let acquaintance = Acquaintance::of_all(tools);
    Ok(answer::json(&PlanAnswer {
        ok: faults.is_empty(),
        faults,
        faster: replaced.faster(),
        cheaper: replaced.cheaper(),
        instead: review.instead.into_iter().map(|instead| offer(instead, &steps)).collect(),
        timing: Timing {
            degraded: context.engine.missing_history().map(|why| degraded(&why)),
            ..Timing::of_plan(&plan, timeout_ms.unwrap_or(context.engine.factory_timeout_ms()), &acquaintance)
        },
    }))
}

fn faults(review: &Review, steps: &[String]) -> Vec<PlanFault> {
    let fault = |code, step: usize, detail, near| PlanFault { code, step, tool: steps[step].clone(), detail, near };
    let unknown = review.unknown.iter().map(|(step, near)| {
        fault("unknown-tool", *step, format!("there is no tool `{}` in the catalog", steps[*step]), near.clone())
    });
    let conflicts = review.conflicts.iter().map(|(step, with, conflict)| {
        let (tool, other) = (&steps[*step], &steps[*with]);
        let detail = format!(
            "{tool} and {other} conflict ({}): {} Prefer {tool}: {} Prefer {other}: {}",
            conflict.severity(),
            conflict.reason,
            conflict.when_prefer_this,
            conflict.when_prefer_other,
        );
        fault("conflict", *step, detail, Vec::new())
    });
    let missing = review.missing.iter().map(|(step, needed)| {
        let detail = format!("{} needs {needed}, which does not come before it", steps[*step]);
        fault("missing-predecessor", *step, detail, vec![needed.to_string()])
    });
    let mut faults: Vec<PlanFault> = unknown.chain(conflicts).chain(missing).collect();
    faults.sort_by_key(|fault| fault.step);
    faults
}

fn offer(instead: Instead, steps: &[String]) -> PlanInstead {
    let Instead { step, tool, when, benefits, not_for, .. } = instead;
    PlanInstead {
        step,
        tool: steps[step].clone(),
        question: format!("did you mean {tool} instead of {}?", steps[step]),
        instead: tool.to_string(),
        when,
        benefits,
        not_for,
    }
}

/// The plan with one step replaced by an alternative, each way.
struct Replaced(Vec<Replacement>);

struct Replacement {
    steps: Vec<String>,
    when: String,
    before_ms: u64,
    after_ms: u64,
    price: Option<PriceDifference>,
}

impl Replaced {
    fn of(context: &Context, generation: &Generation, learnt: &Learnt, better: &[&Instead], calls: &[Asked]) -> Self {
        let estimate =
            |call: &Asked| context.engine.estimate(generation, learnt, call).forecast.estimated_duration_ms();
        let before: Vec<u64> = calls.iter().map(estimate).collect();
        let total: u64 = before.iter().sum();
        let replace = |instead: &&Instead| {
            // Modes and sizes are the replaced tool's own.
            let other = Asked { tool: instead.tool.to_string(), ..Asked::default() };
            let mut steps: Vec<String> = calls.iter().map(|call| call.tool.clone()).collect();
            steps[instead.step] = instead.tool.to_string();
            let (when, price) = (instead.when.clone(), instead.price.clone());
            let after_ms = (total - before[instead.step]).saturating_add(estimate(&other));
            Replacement { steps, when, before_ms: total, after_ms, price }
        };
        Self(better.iter().map(replace).collect())
    }

    /// Those that are expected to take less time: first those that are not documented to cost more.
    fn faster(&self) -> Vec<FasterPlan> {
        let mut plans: Vec<FasterPlan> = Vec::new();
        for Replacement { steps, when, before_ms, after_ms, price } in &self.0 {
            let Some(saves_ms) = before_ms.checked_sub(*after_ms).filter(|saved| *saved > 0) else { continue };
            let dearer = match price {
                Some(PriceDifference::Dearer(why)) => Some(why.clone()),
                _ => None,
            };
            let (steps, when) = (steps.clone(), when.clone());
            plans.push(FasterPlan { steps, when, estimated_duration_ms: *after_ms, saves_ms, dearer });
        }
        plans.sort_by(|a, b| {
            let of_price = a.dearer.is_some().cmp(&b.dearer.is_some());
            of_price.then_with(|| b.saves_ms.cmp(&a.saves_ms)).then_with(|| a.steps.cmp(&b.steps))
        });
        plans.truncate(MAX_OFFERED);
        plans
    }

    /// Those that are documented to cost less, fastest first.
    fn cheaper(&self) -> Vec<CheaperPlan> {
        let mut plans: Vec<CheaperPlan> = Vec::new();
        for Replacement { steps, when, after_ms, price, .. } in &self.0 {
            let Some(PriceDifference::Cheaper(why)) = price else { continue };
            let (steps, when, why) = (steps.clone(), when.clone(), why.clone());
            plans.push(CheaperPlan { steps, when, why, estimated_duration_ms: *after_ms });
        }
        plans.sort_by(|a, b| a.estimated_duration_ms.cmp(&b.estimated_duration_ms).then_with(|| a.steps.cmp(&b.steps)));
        plans.truncate(MAX_OFFERED);
        plans
    }
}
