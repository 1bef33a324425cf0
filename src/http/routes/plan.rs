//! `POST /v1/plans/check`: is this sequence of calls a good one, how long will it take, and what would be better?

use crate::catalog::plan::{Instead, Review};
use crate::engine::learner::Learnt;
use crate::engine::{Acquaintance, Asked, Generation};
use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::wire::plan::{FasterPlan, PlanAnswer, PlanFault, PlanInstead, PlanRequest};
use crate::wire::problem::Code;
use crate::wire::timing::Timing;

/// Faster plans that are offered.
const MAX_FASTER: usize = 3;

pub(super) fn check_operation() -> Operation {
    Operation::new("checkPlan", "Whether a sequence of calls is a good one, and how long it will take.")
        .with_body::<PlanRequest>()
        .answering::<PlanAnswer>("What speaks against it.")
}

pub(super) fn check(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let PlanRequest { steps, goal, session_id, timeout_ms } = request.take_body()?;
    let goal = goal.or_else(|| context.engine.goal(&request.grant.tenant, session_id.as_deref()));
    let (generation, learnt) = (context.engine.generation(), context.engine.learnt());
    let asked: Vec<Asked> = steps.into_iter().map(Asked::from).collect();
    let steps: Vec<String> = asked.iter().map(|call| call.tool.clone()).collect();
    let review = generation.review(&steps, goal.as_deref().unwrap_or_default());
    let plan = context.engine.estimate_plan(&generation, &learnt, &asked);
    let plan = plan.ok_or_else(|| Problem::invalid(Code::InvalidBody, "a plan has at least one step"))?;
    let faults = faults(&review, &steps);
    let tools = steps.iter().map(|tool| context.engine.acquaintance(&generation, &learnt, tool));
    let acquaintance = Acquaintance::of_all(tools);
    Ok(answer::json(&PlanAnswer {
        ok: faults.is_empty(),
        faults,
        faster: faster(context, &generation, &learnt, &review, &asked),
        instead: review.instead.into_iter().map(|instead| offer(instead, &steps)).collect(),
        timing: Timing::of_plan(&plan, timeout_ms.unwrap_or(context.engine.factory_timeout_ms()), &acquaintance),
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
    let Instead { step, tool, when, benefits, not_for } = instead;
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

/// The plan with one step replaced by an alternative, where that is expected to take less time.
fn faster(
    context: &Context,
    generation: &Generation,
    learnt: &Learnt,
    review: &Review,
    calls: &[Asked],
) -> Vec<FasterPlan> {
    let estimate = |call: &Asked| context.engine.estimate(generation, learnt, call).forecast.estimated_duration_ms();
    let before: Vec<u64> = calls.iter().map(estimate).collect();
    let total: u64 = before.iter().sum();
    let mut plans: Vec<FasterPlan> = review
        .instead
        .iter()
        .filter_map(|instead| {
            // Modes and sizes are the replaced tool's own.
            let other = Asked { tool: instead.tool.to_string(), ..Asked::default() };
            let saves_ms = before[instead.step].checked_sub(estimate(&other)).filter(|saved| *saved > 0)?;
            let mut steps: Vec<String> = calls.iter().map(|call| call.tool.clone()).collect();
            steps[instead.step] = instead.tool.to_string();
            Some(FasterPlan { steps, when: instead.when.clone(), estimated_duration_ms: total - saves_ms, saves_ms })
        })
        .collect();
    plans.sort_by(|a, b| b.saves_ms.cmp(&a.saves_ms).then_with(|| a.steps.cmp(&b.steps)));
    plans.truncate(MAX_FASTER);
    plans
}
