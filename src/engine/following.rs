//! What other daemons wrote, folded into what is known here: the same as a start would read back, a little at a time.

use super::Engine;
use crate::store::StoreError;

impl Engine {
    /// Folds what other daemons wrote since this was called before. Is there more of it? Called by one thread, once the
    /// history is known.
    ///
    /// # Errors
    /// If the store cannot be read; what was to be folded is folded the next time.
    pub fn follow(&self) -> Result<bool, StoreError> {
        let followed = self.store.follow()?;
        let is_partial = followed.is_partial;
        let generation = self.current.load();
        self.learner.follow(&followed, generation.catalog());
        self.qualifier.follow(followed);
        Ok(is_partial)
    }
}
