//! Where sessions stand, their last turns, and choices with what they moved: a tenant's as a whole.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::types::Type;

use super::ledger::{Difference, Ledger, What};
use super::{MoveError, Moved, Progress};
use crate::store::notes::{ChoiceNote, KeptTurnNote, Note, TurnNote};
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::memories::{Purged, TenantWriter, tell_purge};
use crate::store::postgres::notes;
use crate::store::postgres::revision::Revision;
use crate::store::sqlite::source::{ChoiceRow, SqliteSource, TurnRow};

/// What a tenant has.
#[derive(Default)]
struct Notes {
    turns: Vec<TurnRow>,
    choices: Vec<ChoiceRow>,
}

pub(super) async fn copy(
    source: &SqliteSource,
    ledger: &Ledger<'_>,
    progress: &mut Progress<'_>,
    moved: &mut Moved,
) -> Result<(), MoveError> {
    let mut tenants: BTreeMap<String, Notes> = BTreeMap::new();
    for what in [What::Session, What::Choice] {
        tenants.extend(ledger.tenants(what).await?.into_iter().map(|tenant| (tenant, Notes::default())));
    }
    // Nothing that a daemon writes has it, and no text has it there.
    let is_writable = |texts: [&str; 3]| texts.iter().all(|text| !text.contains('\0'));
    for turn in source.turns()? {
        if is_writable([&turn.tenant, &turn.session, &turn.state]) {
            tenants.entry(turn.tenant.clone()).or_default().turns.push(turn);
        } else {
            moved.refused.push(format!("session {:?} of {:?}: it has the character U+0000", turn.session, turn.tenant));
        }
    }
    for choice in source.choices()? {
        if is_writable([&choice.tenant, &choice.tool, ""]) {
            tenants.entry(choice.tenant.clone()).or_default().choices.push(choice);
        } else {
            moved.refused.push(format!("choice of {:?}: it has the character U+0000", choice.tool));
        }
    }
    for (tenant, notes) in &tenants {
        copy_tenant(ledger, tenant, notes, moved).await?;
        progress.add(notes.turns.len() + notes.choices.len());
    }
    Ok(())
}

async fn copy_tenant(ledger: &Ledger<'_>, tenant: &str, notes: &Notes, moved: &mut Moved) -> Result<(), MoveError> {
    let here = notes.turns.iter().map(|turn| (turn.session.clone(), turn.at_us.to_string())).collect();
    let turns = Difference::of(here, ledger.copied(tenant, What::Session, "", None).await?);
    let here = notes.choices.iter().map(|choice| (choice.at_us.to_string(), String::new())).collect();
    let choices = Difference::of(here, ledger.copied(tenant, What::Choice, "", None).await?);
    if turns.is_empty() && choices.is_empty() {
        return Ok(());
    }
    ledger.session.begin().await?;
    let written = write(ledger, tenant, notes, &turns, &choices).await;
    ledger.session.end(written.is_ok()).await?;
    written?;
    moved.sessions.written += (turns.new.len() + turns.changed.len()) as u64;
    moved.choices.written += choices.new.len() as u64;
    Ok(())
}

async fn write(
    ledger: &Ledger<'_>,
    tenant: &str,
    notes: &Notes,
    turns: &Difference,
    choices: &Difference,
) -> Result<(), DatabaseFault> {
    let revision = Revision::next(ledger.session, ledger.origin).await?;
    let mut writer = TenantWriter::begin(ledger.session, tenant).await?;
    remove(ledger, &mut writer, &revision, turns, choices).await?;
    let wanted: BTreeSet<&str> = turns.new.iter().chain(&turns.changed).map(|(session, _)| session.as_str()).collect();
    for turn in notes.turns.iter().filter(|turn| wanted.contains(turn.session.as_str())) {
        put_turn(ledger, &revision, turn).await?;
    }
    let wanted: BTreeSet<i64> = choices.new.iter().filter_map(|(at, _)| at.parse().ok()).collect();
    for choice in notes.choices.iter().filter(|choice| wanted.contains(&choice.at_us)) {
        let ChoiceRow { tenant, tool, message, trust, at_us, adaptation } = choice;
        let note = ChoiceNote {
            tenant: tenant.clone(),
            tool: tool.clone(),
            message: message.clone(),
            trust: *trust,
            adaptation: adaptation.clone(),
        };
        notes::write(ledger.session, &revision, &Note::Choice(note), *at_us).await?;
    }
    ledger.put(tenant, What::Session, turns.new.iter().chain(&turns.changed)).await?;
    ledger.put(tenant, What::Choice, &choices.new).await?;
    writer.end().await
}

async fn put_turn(ledger: &Ledger<'_>, revision: &Revision, turn: &TurnRow) -> Result<(), DatabaseFault> {
    let TurnRow { tenant, session, state, at_us, kept } = turn;
    let number = kept.last().map_or(0, |kept| kept.number);
    let (of, name) = (tenant.clone(), session.clone());
    let note = TurnNote { tenant: of, session: name, number, state: state.clone(), kept: None };
    notes::write(ledger.session, revision, &Note::Turn(note), *at_us).await?;
    for row in kept {
        // One of another length is nobody's.
        let Ok(digest) = row.digest.as_slice().try_into() else { continue };
        let kept = KeptTurnNote { digest, state: row.state.clone() };
        notes::keep(ledger.session, (tenant, session, row.number), &kept, row.at_us).await?;
    }
    Ok(())
}

/// Removes what is gone here, unless it is another daemon's by now, and tells the other daemons.
async fn remove(
    ledger: &Ledger<'_>,
    writer: &mut TenantWriter<'_>,
    revision: &Revision,
    turns: &Difference,
    choices: &Difference,
) -> Result<(), DatabaseFault> {
    let (session, origin) = (ledger.session, ledger.origin.bytes());
    let tenant = writer.tenant();
    let (names, moments): (Vec<&str>, Vec<i64>) =
        turns.gone.iter().filter_map(|(name, at)| Some((name.as_str(), at.parse::<i64>().ok()?))).unzip();
    let remove = "DELETE FROM almanac.turns AS t USING unnest($3::text[], $4::int8[]) AS gone (session, at_us)
        WHERE t.tenant = $1 AND t.writer = $2 AND t.session = gone.session AND t.at_us = gone.at_us
        RETURNING t.session";
    let values = [
        (&tenant as _, Type::TEXT),
        (&origin as _, Type::BYTEA),
        (&names as _, Type::TEXT_ARRAY),
        (&moments as _, Type::INT8_ARRAY),
    ];
    let rows = session.query(remove, &values).await?;
    let sessions: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let moments: Vec<i64> = choices.gone.iter().filter_map(|(at, _)| at.parse().ok()).collect();
    let remove = "DELETE FROM almanac.choices
        WHERE tenant = $1 AND writer = $2 AND at_us = ANY($3::int8[]) RETURNING 1";
    let [of_tenant, of_origin, ..] = values;
    let has_choices = !session.query(remove, &[of_tenant, of_origin, (&moments, Type::INT8_ARRAY)]).await?.is_empty();
    for (what, gone) in [(What::Session, &turns.gone), (What::Choice, &choices.gone)] {
        ledger.forget(tenant, what, gone).await?;
    }
    if has_choices {
        // What choices moved cannot be taken apart.
        let nothing = "UPDATE almanac.adaptations SET state = '' WHERE tenant = $1";
        session.query(nothing, &[(&tenant, Type::TEXT)]).await?;
    }
    if has_choices || !sessions.is_empty() {
        let stamp = writer.tick();
        tell_purge(writer, revision, stamp, &Purged { sessions, has_choices, ..Purged::default() }).await?;
    }
    Ok(())
}
