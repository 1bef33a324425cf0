//! What becomes of a reload: catalog, presets and categories are published as one generation, and whoever keeps a view
//! of the catalog is told.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::Engine;
use crate::catalog::Diagnostic;
use crate::catalog::load::Loaded;
use crate::catalog::reload::{ReloadOutcome, Report, Trigger};
use crate::qualify::categories::file::CategoryFile;
use crate::suggest::presets::directory::PresetDirectory;
use crate::telemetry::Metrics;
use crate::telemetry::events::{CatalogReloaded, PresetsLoaded, WatchChanged};

/// Publishes reloads. Owned by the catalog's thread.
#[derive(Debug)]
pub struct Publisher {
    engine: Arc<Engine>,
    metrics: Arc<Metrics>,
    presets: PresetDirectory,
    categories: CategoryFile,
    /// How changes are noticed, as it was last announced: by events, or by the poll only for a reason.
    announced: Option<Result<(), String>>,
}

impl Publisher {
    /// Publishes to `engine` what is in the directory of presets and the file of categories beside each catalog.
    pub fn new(
        engine: Arc<Engine>,
        metrics: Arc<Metrics>,
        presets: Option<PathBuf>,
        categories: Option<PathBuf>,
    ) -> Self {
        let (presets, categories) = (PresetDirectory::new(presets), CategoryFile::new(categories));
        Self { engine, metrics, presets, categories, announced: None }
    }

    /// Publishes one reload, and completes its report with what was found beside the documents.
    pub fn publish(&mut self, report: &mut Report) {
        let before = Arc::clone(&self.engine.generation());
        let catalog = Arc::clone(&report.loaded.catalog);
        if report.whole {
            self.presets.read();
            self.categories.read();
        }
        let (presets, faults) = self.presets.current(|tool| catalog.get(tool).is_some());
        report.loaded.add(faults);
        let (categories, faults) = self.categories.current();
        report.loaded.add(faults);
        let news = *before.loaded().diagnostics != *report.loaded.diagnostics;
        let (count, has_other_presets) = (presets.len(), *before.presets() != presets);
        let has_other_categories = **before.categories() != categories;
        self.engine.offer_categories(categories);
        let generation = self.engine.publish_with(&report.loaded, presets);
        if has_other_presets {
            PresetsLoaded { presets: count }.emit(&self.metrics);
        }
        if (has_other_presets || has_other_categories) && report.outcome == ReloadOutcome::Unchanged {
            report.outcome = ReloadOutcome::Changed;
        }
        if generation != before.number() {
            self.engine.announce_catalog(generation, catalog);
        }
        let mended = mended(&before.loaded().diagnostics, &report.loaded);
        self.log(report, generation, news, mended);
        // The first message of a start makes the index, or the thread beside the start.
        if report.trigger != Trigger::Start {
            self.engine.renew_search();
        }
    }

    fn log(&mut self, report: &Report, generation: u64, news: bool, mended: Vec<(String, bool)>) {
        let Loaded { catalog, diagnostics, documents, .. } = &report.loaded;
        CatalogReloaded {
            labels: [report.trigger.as_str(), report.outcome.as_str()],
            generation,
            tools: catalog.len(),
            documents: [documents.good, documents.stale, documents.bad],
            took: report.took,
            diagnostics,
            news,
            mended,
        }
        .emit(&self.metrics);
        let noticed = report.polling.clone().map_or(Ok(()), Err);
        if self.announced.as_ref() != Some(&noticed) {
            WatchChanged { polling: report.polling.as_deref() }.emit(&self.metrics);
            self.announced = Some(noticed);
        }
    }
}

/// Files with errors before that have none now; each with whether its document is served.
fn mended(before: &[Diagnostic], now: &Loaded) -> Vec<(String, bool)> {
    let faulty = |found: &[Diagnostic]| -> BTreeSet<String> {
        found.iter().filter(|fault| fault.is_error()).map(|fault| fault.file.clone()).collect()
    };
    let (before, faulty_now) = (faulty(before), faulty(&now.diagnostics));
    let mended: Vec<String> = before.difference(&faulty_now).cloned().collect();
    if mended.is_empty() {
        return Vec::new();
    }
    let served: BTreeSet<String> = now.catalog.iter().map(|entry| entry.file().display().to_string()).collect();
    let with_state = |file: String| {
        let is_served = served.contains(&file);
        (file, is_served)
    };
    mended.into_iter().map(with_state).collect()
}
