//! Records stored as one group: one statement, one transaction, one round trip, and once however often it is sent.
//!
//! A writer gives its records numbers that rise, and sends its groups one after the other. Each moves the writer's row
//! to its last number, and takes of the group only what is beyond the number that stood there. So a try whose answer
//! was lost may be repeated by any connection: it waits for the row until the first try has ended, and finds what that
//! one did. It writes the row all the same, so that a standby which has this commit has that of the first, too.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::session::{DatabaseSession, StatementValue};
use crate::store::told_keys::ToldKeys;
use crate::timing::Execution;

/// Who writes: 128 random bits, new with each start of a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incarnation([u8; 16]);

impl Incarnation {
    /// A new one.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// One that was made elsewhere.
    pub(super) fn of(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As it stands in the names of files.
    pub(super) fn to_hex(self) -> String {
        hex::encode(self.0)
    }

    pub(super) fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }
}

/// A record with its number.
pub type Numbered = (i64, Execution);

/// Values of the statement that takes no keys.
const WITHOUT_KEYS: usize = 15;

/// What both statements begin with. The level of commits is that which an acknowledgement promises, whatever the
/// server's default is.
macro_rules! moving {
    ($rest:literal) => {
        concat!(
            "WITH durable AS MATERIALIZED (
    SELECT set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) AS level
), moved AS (
    INSERT INTO almanac.writers AS writer (incarnation, through, before)
    SELECT $1, $2, 0 FROM durable
    ON CONFLICT (incarnation) DO UPDATE SET
        before = writer.through, through = greatest(writer.through, excluded.through), moved_at = now()
    RETURNING before
)",
            $rest
        )
    };
}

/// Stores records that have no keys: most have none, and the server plans this in less time.
const COMMIT: &str = moving!(
    " INSERT INTO almanac.executions (tenant, incarnation, sequence, tool, mode, outcome, duration_ms, content_length,
    num_perspectives, num_branches, thinking_budget, context_tokens, session, at_ms)
SELECT tenant, $1, sequence, tool, mode, outcome, duration_ms, content_length, num_perspectives, num_branches,
    thinking_budget, context_tokens, session, at_ms
FROM unnest($3::int8[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int8[], $9::int8[], $10::int8[],
    $11::int8[], $12::int8[], $13::int8[], $14::text[], $15::int8[])
    AS called (sequence, tenant, tool, mode, outcome, duration_ms, content_length, num_perspectives, num_branches,
    thinking_budget, context_tokens, session, at_ms)
WHERE sequence > (SELECT before FROM moved)"
);

/// Stores records of which some have keys. Of two groups with the same keys the later waits at the first of them, since
/// they are sorted; a key that stands for another body fails the group at the column that may not be null.
const COMMIT_WITH_KEYS: &str = moving!(
    ", called AS MATERIALIZED (
    SELECT * FROM unnest($3::int8[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int8[], $9::int8[],
        $10::int8[], $11::int8[], $12::int8[], $13::int8[], $14::text[], $15::int8[], $16::text[], $17::text[])
    AS called (sequence, tenant, tool, mode, outcome, duration_ms, content_length, num_perspectives, num_branches,
        thinking_budget, context_tokens, session, at_ms, key, digest)
), keyed AS (
    INSERT INTO almanac.call_keys AS known (tenant, key, digest, incarnation, sequence)
    SELECT tenant, key, digest, $1, sequence FROM called CROSS JOIN moved WHERE key IS NOT NULL ORDER BY tenant, key
    ON CONFLICT (tenant, key) DO UPDATE SET digest = CASE
        WHEN known.digest = excluded.digest OR known.digest = '' OR excluded.digest = '' THEN known.digest END
    RETURNING tenant, key, incarnation, sequence
), stored AS (
    INSERT INTO almanac.executions (tenant, incarnation, sequence, tool, mode, outcome, duration_ms, content_length,
        num_perspectives, num_branches, thinking_budget, context_tokens, session, at_ms)
    SELECT tenant, $1, called.sequence, tool, mode, outcome, duration_ms, content_length, num_perspectives,
        num_branches, thinking_budget, context_tokens, session, at_ms
    FROM called CROSS JOIN moved LEFT JOIN keyed USING (tenant, key)
    WHERE called.sequence > moved.before
        AND (key IS NULL OR (keyed.incarnation = $1 AND keyed.sequence = called.sequence))
    ORDER BY called.sequence
)
SELECT called.sequence FROM called JOIN keyed USING (tenant, key)
WHERE keyed.incarnation <> $1 OR keyed.sequence <> called.sequence ORDER BY called.sequence"
);

/// Stores a group. Returns the numbers of those records that had been told before, under their keys, rising.
///
/// Numbers rise within the group and from group to group; the same group, or one that begins within it, may be sent
/// again.
///
/// # Errors
/// If nothing of it is stored, or if that is not known: only what [`DatabaseFault::keeps_session`] says is certain.
pub async fn commit(
    session: &DatabaseSession,
    writer: Incarnation,
    records: &[Numbered],
    patience: Duration,
) -> Result<Vec<i64>, DatabaseFault> {
    let Some((last, _)) = records.last() else { return Ok(Vec::new()) };
    let columns = Columns::of(records)?;
    let values: [StatementValue<'_>; 17] = [
        (&writer.bytes(), Type::BYTEA),
        (last, Type::INT8),
        (&columns.sequences, Type::INT8_ARRAY),
        (&columns.tenants, Type::TEXT_ARRAY),
        (&columns.tools, Type::TEXT_ARRAY),
        (&columns.modes, Type::TEXT_ARRAY),
        (&columns.outcomes, Type::TEXT_ARRAY),
        (&columns.durations, Type::INT8_ARRAY),
        (&columns.measures[0], Type::INT8_ARRAY),
        (&columns.measures[1], Type::INT8_ARRAY),
        (&columns.measures[2], Type::INT8_ARRAY),
        (&columns.measures[3], Type::INT8_ARRAY),
        (&columns.measures[4], Type::INT8_ARRAY),
        (&columns.sessions, Type::TEXT_ARRAY),
        (&columns.moments, Type::INT8_ARRAY),
        (&columns.keys, Type::TEXT_ARRAY),
        (&columns.digests, Type::TEXT_ARRAY),
    ];
    let (statement, values) = if columns.keys.iter().any(Option::is_some) {
        (COMMIT_WITH_KEYS, &values[..])
    } else {
        (COMMIT, &values[..WITHOUT_KEYS])
    };
    let rows = session.commit(statement, values, patience).await?;
    let mut told = columns.told;
    told.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
    told.sort_unstable();
    Ok(told)
}

/// The digests of what was told under keys of tenants, as far as it was.
pub(super) async fn told_under(
    session: &DatabaseSession,
    keys: &BTreeSet<(&str, &str)>,
) -> Result<ToldKeys, DatabaseFault> {
    let mut told = ToldKeys::default();
    if keys.is_empty() {
        return Ok(told);
    }
    let query = "SELECT tenant, key, digest FROM almanac.call_keys
        JOIN unnest($1::text[], $2::text[]) AS asked (tenant, key) USING (tenant, key)";
    let (tenants, names): (Vec<&str>, Vec<&str>) = keys.iter().copied().unzip();
    for row in session.query(query, &[(&tenants, Type::TEXT_ARRAY), (&names, Type::TEXT_ARRAY)]).await? {
        told.insert((row.get(0), row.get(1)), row.get(2));
    }
    Ok(told)
}

/// Forgets keys that were told more than a week ago: whoever repeats a call does so sooner.
pub(super) async fn forget_keys(session: &DatabaseSession) -> Result<(), DatabaseFault> {
    session
        .run(
            "DELETE FROM almanac.call_keys WHERE told_at < now() - interval '7 days';
             DELETE FROM almanac.memory_keys WHERE told_at < now() - interval '7 days'",
        )
        .await
}

/// A group by its columns, as the statement takes it.
#[derive(Default)]
struct Columns<'r> {
    sequences: Vec<i64>,
    tenants: Vec<&'r str>,
    tools: Vec<&'r str>,
    modes: Vec<Option<&'r str>>,
    outcomes: Vec<&'static str>,
    durations: Vec<Option<i64>>,
    measures: [Vec<Option<i64>>; 5],
    sessions: Vec<Option<&'r str>>,
    moments: Vec<i64>,
    keys: Vec<Option<&'r str>>,
    digests: Vec<Option<&'r str>>,
    /// Those that the group itself tells for the second time, which are not sent.
    told: Vec<i64>,
}

impl<'r> Columns<'r> {
    fn of(records: &'r [Numbered]) -> Result<Self, DatabaseFault> {
        let (mut columns, mut keys) = (Self::default(), HashMap::<(&str, &str), &str>::new());
        for (sequence, execution) in records {
            if let Some(key) = &execution.idempotency_key {
                let name = (execution.tenant.as_str(), key.name.as_str());
                match keys.get(&name) {
                    Some(digest) if !key.agrees(digest) => return Err(DatabaseFault::KeyReused),
                    Some(_) => {
                        columns.told.push(*sequence);
                        continue;
                    }
                    None => drop(keys.insert(name, &key.digest)),
                }
            }
            columns.push(*sequence, execution);
        }
        Ok(columns)
    }

    fn push(&mut self, sequence: i64, execution: &'r Execution) {
        let Execution { tenant, tool, mode, duration_ms, outcome, measures, session, at_ms, idempotency_key } =
            execution;
        let number = |number: Option<u64>| number.map(u64::cast_signed);
        self.sequences.push(sequence);
        self.tenants.push(tenant);
        self.tools.push(tool);
        self.modes.push(mode.as_deref());
        self.outcomes.push(outcome.as_str());
        self.durations.push(number(*duration_ms));
        let said = [
            measures.content_length,
            measures.num_perspectives,
            measures.num_branches,
            measures.thinking_budget,
            measures.context_tokens,
        ];
        for (column, measure) in self.measures.iter_mut().zip(said) {
            column.push(number(measure));
        }
        self.sessions.push(session.as_deref());
        self.moments.push(*at_ms);
        self.keys.push(idempotency_key.as_ref().map(|key| key.name.as_str()));
        self.digests.push(idempotency_key.as_ref().map(|key| key.digest.as_str()));
    }
}

#[cfg(test)]
mod tests;
