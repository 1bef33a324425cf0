//! A selection as any door asks for it: its names are checked, its tools ranked, a model's opinion is heard, and it is
//! counted.

use std::sync::Arc;
use std::time::Instant;

use super::{Engine, Generation};
use crate::access::Grant;
use crate::blocking::{self, NoThread};
use crate::catalog::ToolMetadata;
use crate::llm::{self, Candidate, Llm};
use crate::qualify::{Categories, IntentContext, Qualification, Question};
use crate::strict::Word;
use crate::telemetry::events::MessageQualified;
use crate::text::near;

/// What a door asks.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Who asks; choices and sessions of its tenant count.
    pub grant: Grant,
    /// The session that the message belongs to.
    pub session: Option<String>,
    pub message: String,
    /// What the conversation was about, instead of what the session knows.
    pub context: Option<IntentContext>,
    /// Networks that are named beside the message.
    pub networks: Vec<String>,
    /// The only categories to offer, if there is one.
    pub selected_categories: Vec<String>,
    /// Tools to offer whatever the message is.
    pub exact_tools: Vec<String>,
    pub ignore_other_tools: bool,
    /// Tools never to offer.
    pub excluded_tools: Vec<String>,
    /// Tools at most; as configured if it does not say.
    pub max_tools: Option<usize>,
    /// Leave out tools that are less likely, 0 to 1.
    pub min_confidence: f32,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum Named {
    /// A tool of the catalog.
    Tool,
    Category,
    Network,
}

/// A name that is none here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} `{name}`{}", if *.what == Named::Tool { " in the catalog" } else { "" })]
pub struct UnknownName {
    /// What it should be.
    pub what: Named,
    pub name: String,
    /// Names that may have been meant.
    pub near: Vec<String>,
}

/// No selection was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// A name in it is none here.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// Nobody could make it.
    #[error(transparent)]
    NoThread(#[from] NoThread),
}

impl Engine {
    /// Asks this model for its opinion on selections from now on, unless there is one already.
    pub fn install_llm(&self, llm: Arc<Llm>) {
        // The first one stays; there is no reason to install two.
        let _ = self.llm.set(llm);
    }

    /// Which tools fit this message? The answer of [`Engine::qualify`], put in order by a model if there is one.
    ///
    /// May be dropped at any time, and then what the model says is not waited for.
    pub async fn select(self: &Arc<Self>, selection: Selection) -> Result<Qualification, SelectError> {
        let start = Instant::now();
        let (engine, message) = (Arc::clone(self), selection.message.clone());
        let (tenant, session) = (Arc::clone(&selection.grant.tenant), selection.session.clone());
        let is_short = self.ranks_shortly(&message);
        let mut found = blocking::run_unless_short(is_short, move || engine.rank(&selection)).await??;
        if let Some(llm) = self.llm.get() {
            ask(llm, &message, &mut found).await;
        }
        MessageQualified {
            tenant: &tenant,
            session: session.as_deref(),
            took: start.elapsed(),
            tools: found.available.len(),
            categories: &found.categories,
            confidence: found.confidence.into(),
            is_sticky: found.sticky,
            no_tool_needed: found.no_tool_needed,
        }
        .emit(&self.metrics);
        Ok(found)
    }

    fn rank(&self, selection: &Selection) -> Result<Qualification, UnknownName> {
        let generation = self.generation();
        check_names(&generation, selection)?;
        let settings = self.qualifier_settings();
        let question = Question {
            message: &selection.message,
            context: selection.context.as_ref(),
            networks: &selection.networks,
            selected_categories: &selection.selected_categories,
            exact_tools: &selection.exact_tools,
            ignore_other_tools: selection.ignore_other_tools,
            excluded_tools: &selection.excluded_tools,
            max_tools: selection.max_tools.unwrap_or(settings.max_tools),
            min_confidence: selection.min_confidence,
            rules: settings.rules(),
            ..Question::default()
        };
        Ok(self.qualify(&generation, &selection.grant, selection.session.as_deref(), &question))
    }
}

/// A name that the catalog does not have is a mistake to be told, not an empty answer.
fn check_names(generation: &Generation, selection: &Selection) -> Result<(), UnknownName> {
    for name in selection.exact_tools.iter().chain(&selection.excluded_tools) {
        if generation.tool(name).is_none() {
            let near = generation.near_names(name);
            return Err(UnknownName { what: Named::Tool, name: name.clone(), near });
        }
    }
    let Categories { categories, networks } = &**generation.categories();
    let near = |name: &str, known: &mut dyn Iterator<Item = &str>| {
        near::nearest_few(name, known, 3).into_iter().map(str::to_owned).collect()
    };
    let has_category = |name: &str| categories.iter().any(|known| known.name == name) || generation.has_category(name);
    if let Some(name) = selection.selected_categories.iter().find(|name| !has_category(name)) {
        let near = near(name, &mut categories.iter().map(|known| known.name.as_str()));
        return Err(UnknownName { what: Named::Category, name: name.clone(), near });
    }
    if let Some(name) = selection.networks.iter().find(|name| !networks.iter().any(|known| known.name == **name)) {
        let near = near(name, &mut networks.iter().map(|known| known.name.as_str()));
        return Err(UnknownName { what: Named::Network, name: name.clone(), near });
    }
    Ok(())
}

/// Asks the model for its order and its words. Without an answer of it the local one stands; it can name nothing that
/// is not offered already.
async fn ask(llm: &Llm, message: &str, found: &mut Qualification) {
    if found.available.is_empty() || found.no_tool_needed {
        return;
    }
    let shown: Vec<ToolMetadata> =
        found.available.iter().take(llm.max_candidates()).map(|tool| tool.entry.document()).collect();
    let candidates = shown.iter().map(|document| Candidate {
        name: &document.name,
        category: &document.category,
        description: &document.description,
    });
    // Why there is none is logged and counted where it is found.
    let Ok(opinion) = llm.ask(&llm::ModelQuestion { message, candidates: candidates.collect() }).await else { return };
    found.prefer(&opinion.ranked);
    if let Some(reasoning) = opinion.reasoning {
        found.reasoning = reasoning;
    }
}
