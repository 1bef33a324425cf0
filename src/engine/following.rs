//! What other daemons wrote, folded into what is known here: the same as a start would read back, a little at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Engine;
use crate::blocking;
use crate::store::memories::Forgotten;
use crate::store::{ForgottenTexts, StoreError};

impl Engine {
    /// Folds what other daemons wrote since this was called before. Is there more of it? Called by one task, once the
    /// history is known.
    ///
    /// # Errors
    /// If the store cannot be read; what was to be folded is folded the next time.
    pub async fn follow(self: &Arc<Self>) -> Result<bool, StoreError> {
        let engine = Arc::clone(self);
        // Without a thread it is done the next time.
        let Ok(folded) = blocking::run(move || engine.fold_followed()).await else { return Ok(false) };
        let (gone, is_partial) = folded?;
        for (tenant, texts) in gone {
            let forgotten = Arc::new(Forgotten { texts: Arc::new(texts), ..Forgotten::default() });
            self.qualifier.forget_purged(&tenant, &forgotten).await;
        }
        self.store.has_forgotten();
        Ok(is_partial)
    }

    /// Waits for a purge here: until it is followed, the store takes no note of what it removed, whoever notes it.
    pub async fn purged(&self) {
        self.purged.notified().await;
    }

    /// All of it but what tenants' memories said that went.
    fn fold_followed(&self) -> Result<(BTreeMap<String, ForgottenTexts>, bool), StoreError> {
        // Who purges here waits for what is heard meanwhile.
        let _asking = self.qualifier.enter();
        let followed = self.store.follow()?;
        let is_partial = followed.is_partial;
        let generation = self.current.load();
        if followed.is_relearning {
            self.learner.await_history();
        }
        if self.learner.relearn(&followed, generation.catalog()) {
            self.store.has_relearnt();
        } else {
            self.learner.follow(&followed, generation.catalog());
        }
        Ok((self.qualifier.follow(followed), is_partial))
    }
}
