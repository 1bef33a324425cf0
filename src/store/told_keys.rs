//! Idempotency keys: a call that is told again under its key is the same call, and one of another body is refused.

use std::collections::HashMap;

use super::StoreError;
use crate::timing::Execution;

/// What was told under the keys of tenants: by tenant and name, the digest.
#[derive(Debug, Default)]
pub(super) struct ToldKeys(HashMap<(String, String), String>);

impl ToldKeys {
    pub(super) fn insert(&mut self, name: (String, String), digest: String) {
        self.0.insert(name, digest);
    }

    pub(super) fn get(&self, name: &(String, String)) -> Option<&String> {
        self.0.get(name)
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Which of a batch's records were told before, as `earlier` has it, or else the database? Their keys are in these
    /// from then on, unless the batch is refused.
    pub(super) fn sort_out<E>(
        &mut self,
        earlier: &Self,
        batch: &[Execution],
        mut look_up: impl FnMut(&(String, String)) -> Result<Option<String>, E>,
    ) -> Result<Result<Vec<bool>, StoreError>, E> {
        let mut of_batch = Self::default();
        let mut told = Vec::with_capacity(batch.len());
        for execution in batch {
            let Some(key) = &execution.idempotency_key else {
                told.push(false);
                continue;
            };
            let name = (execution.tenant.clone(), key.name.clone());
            let recent = [&of_batch, &*self, earlier].into_iter().find_map(|keys| keys.get(&name));
            let known = match recent {
                Some(digest) => Some(digest.clone()),
                None => look_up(&name)?,
            };
            told.push(known.is_some());
            match known {
                Some(digest) if !key.agrees(&digest) => return Ok(Err(StoreError::KeyReused(key.shown().to_owned()))),
                Some(_) => {}
                None => of_batch.insert(name, key.digest.clone()),
            }
        }
        self.extend(of_batch);
        Ok(Ok(told))
    }
}
