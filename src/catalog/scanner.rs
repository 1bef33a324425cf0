//! The memory between reloads: reads what changed, keeps the last good version of what broke, says everything that is
//! wrong.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::files::{self, Listing, Place};
use super::findings;
use super::load::{Documents, LoadOptions, Loaded, claimed_name, digest, parse, shadowed};
use super::offer::{Offer, Offers};
use super::relations::{self, RelationFinding};
use super::{Diagnostic, Entry};
use crate::parallel;
use crate::strict::locate::locate;
use crate::strict::{FileStamp, file, load};
use crate::watch::Directories;

/// A listing that keeps moving is taken as it is after so many tries; the events of the next move bring the next
/// reload.
const MAX_TRIES: usize = 5;

/// Faults of one document that are told: who mends these finds the others.
const MAX_FAULTS: usize = 20;

/// Reads a file's content up to a limit; a parameter so that failing disks can be tested.
pub type ReadFile = fn(&Path, usize) -> io::Result<Vec<u8>>;

/// What each file said when it was last read.
#[derive(Debug)]
pub struct Scanner {
    options: LoadOptions,
    read_file: ReadFile,
    records: BTreeMap<Place, Record>,
    offers: Offers,
    current: Loaded,
    /// Directories whose change can change the catalog, as of the last scan.
    directories: Directories,
    /// Could some place not be looked at in the last scan?
    blind: bool,
    /// Why the directories that were asked for are not the ones that are served, if so.
    refused: Option<Diagnostic>,
}

#[derive(Debug, Clone, Default)]
struct Record {
    stamp: Option<FileStamp>,
    /// Could the file have changed since without its stamp showing it?
    settled: bool,
    digest: u128,
    /// The document, or its last good version if there are faults.
    entry: Option<Arc<Entry>>,
    /// The name that a document which never was good gives its tool.
    claimed: Option<String>,
    faults: Vec<Diagnostic>,
}

impl Scanner {
    pub fn new(options: LoadOptions) -> Self {
        Self::with_reader(options, file::read)
    }

    /// An empty scanner that reads files by `read_file`.
    pub fn with_reader(mut options: LoadOptions, read_file: ReadFile) -> Self {
        options.make_absolute();
        Self {
            options,
            read_file,
            records: BTreeMap::new(),
            offers: Offers::default(),
            current: Loaded::default(),
            directories: Directories::new(),
            blind: false,
            refused: None,
        }
    }

    /// Changes how documents are read; with the next scan.
    pub fn set_options(&mut self, mut options: LoadOptions) {
        options.make_absolute();
        if options.max_document_bytes != self.options.max_document_bytes {
            for record in self.records.values_mut() {
                record.stamp = None;
            }
        }
        if options.roots != self.options.roots {
            if self.refuse_roots(&options.roots) {
                options.roots.clone_from(&self.options.roots);
            } else {
                self.move_records(&options.roots);
            }
        }
        self.options = options;
    }

    /// Changes what is offered beside the documents; with the next scan.
    pub fn set_offers(&mut self, offers: Vec<Offer>) {
        self.offers.set(offers);
    }

    /// Directories of which none can be listed are most likely mistyped: what is served stays.
    fn refuse_roots(&mut self, roots: &[PathBuf]) -> bool {
        self.refused = None;
        if files::list(roots).blind.len() < roots.len() || self.records.is_empty() {
            return false;
        }
        let message = "none of the directories of tool documents can be listed; the old ones are served";
        self.refused = roots.first().map(|root| Diagnostic::error(root, "unreadable", message));
        true
    }

    /// What was read below a root that stays need not be read again, and keeps its last good versions.
    fn move_records(&mut self, roots: &[PathBuf]) {
        for (place, record) in std::mem::take(&mut self.records) {
            if let Some(root) = roots.iter().position(|root| place.path.starts_with(root)) {
                self.records.insert(Place { root, ..place }, record);
            }
        }
    }

    /// Brings the catalog up to date with the disk. `arm` is called with the directories before any file is read, so
    /// that whatever changes later is either read here or announced by an event.
    pub fn scan(&mut self, mut arm: impl FnMut(&Directories)) -> &Loaded {
        let mut listing = self.list();
        for _ in 0..MAX_TRIES {
            self.directories.clone_from(&listing.directories);
            arm(&self.directories);
            self.take_up(&listing);
            let again = self.list();
            let moved = again.documents != listing.documents || again.directories != listing.directories;
            listing = again;
            if !moved {
                break;
            }
        }
        self.conclude(listing)
    }

    /// Reads the disk as it is at one moment, for whoever does not follow it.
    pub fn read_once(&mut self) -> &Loaded {
        let listing = self.list();
        self.take_up(&listing);
        self.conclude(listing)
    }

    /// What is on disk. Of a search path, a directory that never was there is no fault as long as another is.
    fn list(&self) -> Listing {
        let mut listing = files::list(&self.options.roots);
        let is_absent = |path: &Path| {
            self.options.roots.iter().any(|root| root == path)
                && std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
                && !self.records.keys().any(|place| place.path.starts_with(path))
        };
        if self.options.is_search_path && !self.options.roots.iter().all(|root| is_absent(root)) {
            listing.diagnostics.retain(|finding| !is_absent(Path::new(&finding.file)));
            listing.blind.retain(|path| !is_absent(path));
        }
        if self.options.is_search_path && !self.options.are_examples_beside {
            listing.leave_examples(self.options.roots.len().saturating_sub(1));
        }
        listing
    }

    fn conclude(&mut self, mut listing: Listing) -> &Loaded {
        self.blind = !listing.blind.is_empty();
        listing.diagnostics.extend(self.refused.clone());
        self.assemble(listing.diagnostics);
        &self.current
    }

    /// Could some place not be looked at in the last scan? Then another one is due soon.
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// Reads one file that was saved as a whole. Returns the new catalog if that was all there was to it: a new
    /// document, or a new version of one under its old name. Anything else needs a scan.
    pub fn refresh(&mut self, path: &Path) -> Option<&Loaded> {
        let root = self.options.roots.iter().position(|root| path.starts_with(root))?;
        let place = Place { root, path: path.into() };
        let stamp = FileStamp::of(path)?;
        let old = self.records.get(&place);
        let record = self.read(&place, stamp, old);
        let fresh = record.entry.clone().filter(|_| record.faults.is_empty())?;
        if self.offers.has(fresh.name()) {
            return None;
        }
        let held = self.current.catalog.get(fresh.name());
        let serves = match (old.and_then(|old| old.entry.as_ref()), held) {
            (None, None) => old.is_none(),
            (Some(old), Some(held)) => Arc::ptr_eq(old, held),
            _ => false,
        };
        if !serves || old.is_some_and(|old| !old.faults.is_empty()) {
            return None;
        }
        if old.is_none() {
            self.current.documents.good += 1;
        }
        let unchanged = held.is_some_and(|held| Arc::ptr_eq(held, &fresh));
        self.records.insert(place, record);
        if !unchanged {
            let mut catalog = (*self.current.catalog).clone();
            catalog.insert(fresh);
            self.current.catalog = Arc::new(catalog);
        }
        Some(&self.current)
    }

    /// Reads what the listing shows as new or changed, in parallel, and forgets what is gone.
    fn take_up(&mut self, listing: &Listing) {
        let is_current = |place: &Place, stamp: &FileStamp| {
            self.records.get(place).is_some_and(|record| record.settled && record.stamp == Some(*stamp))
        };
        let changed: Vec<(&Place, FileStamp)> = listing
            .documents
            .iter()
            .filter(|(place, stamp)| !is_current(place, stamp))
            .map(|(place, stamp)| (place, *stamp))
            .collect();
        let fresh = self.read_all(&changed);
        let is_below = |place: &Place, paths: &[PathBuf]| paths.iter().any(|path| place.path.starts_with(path));
        self.records.retain(|place, record| {
            if listing.documents.contains_key(place) {
                return true;
            }
            let (code, message) = if is_below(place, &listing.blind) {
                ("unreadable", "cannot be reached; its last good version is served")
            } else if is_below(place, &listing.cut) {
                (
                    "beyond-limit",
                    "is not read any more, since there are too many directories; its last version is served",
                )
            } else {
                return false;
            };
            if record.entry.is_none() {
                return false;
            }
            record.faults = vec![Diagnostic::error(&place.path, code, message)];
            record.stamp = None;
            true
        });
        self.records.extend(fresh);
    }

    fn read_all(&self, changed: &[(&Place, FileStamp)]) -> Vec<(Place, Record)> {
        let read =
            |&(place, stamp): &(&Place, FileStamp)| (place.clone(), self.read(place, stamp, self.records.get(place)));
        parallel::map(changed, read)
    }

    fn read(&self, place: &Place, stamp: FileStamp, old: Option<&Record>) -> Record {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs().cast_signed());
        let settled = stamp.is_settled(now);
        let last_good = old.and_then(|old| old.entry.clone());
        let content = match (self.read_file)(&place.path, self.options.max_document_bytes) {
            Ok(content) => content,
            Err(error) => {
                let fault = Diagnostic::error(&place.path, "unreadable", format!("cannot be read: {error}"))
                    .with_hint("let the daemon's user read it");
                return Record { settled, entry: last_good, faults: vec![fault], ..Record::default() };
            }
        };
        let digest = digest(&content);
        if let Some(old) = old.filter(|old| old.digest == digest && old.stamp.is_some()) {
            return Record { stamp: Some(stamp), settled, ..old.clone() };
        }
        let mut claimed = None;
        let (entry, faults) = match parse(&place.path, &content, self.options.max_document_bytes) {
            Ok(document) => {
                let entry = Arc::new(Entry::new(&document, Arc::clone(&place.path)));
                // A change of comments or layout is none.
                let same = last_good.filter(|held| held.digest() == entry.digest());
                (Some(same.unwrap_or(entry)), Vec::new())
            }
            Err(faults) => {
                if last_good.is_none() && !self.is_elsewhere(place) {
                    claimed = claimed_name(&content, self.options.max_document_bytes);
                }
                (last_good, self.shown(place, faults))
            }
        };
        Record { stamp: Some(stamp), settled, digest, entry, claimed, faults }
    }

    /// Does a link lead to it from outside the directory?
    fn is_elsewhere(&self, place: &Place) -> bool {
        let root = self.options.roots.get(place.root).map_or(&*place.path, PathBuf::as_path);
        file::leads_outside(&place.path, root)
    }

    /// The faults as everybody may read them: of a file that a link leads to outside the directory, which may be
    /// anything, only that there are some; and of any file no more than so many.
    fn shown(&self, place: &Place, mut faults: Vec<Diagnostic>) -> Vec<Diagnostic> {
        if self.is_elsewhere(place) {
            return Diagnostic::concealed(&place.path, &faults);
        }
        if faults.len() > MAX_FAULTS {
            let rest = faults.len() - MAX_FAULTS;
            faults.truncate(MAX_FAULTS);
            let message = format!("at least {rest} further faults are not shown");
            faults.push(Diagnostic::error(&place.path, "more-faults", message));
        }
        faults
    }

    /// Records to catalog: the first of two equal names serves, and all that is wrong is said.
    fn assemble(&mut self, mut diagnostics: Vec<Diagnostic>) {
        let mut serving: BTreeMap<&str, &Arc<Entry>> = BTreeMap::new();
        let mut stale = Vec::new();
        let mut documents = Documents::default();
        // A document that is good now goes before the last good version of a faulty one, but not before that of an
        // earlier root: what stands there takes the place of what is shipped, and no slip gives it back.
        let mut records: Vec<(&Place, &Record)> = self.records.iter().collect();
        records.sort_by_key(|(place, record)| (place.root, !record.faults.is_empty()));
        for (_, record) in records {
            diagnostics.extend_from_slice(&record.faults);
            let Some(entry) = &record.entry else {
                documents.bad += 1;
                continue;
            };
            if let Some(first) = serving.get(&**entry.name()) {
                diagnostics.push(shadowed(entry, first));
                documents.bad += 1;
                continue;
            }
            serving.insert(entry.name(), entry);
            if record.faults.is_empty() {
                documents.good += 1;
            } else {
                documents.stale += 1;
                stale.push(Arc::clone(entry.name()));
            }
        }
        stale.sort();
        self.offers.lay(|name| serving.get(name).copied());
        serving.extend(self.offers.entries());
        diagnostics.extend_from_slice(self.offers.diagnostics());
        let mut catalog = (*self.current.catalog).clone();
        if catalog.become_exactly(&serving) {
            self.current.catalog = Arc::new(catalog);
        }
        diagnostics.extend(self.relation_findings());
        findings::sort(&mut diagnostics);
        if *self.current.diagnostics != *diagnostics {
            self.current.diagnostics = diagnostics.into();
        }
        if *self.current.stale != *stale {
            self.current.stale = stale.into();
        }
        let claimed = |record: &Record| Some((record.claimed.clone()?, record.faults.first()?.file.clone()));
        self.current.faulty = self.records.values().filter_map(claimed).collect();
        self.current.documents = documents;
    }
}

/// Relation findings whose line is looked up; beyond it, files alone are named.
const PLACED_FINDINGS: usize = 100;

impl Scanner {
    fn relation_findings(&self) -> Vec<Diagnostic> {
        // A file that is faulty now most likely describes the tool it is named after.
        let faulty: HashSet<&OsStr> = self
            .records
            .iter()
            .filter(|(_, record)| !record.faults.is_empty())
            .filter_map(|(place, _)| place.path.file_stem())
            .collect();
        let faulty = |name: &str| faulty.contains(OsStr::new(name));
        let findings = relations::findings(&self.current.catalog, faulty);
        let place = |(number, finding): (usize, &RelationFinding<'_>)| {
            let file = finding.entry.file();
            let mut diagnostic = Diagnostic::new(file, finding.severity, finding.code, &finding.message);
            diagnostic.hint.clone_from(&finding.hint);
            let text = (number < PLACED_FINDINGS && file.is_absolute())
                .then(|| (self.read_file)(file, self.options.max_document_bytes).ok())
                .flatten()
                .map(|content| load::text_of(file, &content));
            match text.as_deref().and_then(|text| Some((text, locate(text, &finding.path(), false)?))) {
                Some((text, at)) => diagnostic.at(text, at),
                None => diagnostic,
            }
        };
        findings.iter().enumerate().map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::super::load::load;
    use super::*;

    fn document(name: &str, title: &str) -> String {
        format!(
            "name: {name}\ntitle: {title}\ndescription: d\ncategory: c\ncapabilities: []\nkeywords: []\nuse_cases: []\n"
        )
    }

    /// A disk on which some files are not for us. Root reads everything, so permissions cannot stand in for it.
    fn grudging(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        if path.with_extension("locked").exists() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        file::read(path, limit)
    }

    fn codes(loaded: &Loaded) -> Vec<(&str, usize)> {
        loaded.diagnostics.iter().map(|finding| (finding.code.as_str(), finding.line)).collect()
    }

    #[test]
    fn an_unreadable_file_keeps_its_last_good_version() {
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("a.yaml"), document("a", "one")).unwrap();
        let mut scanner = Scanner::with_reader(LoadOptions::directory(directory.path()), grudging);
        assert_eq!(codes(scanner.scan(|_| ())), []);
        fs::write(path("a.locked"), "").unwrap();
        fs::write(path("a.yaml"), document("a", "two")).unwrap();
        fs::write(path("b.yaml"), document("b", "one")).unwrap();
        fs::write(path("b.locked"), "").unwrap();
        let loaded = scanner.scan(|_| ()).clone();
        assert_eq!(codes(&loaded), [("unreadable", 0), ("unreadable", 0)]);
        assert_eq!(loaded.catalog.get("a").unwrap().document().title, "one");
        assert_eq!(*loaded.stale, ["a".into()]);
        assert_eq!(loaded.documents, Documents { good: 0, stale: 1, bad: 1 });
        assert!(scanner.refresh(&path("a.yaml")).is_none(), "a file that cannot be read is not published");
        fs::remove_file(path("a.locked")).unwrap();
        fs::remove_file(path("b.locked")).unwrap();
        let loaded = scanner.scan(|_| ());
        assert_eq!((codes(loaded), loaded.catalog.len()), (vec![], 2));
        assert_eq!(loaded.catalog.get("a").unwrap().document().title, "two");
    }

    #[test]
    fn a_slip_in_an_earlier_root_brings_no_later_one_into_service() {
        let directory = TempDir::new().unwrap();
        let (own, shipped) = (directory.path().join("own"), directory.path().join("shipped"));
        for (root, title) in [(&own, "own"), (&shipped, "shipped")] {
            fs::create_dir(root).unwrap();
            fs::write(root.join("a.yaml"), document("a", title)).unwrap();
        }
        let roots = vec![own.clone(), shipped];
        let mut scanner = Scanner::new(LoadOptions { roots, ..LoadOptions::directory("") });
        let mut check = |text: &str, expected: &str, stale: usize| {
            fs::write(own.join("a.yaml"), text).unwrap();
            let loaded = scanner.scan(|_| ());
            assert_eq!(loaded.catalog.get("a").unwrap().document().title, expected, "{text:?}");
            assert_eq!(loaded.stale.len(), stale, "{text:?}");
        };
        check(&document("a", "own"), "own", 0);
        check("name: a\ntitle: broken\n", "own", 1);
        check(&document("a", "mended"), "mended", 0);
        check(&document("b", "another"), "shipped", 0);
    }

    #[test]
    fn what_did_not_change_is_not_built_again() {
        let directory = TempDir::new().unwrap();
        for name in ["a", "b"] {
            fs::write(directory.path().join(format!("{name}.yaml")), document(name, "one")).unwrap();
        }
        let mut scanner = Scanner::new(LoadOptions::directory(directory.path()));
        let before = scanner.scan(|_| ()).clone();
        assert!(Arc::ptr_eq(&before.catalog, &scanner.scan(|_| ()).catalog));
        let path = directory.path().join("a.yaml");
        fs::write(&path, document("a", "two")).unwrap();
        let after = scanner.refresh(&path).unwrap().clone();
        assert_eq!(after.catalog.get("a").unwrap().document().title, "two");
        assert!(Arc::ptr_eq(before.catalog.get("b").unwrap(), after.catalog.get("b").unwrap()));
        assert_eq!(before.catalog.get("a").unwrap().document().title, "one", "a snapshot is unmoved");
        assert!(Arc::ptr_eq(&after.catalog, &scanner.scan(|_| ()).catalog), "the scan confirms it");
    }

    #[test]
    fn a_refresh_leaves_to_the_scan_what_concerns_others() {
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("a.yaml"), document("a", "one")).unwrap();
        fs::write(path("b.yaml"), document("b", "one")).unwrap();
        let mut scanner = Scanner::new(LoadOptions::directory(directory.path()));
        scanner.scan(|_| ());
        let mut check = |file: &str, text: &str, taken: bool| {
            fs::write(path(file), text).unwrap();
            assert_eq!(scanner.refresh(&path(file)).is_some(), taken, "{file}: {text}");
        };
        check("a.yaml", &document("a", "two"), true);
        check("a.yaml", &document("renamed", "two"), false);
        check("b.yaml", &document("a", "taken"), false);
        check("b.yaml", "name: [", false);
        check("new.yaml", &document("new", "one"), true);
        check("other.yaml", &document("new", "again"), false);
    }

    #[test]
    fn a_directory_of_the_search_path_may_come_later() {
        let directory = TempDir::new().unwrap();
        let (etc, share) = (directory.path().join("etc/tools"), directory.path().join("share"));
        fs::create_dir(directory.path().join("etc")).unwrap();
        fs::create_dir(&share).unwrap();
        fs::write(share.join("a.yaml"), document("a", "share")).unwrap();
        let roots = vec![etc.clone(), share];
        let options = LoadOptions { roots, is_search_path: true, ..LoadOptions::directory("") };
        let mut scanner = Scanner::new(options);
        assert_eq!(codes(scanner.scan(|_| ())), []);
        assert!(!scanner.is_blind() && scanner.directories.contains_key(etc.parent().unwrap()));
        fs::create_dir(&etc).unwrap();
        fs::write(etc.join("a.yaml"), document("a", "etc")).unwrap();
        assert_eq!(scanner.scan(|_| ()).catalog.get("a").unwrap().document().title, "etc");
        fs::remove_dir_all(&etc).unwrap();
        let loaded = scanner.scan(|_| ()).clone();
        assert!(
            codes(&loaded).contains(&("unreadable", 0)),
            "what was there and is gone is said: {:?}",
            codes(&loaded)
        );
    }

    #[test]
    fn links_are_followed_last_and_what_a_limit_cuts_off_stays() {
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("tools/good")).unwrap();
        fs::create_dir_all(path("tools/linked")).unwrap();
        fs::write(path("tools/good/a.yaml"), document("a", "t")).unwrap();
        let mut scanner = Scanner::new(LoadOptions::directory(path("tools")));
        assert_eq!(codes(scanner.scan(|_| ())), []);
        for number in 0..10_050 {
            fs::create_dir_all(path("large").join(format!("{:03}/{number:05}", number / 100))).unwrap();
        }
        std::os::unix::fs::symlink(path("large"), path("tools/a-link")).unwrap();
        let loaded = scanner.scan(|_| ()).clone();
        assert!(codes(&loaded).iter().all(|(code, _)| *code == "too-many-directories"), "{:?}", codes(&loaded));
        assert!(loaded.catalog.get("a").is_some() && loaded.stale.is_empty());
        let fresh = load(LoadOptions::directory(path("tools")));
        assert!(fresh.catalog.get("a").is_some(), "a link takes no place from what is really there");
        // A directory that is really there, and large, cuts off what comes after it.
        fs::remove_file(path("tools/a-link")).unwrap();
        fs::rename(path("large"), path("tools/a-large")).unwrap();
        let loaded = scanner.scan(|_| ()).clone();
        assert!(loaded.catalog.get("a").is_some() && *loaded.stale == ["a".into()]);
        assert!(codes(&loaded).contains(&("beyond-limit", 0)) && !scanner.is_blind());
    }

    #[test]
    fn a_linked_file_is_not_shown_and_faults_are_few() {
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("tools")).unwrap();
        fs::write(path("key"), "hunter2: swordfish\n").unwrap();
        std::os::unix::fs::symlink(path("key"), path("tools/a.yaml")).unwrap();
        fs::write(path("tools/b.yaml"), "password: swordfish-9\n").unwrap();
        let many: String = (0..200).map(|number| format!("unknown_{number}: 1\n")).collect();
        fs::write(path("tools/c.yaml"), format!("name: c\n{many}")).unwrap();
        let loaded = load(LoadOptions::directory(path("tools")));
        let of = |name: &str| loaded.diagnostics.iter().filter(|fault| fault.file.ends_with(name)).collect::<Vec<_>>();
        let linked = format!("{:?}", of("a.yaml"));
        assert!(of("a.yaml").len() == 1 && !linked.contains("hunter2") && !linked.contains("swordfish"), "{linked}");
        let masked = format!("{:?}", of("b.yaml"));
        assert!(masked.contains("password") && !masked.contains("swordfish"), "{masked}");
        assert_eq!(of("c.yaml").len(), MAX_FAULTS + 1);
    }

    #[test]
    fn a_relation_is_found_at_its_line() {
        let directory = TempDir::new().unwrap();
        let text = format!(
            "{}complements:\n  - scenario: s\n    tool: gone\n  - {{tool: faulty, scenario: s}}\n",
            document("a", "t")
        );
        fs::write(directory.path().join("a.yaml"), text).unwrap();
        fs::write(directory.path().join("faulty.yaml"), "name: faulty\n").unwrap();
        let loaded = load(LoadOptions::directory(directory.path()));
        assert_eq!(codes(&loaded)[0], ("dangling-relation", 10));
        assert!(codes(&loaded)[1..].iter().all(|(code, _)| *code == "missing-key"), "{:?}", codes(&loaded));
    }
}
