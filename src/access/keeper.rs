//! The tokens that are let in now, kept in line with their file while the daemon runs.
//!
//! A file that is empty or gone lets nobody in: whoever removes a token wants it refused. One that cannot be read, or
//! is faulty, is most likely a mistake: the last good version holds, for a time that is configured.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Grant, Issuer, JwtRefusal, Settings, Tokens};
use crate::strict::{FileStamp, LoadError};

/// Decides whose token is known.
#[derive(Debug)]
pub struct TokenKeeper {
    current: ArcSwap<Tokens>,
    /// Whose tokens are let in beside those of the file.
    issuer: ArcSwapOption<Issuer>,
    changed: watch::Sender<()>,
    /// Held while the file is read.
    followed: Mutex<Followed>,
    /// What was wrong at the last look.
    trouble: ArcSwapOption<String>,
}

#[derive(Debug, Default)]
struct Followed {
    settings: Settings,
    /// The file that the current tokens are of.
    file: Option<PathBuf>,
    seen: Option<Seen>,
    /// Was there no token at the last look? Who saves a file may empty it first.
    was_empty: bool,
    faulty: Option<Faulty>,
}

#[derive(Debug, Clone, Copy)]
struct Faulty {
    since: Instant,
    has_expired: bool,
}

/// What stands where the file should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    File(FileStamp),
    /// A directory, a pipe, a device, or what cannot be looked at.
    Other,
    Nothing,
}

/// Why a token is not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// Nobody knows it.
    #[error("this token is not known here")]
    Unknown,
    /// The issuer's keys say so, or are not there.
    #[error(transparent)]
    Jwt(#[from] JwtRefusal),
}

/// What a look at the file changed.
#[derive(Debug)]
pub struct TokensLook {
    /// The file.
    pub file: PathBuf,
    /// How many tokens are let in from now on, or what is wrong with the file.
    pub outcome: Result<usize, LoadError>,
    /// With a faulty file: do the tokens of its last good version hold still?
    pub holds: bool,
}

impl Default for TokenKeeper {
    fn default() -> Self {
        Self {
            current: ArcSwap::default(),
            issuer: ArcSwapOption::default(),
            changed: watch::Sender::new(()),
            followed: Mutex::default(),
            trouble: ArcSwapOption::default(),
        }
    }
}

impl TokenKeeper {
    /// Reads the file that the settings mean, if there is one. A faulty one is an error.
    pub fn start(settings: Settings) -> Result<Self, LoadError> {
        let file = settings.file();
        let tokens = file.as_deref().map_or_else(|| Ok(Tokens::default()), Tokens::read)?;
        let issuer = Issuer::new(&settings.issuer, settings.max_stale).map(Arc::new);
        let followed = Followed { settings, file, ..Followed::default() };
        let (current, issuer) = (ArcSwap::from_pointee(tokens), ArcSwapOption::from(issuer));
        let keeper = Self { current, issuer, followed: Mutex::new(followed), ..Self::default() };
        keeper.note_trouble(&keeper.followed.lock());
        Ok(keeper)
    }

    /// The tokens that are let in.
    pub fn load(&self) -> Guard<Arc<Tokens>> {
        self.current.load()
    }

    /// Whose tokens are let in beside those of the file, if anybody's.
    pub fn issuer(&self) -> Option<Arc<Issuer>> {
        self.issuer.load_full()
    }

    /// Is a token needed, also on loopback?
    pub fn are_required(&self) -> bool {
        self.issuer.load().is_some() || self.load().are_required()
    }

    /// Whom a token lets in: one of the file, or of the issuer.
    pub fn grant(&self, token: &str) -> Result<Grant, TokenRefusal> {
        if let Some(grant) = self.load().find(token) {
            return Ok(grant.clone());
        }
        match &*self.issuer.load() {
            Some(issuer) if token.matches('.').count() == 2 => Ok(issuer.grant(token)?),
            _ => Err(TokenRefusal::Unknown),
        }
    }

    /// Tells of each change.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The file, if there is one.
    pub fn file(&self) -> Option<PathBuf> {
        self.followed.lock().file.clone()
    }

    /// What is wrong with the tokens, for people.
    pub fn trouble(&self) -> Option<Arc<String>> {
        self.trouble.load_full()
    }

    fn note_trouble(&self, followed: &Followed) {
        self.trouble.store(self.find_trouble(followed).map(Arc::new));
    }

    fn find_trouble(&self, followed: &Followed) -> Option<String> {
        let file = followed.settings.file().or_else(|| followed.file.clone())?;
        let file = file.display();
        if let Some(faulty) = followed.faulty {
            let holds = if faulty.has_expired { "nobody is let in" } else { "those of before hold" };
            return Some(format!("{file} is faulty or cannot be read, and {holds}; `almanacd check` says more"));
        }
        let is_empty = self.load().is_empty() && self.issuer.load().is_none();
        is_empty.then(|| format!("{file} has no token, so nobody is let in"))
    }

    /// From the next look on these settings hold; of the issuer from now on.
    pub fn configure(&self, settings: Settings) {
        let is_same = match &*self.issuer.load() {
            Some(issuer) => issuer.is_of(&settings.issuer, settings.max_stale),
            None => settings.issuer.issuer.is_none(),
        };
        if !is_same {
            self.issuer.store(Issuer::new(&settings.issuer, settings.max_stale).map(Arc::new));
            self.changed.send_replace(());
        }
        let mut followed = self.followed.lock();
        followed.settings = settings;
        self.note_trouble(&followed);
    }

    /// Looks at the file, and reads it if it changed or if `is_asked`. Nothing if nothing changed.
    pub fn look(&self, now: Instant, is_asked: bool) -> Option<TokensLook> {
        let mut followed = self.followed.lock();
        let file = followed.settings.file().or_else(|| followed.file.clone())?;
        let seen = Seen::at(&file);
        let expires = followed.faulty.is_some_and(|faulty| {
            !faulty.has_expired && now.duration_since(faulty.since) >= followed.settings.max_stale
        });
        if followed.seen == Some(seen) && !is_asked && !expires {
            return None;
        }
        followed.seen = Some(seen);
        let read = match Tokens::read(&file) {
            Err(error) if error.is_not_found() => Ok(Tokens::nobody()),
            read => read,
        };
        let outcome = match read {
            Ok(tokens) if tokens.is_empty() && !is_asked && !followed.was_empty => {
                (followed.was_empty, followed.seen) = (true, None);
                return None;
            }
            Ok(tokens) => {
                followed.was_empty = tokens.is_empty();
                followed.faulty = None;
                followed.file = Some(file.clone());
                let count = tokens.len();
                self.replace(tokens);
                Ok(count)
            }
            Err(error) => {
                let faulty = followed.faulty.get_or_insert(Faulty { since: now, has_expired: false });
                if expires {
                    faulty.has_expired = true;
                    self.replace(Tokens::nobody());
                }
                Err(error)
            }
        };
        self.note_trouble(&followed);
        let holds = followed.faulty.is_some_and(|faulty| !faulty.has_expired);
        Some(TokensLook { file, outcome, holds })
    }

    fn replace(&self, tokens: Tokens) {
        if **self.current.load() != tokens {
            self.current.store(Arc::new(tokens));
            self.changed.send_replace(());
        }
    }
}

impl Seen {
    fn at(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Self::File(FileStamp::of_metadata(&metadata)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::Nothing,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::access::Scope;
    use crate::access::issue::{add_to_file, new_token};

    struct Bench {
        directory: tempfile::TempDir,
        keeper: TokenKeeper,
        token: String,
        now: Instant,
    }

    impl Bench {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let (token, entry) = new_token("t", "default", &[Scope::Read]).unwrap();
            let file = directory.path().join("tokens");
            add_to_file(&file, &entry).unwrap();
            let settings =
                Settings { tokens_file: Some(file), max_stale: Duration::from_secs(60), ..Settings::default() };
            let keeper = TokenKeeper::start(settings).unwrap();
            Self { directory, keeper, token, now: Instant::now() }
        }

        fn file(&self) -> PathBuf {
            self.directory.path().join("tokens")
        }

        /// Looks until nothing is new, and says whether the token is let in.
        fn knows(&mut self) -> bool {
            for _ in 0..3 {
                self.keeper.look(self.now, false);
            }
            self.keeper.load().find(&self.token).is_some()
        }
    }

    #[test]
    fn what_is_empty_or_gone_lets_nobody_in() {
        let check = |end: fn(&Path)| {
            let mut bench = Bench::new();
            assert!(bench.knows());
            let mut changes = bench.keeper.subscribe();
            changes.mark_unchanged();
            end(&bench.file());
            assert!(!bench.knows());
            assert!(bench.keeper.load().are_required() && changes.has_changed().unwrap());
        };
        check(|file| fs::write(file, "").unwrap());
        check(|file| fs::write(file, "# none\n").unwrap());
        check(|file| fs::write(file, "tokens: []").unwrap());
        check(|file| fs::remove_file(file).unwrap());
    }

    #[test]
    fn what_is_faulty_holds_for_a_while() {
        let check = |spoil: fn(&Path)| {
            let mut bench = Bench::new();
            assert!(bench.knows());
            let good = fs::read(bench.file()).unwrap();
            spoil(&bench.file());
            assert!(bench.knows());
            bench.now += Duration::from_secs(59);
            assert!(bench.knows());
            bench.now += Duration::from_secs(1);
            assert!(!bench.knows(), "the time is over");
            fs::remove_file(bench.file()).unwrap();
            fs::write(bench.file(), good).unwrap();
            assert!(bench.knows(), "it is mended");
        };
        check(|file| fs::write(file, "tokens: nonsense").unwrap());
        check(|file| {
            fs::remove_file(file).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, file, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        });
        check(|file| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(file, fs::Permissions::from_mode(0o602)).unwrap();
        });
    }

    #[test]
    fn a_save_that_empties_the_file_first_shuts_nobody_out() {
        let mut bench = Bench::new();
        assert!(bench.knows());
        let good = fs::read(bench.file()).unwrap();
        fs::write(bench.file(), "").unwrap();
        assert!(bench.keeper.look(bench.now, false).is_none());
        fs::write(bench.file(), good).unwrap();
        assert!(bench.knows());
    }

    #[test]
    fn a_file_without_a_token_is_trouble() {
        let mut bench = Bench::new();
        assert!(bench.knows());
        assert_eq!(bench.keeper.trouble(), None);
        fs::write(bench.file(), "").unwrap();
        assert!(!bench.knows() && bench.keeper.trouble().unwrap().contains("has no token"));
    }

    #[test]
    fn trouble_is_told_while_the_file_is_read() {
        let mut bench = Bench::new();
        fs::write(bench.file(), "tokens: nonsense").unwrap();
        assert!(bench.knows());
        let _read = bench.keeper.followed.lock();
        assert!(bench.keeper.trouble().unwrap().contains("those of before hold"));
    }

    #[test]
    fn the_first_file_is_found_without_a_restart() {
        let keeper = TokenKeeper::default();
        assert!(keeper.look(Instant::now(), true).is_none() && !keeper.load().are_required());
        let bench = Bench::new();
        keeper.configure(Settings { tokens_file: Some(bench.file()), ..Settings::default() });
        assert_eq!(keeper.look(Instant::now(), false).unwrap().outcome.unwrap(), 1);
        assert!(keeper.load().find(&bench.token).is_some());
    }
}
