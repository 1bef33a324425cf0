//! A search as it is asked for: criteria, options, and the cursor that leads to the next page.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use time::{Date, OffsetDateTime};

use super::asked_time::{asks_for_time, time_terms};
use super::kind::Kind;
use super::named_date::NamedDates;
use super::rank::{LIKE, rank, rank_of_dates};
use super::{criteria, text};
use crate::memory::query::{Begun, Filter, Found, Place, Search, SortBy, TextQuery};
use crate::strict::{At, Fields, Node};

/// Memories on a page, if nobody says.
pub const DEFAULT_LIMIT: usize = 10;

/// Memories on the largest page.
pub const MAX_LIMIT: usize = 200;

/// Longest text that is searched for, in characters.
const MAX_QUERY: usize = 10_000;

/// A search for memories of one kind, or of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Recall {
    /// Which kind; nothing for all.
    pub kind: Option<Kind>,
    pub filter: Filter,
    /// What they are about.
    pub query: Option<String>,
    pub sort: SortBy,
    pub descending: bool,
    /// So many left out.
    pub offset: usize,
    /// At most so many, 1 to [`MAX_LIMIT`].
    pub limit: usize,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// Say what the scores are made of.
    pub explain: bool,
}

/// A cursor that does not belong to the search, or is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no cursor of this search; take `nextCursor` of its page before, and change nothing else")]
pub struct ForeignCursor;

impl Recall {
    pub fn read(kind: impl Into<Option<Kind>>, node: Node, at: &mut At) -> Option<Self> {
        let kind: Option<Kind> = kind.into();
        at.map(node, |fields| {
            let filter = fields.given_part("criteria", |node, at| criteria::read(kind, node, at));
            let filter = filter.unwrap_or_else(|| Filter { kind: kind.map(Kind::number), ..Filter::default() });
            let recall = Self::all(kind, filter);
            let options = recall.clone();
            fields.part("options", |node, at| at.map(node, |fields| options.with(fields))).unwrap_or(recall)
        })
    }

    /// Newest first, without a text.
    pub fn all(kind: impl Into<Option<Kind>>, filter: Filter) -> Self {
        Self {
            kind: kind.into(),
            filter,
            query: None,
            sort: SortBy::Created,
            descending: true,
            offset: 0,
            limit: DEFAULT_LIMIT,
            cursor: None,
            explain: false,
        }
    }

    fn with(mut self, fields: &mut Fields<'_>) -> Self {
        self.query = fields.optional("query");
        // Whoever has lost a text on the way must not be answered with everything.
        if self.query.as_ref().is_some_and(|query| query.trim().is_empty()) {
            fields.bad_value("query", "is empty; leave it out to get the newest");
        }
        // Bytes first: counting the characters of a hostile text is work.
        if self.query.as_ref().is_some_and(|query| query.len() > MAX_QUERY && query.chars().count() > MAX_QUERY) {
            fields.bad_value("query", format!("a query has at most {MAX_QUERY} characters"));
            self.query = None;
        }
        fields.set("limit", &mut self.limit);
        if !(1..=MAX_LIMIT).contains(&self.limit) {
            fields.bad_value("limit", format!("must be 1 to {MAX_LIMIT}"));
        }
        fields.set("offset", &mut self.offset);
        if self.offset > MAX_OFFSET {
            fields.bad_value("offset", format!("at most {MAX_OFFSET}; a cursor leads further"));
        }
        self.read_order(fields);
        fields.set("includeDeleted", &mut self.filter.include_deleted);
        fields.set("explain", &mut self.explain);
        self.cursor = fields.optional("cursor");
        if self.cursor.is_some() && self.offset > 0 {
            fields.bad_value("offset", "either an offset or a cursor");
        }
        self
    }

    fn read_order(&mut self, fields: &mut Fields<'_>) {
        if self.query.is_some() {
            (self.sort, self.descending) = (SortBy::Score, true);
        }
        if let Some(text) = fields.optional::<String>("sortBy") {
            match criteria::sort_by(self.kind, &text) {
                Ok(SortBy::Score) if self.query.is_none() => {
                    fields.bad_value("sortBy", "without a `query` there is no score to sort by");
                }
                Ok(sort) => (self.descending, self.sort) = (sort == SortBy::Score, sort),
                Err(violation) => fields.bad_value("sortBy", violation.to_string()),
            }
        }
        match fields.optional::<String>("sortDirection").as_deref() {
            None => {}
            Some("asc") => self.descending = false,
            Some("desc") => self.descending = true,
            Some(_) => fields.bad_value("sortDirection", "must be asc or desc"),
        }
    }

    /// The search as the store takes it. Nothing if the text has nothing to search by: then nothing matches.
    pub fn search(&self, tenant: &str) -> Result<Option<Search>, ForeignCursor> {
        let cursor = self.cursor.as_deref().map(|cursor| self.read_cursor(tenant, cursor)).transpose()?;
        let (total, day) = cursor.as_ref().map_or((None, None), |(_, total, day)| (*total, *day));
        let (begun, place) = cursor.map(|(cursor, ..)| (cursor.begun, cursor.place)).unzip();
        let text = match &self.query {
            None => None,
            Some(query) => {
                let (terms, vector) = text::query(query);
                if terms.is_empty() {
                    return Ok(None);
                }
                let dates = NamedDates::of(query, &terms, day.unwrap_or_else(today));
                let time_terms = asks_for_time(query).then(time_terms);
                let forms = text::forms_of(&terms);
                let rank = if dates.is_all { rank_of_dates } else { rank };
                Some(TextQuery { dates, terms, forms, vector, like: LIKE, time_terms, rank })
            }
        };
        Ok(Some(Search {
            filter: self.filter.clone(),
            text,
            sort: self.sort.clone(),
            descending: self.descending,
            begun,
            place,
            total,
            offset: self.offset,
            // One more than is shown tells that there is a next page.
            limit: self.limit + 1,
        }))
    }

    /// What makes two searches pages of one.
    fn digest(&self, tenant: &str) -> [u8; 8] {
        let Self { kind, filter, query, sort, descending, .. } = self;
        let said = format!("{tenant:?} {kind:?} {filter:?} {query:?} {sort:?} {descending}");
        *Sha256::digest(said).first_chunk().expect("a digest has 32 bytes")
    }

    /// The cursor to the page after the hit of that number.
    pub fn cursor_after(&self, tenant: &str, found: &Found, hit: usize) -> Option<String> {
        let last = found.hits.get(hit)?;
        let place = match found.places.get(hit) {
            Some(Place::Ranked { shown, last, .. }) => {
                Place::Ranked { rows: found.ranked.clone(), shown: *shown, last: *last }
            }
            _ => Place::After(last.value.clone(), last.memory.id.clone()),
        };
        let cursor = Cursor { digest: self.digest(tenant), begun: found.begun, place };
        let day = self.asked_on(tenant).to_julian_day();
        Some(hex::encode(postcard::to_stdvec(&(cursor, found.total, day)).ok()?))
    }

    /// The day in UTC on which its first page was asked for: "yesterday" is the same on all pages.
    fn asked_on(&self, tenant: &str) -> Date {
        let cursor = self.cursor.as_deref().and_then(|cursor| self.read_cursor(tenant, cursor).ok());
        cursor.and_then(|(.., day)| day).unwrap_or_else(today)
    }

    /// A cursor, how many there are on all pages, and the day of the first: those of earlier versions say less.
    fn read_cursor(&self, tenant: &str, cursor: &str) -> Result<(Cursor, Option<u64>, Option<Date>), ForeignCursor> {
        let bytes = hex::decode(cursor).map_err(|_| ForeignCursor)?;
        let (cursor, rest): (Cursor, _) = postcard::take_from_bytes(&bytes).map_err(|_| ForeignCursor)?;
        let (total, rest) = postcard::take_from_bytes(rest).map_or((None, rest), |(total, rest)| (Some(total), rest));
        let day = postcard::from_bytes(rest).ok().and_then(|day| Date::from_julian_day(day).ok());
        if cursor.digest == self.digest(tenant) { Ok((cursor, total, day)) } else { Err(ForeignCursor) }
    }
}

fn today() -> Date {
    OffsetDateTime::now_utc().date()
}

/// Where the next page begins, and of which search it is.
#[derive(Debug, Serialize, Deserialize)]
struct Cursor {
    digest: [u8; 8],
    begun: Begun,
    place: Place,
}

/// Largest offset; whoever looks further down follows the cursor.
pub const MAX_OFFSET: usize = 10_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::query::{Hit, ScoreSignals, SortValue};
    use crate::strict::{Limits, decode::decode_with, read};

    fn parse(text: &str) -> Result<Recall, Vec<String>> {
        let node = read::json(text.as_bytes(), &Limits::of_bytes(100_000)).unwrap();
        decode_with(node, |node, at| Recall::read(Kind::Message, node, at)).map_err(|faults| {
            faults.iter().map(|fault| format!("{} {}", fault.pointer(), fault.code.as_str())).collect()
        })
    }

    #[test]
    fn an_id_and_its_text_ask_the_same() {
        let object = parse(r#"{"criteria":{"userId":{"namespace":"user","type":"user","id":"a:b"}}}"#).unwrap();
        let text = parse(r#"{"criteria":{"userId":"user:user:a%3Ab"}}"#).unwrap();
        assert_eq!(object, text);
        let path = parse(r#"{"criteria":{"metadata.userId":"user:user:a%3Ab"}}"#).unwrap();
        assert_eq!(path, text, "a field of the kind is one, however it is spelt");
        let thread = |key: &str| parse(&format!(r#"{{"criteria":{{"{key}":"t"}}}}"#)).unwrap();
        assert_eq!(thread("metadata.threadId"), thread("thread.id"));
        let sorted = parse(r#"{"options":{"sortBy":"metadata.userId"}}"#).unwrap();
        assert!(matches!(sorted.sort, SortBy::Id(_)));
        assert_eq!(text.filter.user.as_deref(), Some("user:user:a%3Ab"));
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let recall = parse("{}").unwrap();
        assert_eq!((recall.limit, recall.offset, &recall.sort, recall.descending), (10, 0, &SortBy::Created, true));
        let ranked = parse(r#"{"options":{"query":"x"}}"#).unwrap();
        assert_eq!((&ranked.sort, ranked.descending), (&SortBy::Score, true));
        let named = parse(r#"{"options":{"query":"x","sortBy":"score"}}"#).unwrap();
        assert_eq!(named, ranked);
        let turned = parse(r#"{"options":{"query":"x","sortBy":"score","sortDirection":"asc"}}"#).unwrap();
        assert!(!turned.descending);
        let forms = parse(r#"{"options":{"query":"What did Anna buy?"}}"#).unwrap().search("t").unwrap().unwrap().text;
        assert_eq!(forms.map(|text| text.forms), Some(vec![(1, "bought")]));
        let nothing = parse(r#"{"options":{"query":"*** ()"}}"#).unwrap();
        assert!(nothing.search("t").unwrap().is_none(), "there is nothing to search by");
        let sorted = parse(r#"{"options":{"sortBy":"thread.position"}}"#).unwrap();
        assert!(!sorted.descending && matches!(sorted.sort, SortBy::Field(_)));
        assert_eq!(parse(r#"{"options":{"query":null}}"#).unwrap(), recall, "null is none");
        assert!(matches!(parse(r#"{"options":{"sortBy":"x"}}"#).unwrap().sort, SortBy::Field(_)));
        assert!(matches!(parse(r#"{"options":{"sortBy":"agentId"}}"#).unwrap().sort, SortBy::Id(_)));
    }

    #[test]
    fn a_day_alone_ranks_what_is_of_it_first() {
        let is_day_first = |query: &str| {
            let recall = Recall { query: Some(query.to_owned()), ..parse("{}").unwrap() };
            let text = recall.search("t").unwrap().unwrap().text.unwrap();
            let said = ScoreSignals { lexical: 60.0, ..ScoreSignals::default() };
            let of_day = ScoreSignals { is_of_date: true, ..ScoreSignals::default() };
            // The one that stands out has a multiple of what the many deviate by.
            let scores = (text.rank)(&[[said, of_day].as_slice(), &[ScoreSignals::default(); 50]].concat());
            scores[1] > scores[0]
        };
        assert!(is_day_first("what happened yesterday?"));
        assert!(!is_day_first("what did Anna say about the flood of 8 May 2025 and the insurance?"));
    }

    #[test]
    fn every_fault_has_its_place() {
        let check = |text: &str, faults: &[&str]| assert_eq!(parse(text).unwrap_err(), faults, "{text}");
        check(
            r#"{"criteria":{"role":"robot","userId":"x","agntId":"a:b:c","foo":1},"options":{"limit":0,"sort":1}}"#,
            &[
                "/criteria/role bad-value",
                "/criteria/userId bad-value",
                "/criteria/foo unknown-key",
                "/criteria/agntId unknown-key",
                "/options/limit bad-value",
                "/options/sort unknown-key",
            ],
        );
        check(r#"{"options":{"query":""}}"#, &["/options/query bad-value"]);
        check(r#"{"options":{"query":" \n"}}"#, &["/options/query bad-value"]);
        check(r#"{"options":{"limit":201}}"#, &["/options/limit bad-value"]);
        check(r#"{"options":{"limit":1.5}}"#, &["/options/limit wrong-type"]);
        check(r#"{"options":{"offset":-1}}"#, &["/options/offset wrong-type"]);
        check(r#"{"options":{"sortBy":"score"}}"#, &["/options/sortBy bad-value"]);
        check(r#"{"options":{"sortBy":"thread.positon"}}"#, &["/options/sortBy bad-value"]);
        check(r#"{"options":{"sortBy":"a' OR 1=1"}}"#, &["/options/sortBy bad-value"]);
        check(r#"{"options":{"sortDirection":"up"}}"#, &["/options/sortDirection bad-value"]);
        check(
            r#"{"criteria":{"metadata.userId":"a:b:c","userId":"a:b:d"}}"#,
            &["/criteria/metadata.userId repeated-key"],
        );
        check(r#"{"criteria":{"metadata.a b":1}}"#, &["/criteria/metadata.a b bad-value"]);
        check(r#"{"criteria":{"metadata.a":[1]}}"#, &["/criteria/metadata.a bad-value"]);
        check(
            r#"{"criteria":{"from":"yesterday","minImportance":2}}"#,
            &["/criteria/minImportance bad-value", "/criteria/from bad-value"],
        );
        check(r#"{"options":{"offset":10000001}}"#, &["/options/offset bad-value"]);
        check(r#"{"options":{"offset":1,"cursor":"00"}}"#, &["/options/offset bad-value"]);
        let (longest, longer) = ("ü".repeat(MAX_QUERY), "ü".repeat(MAX_QUERY + 1));
        check(&format!(r#"{{"options":{{"query":"{longer}"}}}}"#), &["/options/query bad-value"]);
        assert!(parse(&format!(r#"{{"options":{{"query":"{longest}","offset":10000000}}}}"#)).is_ok());
        check(r#"{"criteria":null}"#, &["/criteria bad-value"]);
        check(r#"{"criteria":7,"query":"x"}"#, &["/criteria wrong-type", "/query unknown-key"]);
    }

    #[test]
    fn a_cursor_is_of_its_search_and_tenant() {
        let recall = parse(r#"{"criteria":{"role":"user"}}"#).unwrap();
        let other = parse(r#"{"criteria":{"role":"tool"}}"#).unwrap();
        let hit = Hit {
            memory: crate::memory::stored::StoredMemory {
                id: "i".into(),
                kind: 1,
                content: String::new(),
                metadata: "{}".into(),
                version: 1,
                created_us: 0,
                updated_us: 0,
                deleted: false,
            },
            value: SortValue::Real(0.1 + 0.2),
            score: None,
        };
        let begun = Begun { through: 7, stamp: 9 };
        let found = Found { hits: vec![hit], total: 40, begun, ..Found::default() };
        let cursor = recall.cursor_after("t", &found, 0).unwrap();
        let with = |recall: &Recall, cursor: &str| Recall { cursor: Some(cursor.to_owned()), ..recall.clone() };
        let search = with(&recall, &cursor).search("t").unwrap().unwrap();
        assert_eq!(search.place, Some(Place::After(SortValue::Real(0.1 + 0.2), "i".to_owned())));
        assert_eq!((search.begun, search.total), (Some(found.begun), Some(40)));
        let (_, total, day) = recall.read_cursor("t", &cursor).unwrap();
        assert_eq!((total, day.is_some()), (Some(40), true));
        let told = |cursor: &str| recall.read_cursor("t", cursor).map(|(_, total, day)| (total, day)).unwrap();
        let place = cursor.rfind("28").unwrap();
        assert_eq!(told(&cursor[..place + 2]), (Some(40), None), "of a version that did not say the day");
        assert_eq!(told(&cursor[..place]), (None, None), "of one that did not say how many there are");
        let other_day = postcard::to_stdvec(&Date::MIN.to_julian_day()).unwrap();
        let asked = with(&recall, &format!("{}{}", &cursor[..place + 2], hex::encode(other_day)));
        assert_eq!(asked.asked_on("t"), Date::MIN, "the next page is asked for on another day");
        let next = asked.cursor_after("t", &found, 0).unwrap();
        assert_eq!(with(&recall, &next).asked_on("t"), Date::MIN);
        assert_eq!(with(&other, &cursor).search("t").unwrap_err(), ForeignCursor);
        assert_eq!(with(&recall, &cursor).search("u").unwrap_err(), ForeignCursor);
        for other in [
            Recall { descending: false, ..recall.clone() },
            Recall { sort: SortBy::Updated, ..recall.clone() },
            Recall { query: Some("x".into()), ..recall.clone() },
            Recall { kind: Some(Kind::Task), ..recall.clone() },
        ] {
            assert_eq!(with(&other, &cursor).search("t").unwrap_err(), ForeignCursor);
        }
        let further = Recall { limit: 3, explain: true, ..with(&recall, &cursor) };
        assert!(further.search("t").is_ok(), "another size of the page is the same search");
        for bad in ["", "zz", "7b7d", "é", "5b"] {
            assert_eq!(with(&recall, bad).search("t").unwrap_err(), ForeignCursor, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_query_is_made_of_harmless_terms(query in "\\PC{0,60}|[\"*():^{}+-]{0,20}|NEAR\\(a b\\)|a\" OR \"b") {
            for term in text::query(&query).0 {
                let is_sign = |character: char| character.is_ascii() && !character.is_alphanumeric();
                prop_assert!(!term.contains(is_sign) && !term.contains(char::is_whitespace), "{term:?}");
            }
        }
    }
}
