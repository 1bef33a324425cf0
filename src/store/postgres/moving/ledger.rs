//! What was copied, and as of which state of its origin.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;

use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::group::Incarnation;
use crate::store::postgres::session::DatabaseSession;

/// What is written down; records are known by their numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Memory,
    Session,
    Choice,
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Session => "session",
            Self::Choice => "choice",
        }
    }

    /// Of what was copied, the rows that are still there.
    fn still_there(self) -> &'static str {
        match self {
            Self::Memory => "SELECT 1 FROM almanac.memories AS t WHERE t.tenant = m.tenant AND t.id = m.id",
            Self::Session => "SELECT 1 FROM almanac.turns AS t WHERE t.tenant = m.tenant AND t.session = m.id",
            Self::Choice => {
                "SELECT 1 FROM almanac.choices AS t
                 WHERE t.tenant = m.tenant AND t.writer = m.origin AND t.at_us = m.id::int8"
            }
        }
    }
}

/// Rows by their ids, each with a text that differs when the row does.
pub(super) type States = Vec<(String, String)>;

/// What is to be done for what was copied to be what there is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) new: States,
    pub(super) changed: States,
    /// With the state that was copied.
    pub(super) gone: States,
}

impl Difference {
    pub(super) fn of(here: States, mut copied: BTreeMap<String, String>) -> Self {
        let mut difference = Self::default();
        for (id, state) in here {
            match copied.remove(&id) {
                None => difference.new.push((id, state)),
                Some(before) if before != state => difference.changed.push((id, state)),
                Some(_) => {}
            }
        }
        difference.gone.extend(copied);
        difference
    }

    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.changed.is_empty() && self.gone.is_empty()
    }
}

/// What was copied of one origin.
pub(super) struct Ledger<'s> {
    pub(super) session: &'s DatabaseSession,
    pub(super) origin: Incarnation,
}

impl<'s> Ledger<'s> {
    pub(super) fn new(session: &'s DatabaseSession, origin: Incarnation) -> Self {
        Self { session, origin }
    }

    /// Was the origin itself copied from here?
    pub(super) async fn is_copied_back(&self) -> Result<bool, DatabaseFault> {
        let query = "SELECT 1 FROM almanac.moved WHERE tenant = '' AND origin = $1 AND what = 'back'";
        Ok(!self.session.query(query, &[(&self.origin.bytes(), Type::BYTEA)]).await?.is_empty())
    }

    /// Tenants that something was copied of.
    pub(super) async fn tenants(&self, what: What) -> Result<Vec<String>, DatabaseFault> {
        let (origin, what) = (self.origin.bytes(), what.as_str());
        let query = "SELECT DISTINCT tenant FROM almanac.moved WHERE origin = $1 AND what = $2";
        let rows = self.session.query(query, &[(&origin, Type::BYTEA), (&what, Type::TEXT)]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// What was copied of a tenant behind an id, up to another if there is one.
    pub(super) async fn copied(
        &self,
        tenant: &str,
        what: What,
        after: &str,
        until: Option<&str>,
    ) -> Result<BTreeMap<String, String>, DatabaseFault> {
        let (origin, what) = (self.origin.bytes(), what.as_str());
        let query = "SELECT id, state FROM almanac.moved
            WHERE tenant = $1 AND origin = $2 AND what = $3 AND id > $4 AND ($5 IS NULL OR id <= $5)";
        let values = [
            (&tenant as _, Type::TEXT),
            (&origin as _, Type::BYTEA),
            (&what as _, Type::TEXT),
            (&after as _, Type::TEXT),
            (&until as _, Type::TEXT),
        ];
        let rows = self.session.query(query, &values).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Writes down what was copied, in the transaction that does so.
    pub(super) async fn put<'r>(
        &self,
        tenant: &str,
        what: What,
        rows: impl IntoIterator<Item = &'r (String, String)>,
    ) -> Result<(), DatabaseFault> {
        let (origin, what) = (self.origin.bytes(), what.as_str());
        let (ids, states): (Vec<&str>, Vec<&str>) =
            rows.into_iter().map(|(id, state)| (id.as_str(), state.as_str())).unzip();
        let put = "INSERT INTO almanac.moved (tenant, origin, what, id, state)
            SELECT $1, $2, $3, id, state FROM unnest($4::text[], $5::text[]) AS copied (id, state)
            ON CONFLICT (tenant, origin, what, id) DO UPDATE SET state = excluded.state";
        let values = [
            (&tenant as _, Type::TEXT),
            (&origin as _, Type::BYTEA),
            (&what as _, Type::TEXT),
            (&ids as _, Type::TEXT_ARRAY),
            (&states as _, Type::TEXT_ARRAY),
        ];
        self.session.query(put, &values).await.map(drop)
    }

    /// Forgets what is gone at its origin.
    pub(super) async fn forget(&self, tenant: &str, what: What, gone: &States) -> Result<(), DatabaseFault> {
        let (origin, what) = (self.origin.bytes(), what.as_str());
        let ids: Vec<&str> = gone.iter().map(|(id, _)| id.as_str()).collect();
        let remove =
            "DELETE FROM almanac.moved WHERE tenant = $1 AND origin = $2 AND what = $3 AND id = ANY($4::text[])";
        let values = [
            (&tenant as _, Type::TEXT),
            (&origin as _, Type::BYTEA),
            (&what as _, Type::TEXT),
            (&ids as _, Type::TEXT_ARRAY),
        ];
        self.session.query(remove, &values).await.map(drop)
    }

    /// How many were copied, of all tenants, and how many of them are still there.
    pub(super) async fn count(&self, what: What) -> Result<(u64, u64), DatabaseFault> {
        let query = format!(
            "SELECT count(*), count(*) FILTER (WHERE EXISTS ({})) FROM almanac.moved AS m
             WHERE m.origin = $1 AND m.what = $2",
            what.still_there()
        );
        let (origin, what) = (self.origin.bytes(), what.as_str());
        let row = self.session.query_one(&query, &[(&origin, Type::BYTEA), (&what, Type::TEXT)]).await?;
        Ok((row.get::<_, i64>(0).cast_unsigned(), row.get::<_, i64>(1).cast_unsigned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_changed_and_gone_is_told_apart() {
        let states = |text: &str| -> States {
            text.split_whitespace().map(|row| (row[..1].to_owned(), row[1..].to_owned())).collect()
        };
        let check = |here: &str, copied: &str, new: &str, changed: &str, gone: &str| {
            let expected = Difference { new: states(new), changed: states(changed), gone: states(gone) };
            let found = Difference::of(states(here), states(copied).into_iter().collect());
            assert_eq!(found, expected, "{here} | {copied}");
            assert_eq!(found.is_empty(), [new, changed, gone].iter().all(|text| text.is_empty()));
        };
        check("", "", "", "", "");
        check("a1 b1", "", "a1 b1", "", "");
        check("a1 b2", "a1 b1 c1", "", "b2", "c1");
        check("a1", "a1", "", "", "");
        check("", "a1 b1", "", "", "a1 b1");
    }
}
