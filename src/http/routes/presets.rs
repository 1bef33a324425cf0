//! Routes of presets: which workflows there are, and which of them fit.

use crate::http::answer::{self, Answer};
use crate::http::handler::{Context, Request};
use crate::http::operation::{Operation, Parameter, path, query, query_number};
use crate::http::problem::Problem;
use crate::plugin_host::Ask;
use crate::text::near;
use crate::wire::metadata::PresetSuggestion;
use crate::wire::presets::{MatchAnswer, MatchRequest, PresetMetadata, PresetPage};
use crate::wire::problem::Code;

/// Presets on a page.
const PAGE: usize = 100;

pub(super) fn list_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        query_number("limit", (1, 1000), "At most so many, 1 to 1000; 100 by default."),
        query("cursor", "string", "`next_cursor` of the page before."),
    ];
    Operation::new("listPresets", "Which workflows there are.")
        .taking(&PARAMETERS)
        .answering::<PresetPage>("A page, by id.")
}

pub(super) fn list(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let query = &request.query;
    let limit = query.number("limit", PAGE, 1, 1000)?;
    let start = query.page_start()?;
    let (presets, learnt) = (request.generation.presets(), context.engine.learnt());
    let (total, end) = (presets.len(), start.saturating_add(limit).min(presets.len()));
    let items = presets.iter().skip(start).take(limit);
    let items = items.map(|preset| {
        PresetMetadata::new(preset, context.engine.expected(&request.generation, &learnt, &preset.tools))
    });
    let items = items.collect();
    Ok(answer::json(&PresetPage { items, total, next_cursor: (end < total).then(|| end.to_string()) }))
}

pub(super) fn preset_operation() -> Operation {
    Operation::new("getPreset", "What this workflow is.")
        .taking(const { &[path("name", "The preset's id.")] })
        .answering::<PresetMetadata>("The preset.")
}

pub(super) fn preset(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let (id, presets) = (request.parameter()?, request.generation.presets());
    let preset = presets.get(id).ok_or_else(|| {
        let near = near::nearest(id, presets.iter().map(|preset| preset.id.as_str()));
        Problem::not_found(Code::UnknownPreset, format!("there is no preset `{id}`"))
            .with_near(near.map(str::to_owned).into_iter().collect())
    })?;
    let took = context.engine.expected(&request.generation, &context.engine.learnt(), &preset.tools);
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

pub(super) fn fitting(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let MatchRequest { tool_history, goal, session_id } = request.take_body()?;
    let (generation, learnt) = (context.engine.generation(), context.engine.learnt());
    let mut ask = Ask { session_id, goal, ..Ask::default() };
    context.engine.complete(&learnt, &request.grant, &mut ask, tool_history);
    let fitting = context.engine.match_presets(&generation, &learnt, &ask.history, ask.goal.as_deref());
    let items: Vec<PresetSuggestion> = fitting.into_iter().map(PresetSuggestion::from).collect();
    Ok(answer::json(&MatchAnswer { total: items.len(), items }))
}
