//! What becomes of a reload: catalog, presets and categories are published as one generation, and whoever keeps a view
//! of the catalog is told.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::Engine;
use super::index_renewal::IndexRenewal;
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
    /// Without a thread for it saves wait for the index.
    renewal: Option<IndexRenewal>,
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
        let renewal = IndexRenewal::start(Arc::clone(&engine));
        let renewal =
            renewal.inspect_err(|error| tracing::warn!(%error, "no thread makes the index beside saves")).ok();
        Self { engine, metrics, presets, categories, announced: None, renewal }
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
        self.renew_index(report.trigger);
    }

    fn renew_index(&self, trigger: Trigger) {
        match (trigger, &self.renewal) {
            // The first message of a start makes the index, or the thread beside the start.
            (Trigger::Start, _) => {}
            // Nobody waits for these, but the next save does.
            (Trigger::Event | Trigger::Poll, Some(renewal)) if renewal.order() => {}
            _ => self.engine.renew_search(),
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread::yield_now;
    use std::time::Duration;

    use super::*;
    use crate::catalog::load::{LoadOptions, load};

    fn report(trigger: Trigger, directory: &std::path::Path) -> Report {
        let loaded = load(LoadOptions::directory(directory));
        Report { trigger, outcome: ReloadOutcome::Changed, loaded, took: Duration::ZERO, whole: true, polling: None }
    }

    fn save(directory: &std::path::Path, name: &str) {
        let rest =
            "title: Lighthouses\ndescription: d\ncategory: test\ncapabilities: []\nkeywords: []\nuse_cases: []\n";
        fs::write(directory.join(name).with_extension("yaml"), format!("name: {name}\n{rest}")).unwrap();
    }

    #[test]
    fn a_save_is_published_while_the_index_is_made_and_found_after() {
        let directory = tempfile::TempDir::new().unwrap();
        let save = |name: &str| save(directory.path(), name);
        let engine = Arc::new(Engine::new());
        let metrics = Arc::new(Metrics::new().unwrap());
        let mut publisher = Publisher::new(Arc::clone(&engine), metrics, None, None);
        save("first");
        publisher.publish(&mut report(Trigger::Start, directory.path()));
        assert_eq!(engine.selector(&engine.generation()).index().len(), 1);

        let making = engine.qualifier.hold_making();
        for name in ["second", "third"] {
            save(name);
            publisher.publish(&mut report(Trigger::Event, directory.path()));
            assert!(engine.generation().tool(name).is_some(), "{name} is served without the index");
        }
        assert_eq!(engine.selector(&engine.generation()).index().len(), 1);
        drop(making);
        while engine.selector(&engine.generation()).index().len() < 3 {
            yield_now();
        }
        save("fourth");
        publisher.publish(&mut report(Trigger::Request, directory.path()));
        assert_eq!(engine.selector(&engine.generation()).index().len(), 4, "who asks for a reload finds all of it");
    }
    #[test]
    fn the_first_index_is_that_of_the_latest_catalog() {
        let directory = tempfile::TempDir::new().unwrap();
        let save = |name: &str| save(directory.path(), name);
        let engine = Arc::new(Engine::new());
        let mut publisher = Publisher::new(Arc::clone(&engine), Arc::new(Metrics::new().unwrap()), None, None);
        save("first");
        publisher.publish(&mut report(Trigger::Start, directory.path()));
        let first = Arc::clone(&engine.generation());
        let making = engine.qualifier.hold_making();
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| engine.selector(&first).index().len());
            save("second");
            scope.spawn(|| publisher.publish(&mut report(Trigger::Request, directory.path())));
            while engine.generation().number() == first.number() {
                yield_now();
            }
            drop(making);
            asked.join().unwrap();
        });
        assert_eq!(engine.selector(&engine.generation()).index().len(), 2);
    }

    #[test]
    fn who_asks_with_an_earlier_catalog_makes_the_index_of_the_latest() {
        let directory = tempfile::TempDir::new().unwrap();
        let engine = Arc::new(Engine::new());
        let mut publisher = Publisher::new(Arc::clone(&engine), Arc::new(Metrics::new().unwrap()), None, None);
        save(directory.path(), "first");
        publisher.publish(&mut report(Trigger::Start, directory.path()));
        let first = Arc::clone(&engine.generation());
        save(directory.path(), "second");
        publisher.publish(&mut report(Trigger::Request, directory.path()));
        assert_eq!(engine.selector(&first).index().len(), 2);
    }
}
