//! Memories with their histories and links, in the order in which each tenant's were added.

use super::{MoveBackError, PATIENCE};
use crate::store::memories::Imported;
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::memories::page_of;
use crate::store::postgres::moving::Progress;
use crate::store::postgres::session::DatabaseSession;
use crate::store::sqlite::source::ToldKey;
use crate::store::sqlite::target::{SqliteTarget, TargetError};

/// Memories that are written at once.
const PAGE: i64 = 500;

/// Where the reading stands.
struct Pages<'s> {
    session: &'s DatabaseSession,
    tenants: Vec<String>,
    /// Of the last tenant's memories.
    after: i64,
}

impl Pages<'_> {
    async fn next(&mut self) -> Result<Option<(String, Vec<Imported>)>, DatabaseFault> {
        while let Some(tenant) = self.tenants.last() {
            let page = page_of(self.session, tenant, self.after, PAGE).await?;
            if let Some((last, _)) = page.last() {
                self.after = *last;
                return Ok(Some((tenant.clone(), page.into_iter().map(|(_, memory)| memory).collect())));
            }
            self.tenants.pop();
            self.after = 0;
        }
        Ok(None)
    }
}

pub(super) async fn copy(
    session: &DatabaseSession,
    target: SqliteTarget,
    progress: &mut Progress<'_>,
) -> Result<SqliteTarget, MoveBackError> {
    let told = "SELECT tenant, key, digest, id, (extract(epoch FROM told_at) * 1000)::int8 FROM almanac.memory_keys";
    let keys = session.query_within(told, &[], PATIENCE).await?;
    let keys = keys.iter().map(|row| ToldKey {
        tenant: row.get(0),
        key: row.get(1),
        digest: row.get(2),
        id: row.get(3),
        at_ms: row.get(4),
    });
    let keys: Vec<ToldKey> = keys.collect();
    let tenants = session.query("SELECT tenant FROM almanac.memory_tenants ORDER BY tenant DESC", &[]).await?;
    let tenants = tenants.iter().map(|row| row.get(0)).collect();
    let mut pages = Pages { session, tenants, after: 0 };
    let mut fault = None;
    let next = async || match pages.next().await {
        Ok(page) => {
            progress.add(page.as_ref().map_or(0, |(_, memories)| memories.len()));
            Ok(page)
        }
        Err(error) => {
            let said = error.to_string();
            fault = Some(error);
            Err(TargetError::Schema(said))
        }
    };
    let written = target.memories(next, &keys).await;
    match fault {
        Some(fault) => Err(fault.into()),
        None => Ok(written?),
    }
}
