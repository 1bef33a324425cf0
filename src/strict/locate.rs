//! The line and column of a fault: walks the YAML text again, along the fault's path, and stops there on purpose,
//! because the deserializer knows its position only when it fails.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Segment;

/// 1-based line and column of the value at `path` in `text`, or of its key.
pub fn locate(text: &str, path: &[Segment], on_key: bool) -> Option<(usize, usize)> {
    let step = Step { path, on_key };
    let error = step.deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
    error.location().map(|at| (at.line(), at.column()))
}

#[derive(Clone, Copy)]
struct Step<'p> {
    path: &'p [Segment],
    on_key: bool,
}

impl Step<'_> {
    fn stop<E: de::Error>() -> E {
        E::custom("here")
    }

    fn stop_if_arrived<T, E: de::Error>(self, value: T) -> Result<T, E> {
        if self.path.is_empty() { Err(Self::stop()) } else { Ok(value) }
    }
}

impl<'de> DeserializeSeed<'de> for Step<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.stop_if_arrived(())
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        self.stop_if_arrived(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.stop_if_arrived(())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.stop_if_arrived(())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.stop_if_arrived(())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.stop_if_arrived(())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.stop_if_arrived(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Some((Segment::Index(wanted), rest)) = self.path.split_first() else { return Err(Self::stop()) };
        for _ in 0..*wanted {
            access.next_element::<IgnoredAny>()?;
        }
        access.next_element_seed(Step { path: rest, ..self })?;
        Err(Self::stop())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Some((Segment::Key(wanted), rest)) = self.path.split_first() else { return Err(Self::stop()) };
        let key = Key { wanted, stop: self.on_key && rest.is_empty() };
        while let Some(found) = access.next_key_seed(key)? {
            if found {
                return access.next_value_seed(Step { path: rest, ..self });
            }
            access.next_value::<IgnoredAny>()?;
        }
        Err(Self::stop())
    }
}

#[derive(Clone, Copy)]
struct Key<'p> {
    wanted: &'p str,
    stop: bool,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<bool, E> {
        let found = key == self.wanted;
        if found && self.stop { Err(E::custom("here")) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, path: &[Segment], on_key: bool, expected: (usize, usize)) {
        assert_eq!(locate(text, path, on_key), Some(expected), "locating {path:?} in {text:?}");
    }

    #[test]
    fn finds_keys_and_values() {
        let key = |key: &str| Segment::Key(key.to_owned());
        let text = "name: x\nuse_cases:\n  - title: a\n    when: b\n  - title: [c]\nlast: &a {z: 1}\nalias: *a\n";
        check(text, &[key("name")], true, (1, 1));
        check(text, &[key("name")], false, (1, 7));
        check(text, &[key("use_cases"), Segment::Index(0), key("when")], true, (4, 5));
        check(text, &[key("use_cases"), Segment::Index(1)], false, (5, 5));
        check(text, &[key("use_cases"), Segment::Index(1), key("title"), Segment::Index(0)], false, (5, 13));
        check(text, &[], false, (1, 1));
        check(text, &[key("last"), key("z")], true, (6, 11));
        check(text, &[key("alias"), key("z")], true, (6, 11));
    }
}
