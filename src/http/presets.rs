//! Routes of presets: which workflows there are, and which of them fit.

use super::answer::{self, Answer};
use super::operation::{Operation, Parameter, path, query};
use super::problem::Problem;
use super::service::{Call, Context};
use super::wire_metadata::PresetSuggestion;
use super::wire_presets::{MatchAnswer, MatchRequest, PresetMetadata, PresetPage};
use crate::access::Grant;
use crate::engine::proposer::{Ask, CallResult};
use crate::strict::Node;
use crate::strict::decode::decode;
use crate::text::near;

/// Presets on a page.
const PAGE: usize = 100;

pub(super) fn list_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        query("limit", "integer", "At most so many, 1 to 1000; 100 by default."),
        query("cursor", "string", "`next_cursor` of the page before."),
    ];
    Operation::new("listPresets", "Which workflows there are.")
        .taking(&PARAMETERS)
        .answering::<PresetPage>("A page, by id.")
}

pub(super) fn list(context: &Context, call: &Call<'_>) -> Result<Answer, Problem> {
    let query = call.query(&["limit", "cursor"])?;
    let limit = query.number("limit", PAGE, 1, 1000)?;
    let start = query.number("cursor", 0, 0, usize::MAX)?;
    let (presets, learnt) = (call.generation.presets(), context.engine.learnt());
    let (total, end) = (presets.len(), start.saturating_add(limit).min(presets.len()));
    let items = presets.iter().skip(start).take(limit);
    let items = items
        .map(|preset| PresetMetadata::new(preset, context.engine.expected(&call.generation, &learnt, &preset.tools)));
    let items = items.collect();
    Ok(answer::json(&PresetPage { items, total, next_cursor: (end < total).then(|| end.to_string()) }))
}

pub(super) fn preset_operation() -> Operation {
    Operation::new("getPreset", "What this workflow is.")
        .taking(const { &[path("name", "The preset's id.")] })
        .answering::<PresetMetadata>("The preset.")
}

pub(super) fn preset(context: &Context, call: &Call<'_>) -> Result<Answer, Problem> {
    call.query(&[])?;
    let (id, presets) = (call.parameter()?, call.generation.presets());
    let preset = presets.get(id).ok_or_else(|| {
        let near = near::nearest(id, presets.iter().map(|preset| preset.id.as_str()));
        Problem::not_found("unknown-preset", format!("there is no preset `{id}`"))
            .with_near(near.map(str::to_owned).into_iter().collect())
    })?;
    let took = context.engine.expected(&call.generation, &context.engine.learnt(), &preset.tools);
    Ok(answer::json(&PresetMetadata::new(preset, took)))
}

pub(super) fn fitting_operation() -> Operation {
    Operation::new(
        "matchPresets",
        "Which workflows a session has begun, or a goal calls for, and what is left of them.",
    )
    .with_body::<MatchRequest>()
    .answering::<MatchAnswer>("At most three, the best first.")
}

pub(super) fn fitting(context: &Context, grant: &Grant, body: Node) -> Result<Answer, Problem> {
    let MatchRequest { tool_history, goal, session_id } = decode(body).map_err(|faults| Problem::faulty(&faults))?;
    let (generation, learnt) = (context.engine.generation(), context.engine.learnt());
    let ask = Ask {
        tenant: grant.tenant.to_string(),
        history: tool_history,
        result: CallResult { session_id, ..CallResult::default() },
        ..Ask::default()
    };
    let goal = goal.or_else(|| context.engine.goal(&ask.tenant, ask.result.session_id.as_deref()));
    let history = context.engine.history(&learnt, &ask);
    let fitting = context.engine.match_presets(&generation, &learnt, &history, goal.as_deref());
    let items: Vec<PresetSuggestion> = fitting.into_iter().map(PresetSuggestion::from).collect();
    Ok(answer::json(&MatchAnswer { total: items.len(), items }))
}
