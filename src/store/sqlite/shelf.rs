//! The vectors of a tenant's memories in memory, for exact scans: 150 bytes a memory, a million in some ten milliseconds.
//!
//! A shelf is filled when its tenant first asks, and brought up to date by each reader from the rows that were written since,
//! which their rising stamps tell. Nobody who writes touches it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rusqlite::{Connection, params};

use crate::text::embedding::Quantized;

/// Vectors of all shelves together; beyond, the shelf that was asked longest ago goes. About 600 MB.
const MAX_VECTORS: usize = 4_000_000;

/// One memory's place on a shelf.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) seq: i64,
    pub(super) kind: u8,
    pub(super) deleted: bool,
    pub(super) vector: Quantized,
}

/// The vectors of one tenant, by row.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    slots: Vec<Slot>,
    /// The latest write that is on it.
    stamp: i64,
    /// How often the tenant's memories had been purged.
    purges: i64,
}

impl Shelf {
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn of(&self, seq: i64) -> Option<&Slot> {
        self.slots.binary_search_by_key(&seq, |slot| slot.seq).ok().map(|index| &self.slots[index])
    }

    fn put(&mut self, slot: Slot) {
        match self.slots.last() {
            Some(last) if last.seq >= slot.seq => match self.slots.binary_search_by_key(&slot.seq, |slot| slot.seq) {
                Ok(index) => self.slots[index] = slot,
                Err(index) => self.slots.insert(index, slot),
            },
            _ => self.slots.push(slot),
        }
    }
}

/// The shelves of all tenants.
#[derive(Debug, Default)]
pub(super) struct Shelves(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_tenant: HashMap<i64, (Arc<RwLock<Shelf>>, u64, usize)>,
    asked: u64,
}

impl Shelves {
    /// Asks the tenant's shelf, as it is in the state of the database that `connection` reads, or newer.
    pub(super) fn with<T>(
        &self,
        connection: &Connection,
        tenant: i64,
        ask: impl FnOnce(&Shelf) -> T,
    ) -> rusqlite::Result<T> {
        let shelf = self.shelf(tenant);
        let (purges, stamp): (i64, i64) = connection
            .prepare_cached(
                "SELECT purges, coalesce((SELECT max(stamp) FROM memory_vectors), 0) FROM memory_tenants WHERE number = ?1",
            )?
            .query_row([tenant], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let current = shelf.read().unwrap_or_else(PoisonError::into_inner);
        if current.purges == purges && current.stamp >= stamp {
            return Ok(ask(&current));
        }
        drop(current);
        {
            let mut behind = shelf.write().unwrap_or_else(PoisonError::into_inner);
            if behind.purges < purges {
                *behind = Shelf { purges, ..Shelf::default() };
            }
            catch_up(connection, tenant, stamp, &mut behind)?;
            self.measure(tenant, behind.slots.len());
        }
        Ok(ask(&shelf.read().unwrap_or_else(PoisonError::into_inner)))
    }

    fn shelf(&self, tenant: i64) -> Arc<RwLock<Shelf>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.asked += 1;
        let asked = kept.asked;
        let (shelf, last, _) = kept.by_tenant.entry(tenant).or_default();
        *last = asked;
        Arc::clone(shelf)
    }

    /// Takes note of a shelf's size, and gives up others if there is too much.
    fn measure(&self, tenant: i64, size: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, known)) = kept.by_tenant.get_mut(&tenant) {
            *known = size;
        }
        while kept.by_tenant.values().map(|(_, _, size)| size).sum::<usize>() > MAX_VECTORS {
            let others = kept.by_tenant.iter().filter(|(other, _)| **other != tenant);
            let Some(oldest) = others.min_by_key(|(_, (_, asked, _))| *asked).map(|(other, _)| *other) else { break };
            kept.by_tenant.remove(&oldest);
        }
    }
}

/// Reads what was written since.
fn catch_up(connection: &Connection, tenant: i64, stamp: i64, shelf: &mut Shelf) -> rusqlite::Result<()> {
    if shelf.stamp >= stamp {
        return Ok(());
    }
    // A new shelf is read in the order of the rows, which is that of the shelf.
    let (of, order) =
        if shelf.slots.is_empty() { ("NOT INDEXED", "seq") } else { ("INDEXED BY memory_vectors_by_stamp", "stamp") };
    let mut select = connection.prepare_cached(&format!(
        "SELECT seq, kind, deleted, vector FROM memory_vectors {of} WHERE stamp > ?1 AND tenant = ?2 ORDER BY {order}"
    ))?;
    let mut rows = select.query(params![shelf.stamp, tenant])?;
    while let Some(row) = rows.next()? {
        let vector = Quantized::from_bytes(row.get_ref(3)?.as_blob()?);
        let Some(vector) = vector else { continue };
        shelf.put(Slot { seq: row.get(0)?, kind: row.get(1)?, deleted: row.get(2)?, vector });
    }
    shelf.stamp = stamp;
    Ok(())
}
