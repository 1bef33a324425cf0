//! Does a URI come of a template? As far as one must know to find the server that reads it, which looks closer.

/// Bytes of a template times those of a URI, as long as comparing them takes at most; a pair beyond fits nothing.
const MOST_WORK: usize = 1 << 24;

/// Fits the URI to a template of RFC 6570? What stands between the expressions must be there in its order, and each
/// expression stands for something; without an operator for nothing with a `/`.
pub(super) fn fits(template: &str, uri: &str) -> bool {
    if template.len().saturating_mul(uri.len()) > MOST_WORK {
        return false;
    }
    // Where in the URI the template so far may end, in order: trying one after the other could take for ever.
    let (mut ends, mut template) = (vec![0], template);
    loop {
        let Some((literal, rest)) = template.split_once('{') else {
            return ends.iter().any(|&end| &uri[end..] == template);
        };
        let behind = |end: usize| uri[end..].starts_with(literal).then_some(end + literal.len());
        ends = ends.into_iter().filter_map(behind).collect();
        if ends.is_empty() {
            return false;
        }
        let Some((text, rest)) = rest.split_once('}') else { return false };
        let expression = Expression::of(text);
        if rest.starts_with('{') {
            // Two expressions in a row: where one ends nobody can say.
            return ends.iter().any(|&end| expression.may_be_empty || end < uri.len());
        }
        ends = expression.ends(&ends, uri);
        template = rest;
    }
}

/// What an expression may stand for.
#[derive(Clone, Copy)]
struct Expression {
    may_be_empty: bool,
    /// Also for what has a `/`.
    may_have_more: bool,
}

impl Expression {
    fn of(text: &str) -> Self {
        let may_be_empty = text.starts_with(['?', '&', '#', '/', ';', '.']);
        Self { may_be_empty, may_have_more: may_be_empty || text.starts_with('+') || text.ends_with('*') }
    }

    /// Where it may end that begins at one of these places, which are in order.
    fn ends(self, begins: &[usize], uri: &str) -> Vec<usize> {
        let Some(&first) = begins.first() else { return Vec::new() };
        let (mut ends, mut is_within, mut begins) = (Vec::new(), false, begins.iter().peekable());
        let places = uri[first..].char_indices().map(|(at, character)| (first + at, character == '/'));
        let places = places.chain([(uri.len(), false)]);
        for (at, is_slash) in places {
            let begins_here = begins.next_if(|&&begin| begin == at).is_some();
            if is_within || begins_here && self.may_be_empty {
                ends.push(at);
            }
            is_within = (is_within || begins_here) && (self.may_have_more || !is_slash);
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_uri_fits_what_it_was_made_of() {
        let check =
            |template: &str, uri: &str, expected: bool| assert_eq!(fits(template, uri), expected, "{template} {uri}");
        check("test://a", "test://a", true);
        check("test://a", "test://ab", false);
        check("test://{x}", "test://a", true);
        check("test://{x}", "test://", false);
        check("test://{x}", "test://a/b", false);
        check("file:///{+path}", "file:///a/b", true);
        check("t://{id}/data", "t://7/data", true);
        check("t://{id}/data", "t:///data", false);
        check("t://{id}/data", "t://7/8/data", false);
        check("t://{id}/data", "t://7/data/", false);
        check("t://{a}-{b}", "t://x-y-z", true);
        check("t://s{?q,r}", "t://s", true);
        check("t://s{?q}", "t://s?q=1", true);
        check("t://{broken", "t://x", false);
        check("t:{+a}//{b}", "t:///b", true);
        check("t:{a}{b}", "t:x", true);
        check("t:{a}{b}", "t:", false);
        check(&"x{a}".repeat(100_000), "y", false);
        check("t:{+a}", &format!("t:{}", "a".repeat(100_000)), true);
        check("t:{+a}", &format!("t:{}", "a".repeat(MOST_WORK)), false);
        check(&"{x}a".repeat(40), &format!("{}b", "a".repeat(400)), false);
    }

    /// Literals, each with an expression behind it and what the expression is to stand for.
    fn parts() -> impl Strategy<Value = Vec<(String, &'static str, String)>> {
        let part = prop_oneof![
            ("[ab/]{1,2}", Just("{x}"), "[abc]{1,3}"),
            ("[ab/]{1,2}", Just("{+x}"), "[abc/]{1,3}"),
            ("[ab/]{1,2}", Just("{/x}"), "[abc/]{0,3}"),
        ];
        prop::collection::vec(part, 0..4)
    }

    fn template(parts: &[(String, &str, String)]) -> String {
        parts.iter().map(|(literal, expression, _)| format!("{literal}{expression}")).collect()
    }

    /// Tries each length of each value.
    fn can_be_filled(parts: &[(String, &str, String)], uri: &str) -> bool {
        let Some(((literal, expression, _), rest)) = parts.split_first() else { return uri.is_empty() };
        let Some(behind) = uri.strip_prefix(literal.as_str()) else { return false };
        let least = usize::from(*expression != "{/x}");
        (least..=behind.len())
            .take_while(|&end| *expression != "{x}" || !behind[..end].contains('/'))
            .any(|end| can_be_filled(rest, &behind[end..]))
    }

    proptest! {
        #[test]
        fn a_template_that_is_filled_fits(parts in parts()) {
            let uri: String = parts.iter().map(|(literal, _, value)| format!("{literal}{value}")).collect();
            prop_assert!(fits(&template(&parts), &uri), "{} {}", template(&parts), uri);
        }

        #[test]
        fn some_values_are_between_what_must_be_there(
            parts in parts(),
            behind in prop::collection::vec("[ab/]{0,6}", 10),
        ) {
            let begin = parts.first().map(|(literal, ..)| literal.as_str()).unwrap_or_default();
            for uri in behind.into_iter().map(|behind| format!("{begin}{behind}")) {
                let expected = can_be_filled(&parts, &uri);
                prop_assert_eq!(fits(&template(&parts), &uri), expected, "{} {}", template(&parts), uri);
            }
        }

        #[test]
        fn an_expression_without_an_end_fits_nothing(parts in parts(), uri in "[ab/]{0,8}") {
            let broken = template(&parts) + "a{b";
            prop_assert!(!fits(&broken, &uri));
        }

        #[test]
        fn filled_templates_fit(one in "[a-z]{1,9}", other in "[a-z0-9]{1,9}") {
            prop_assert!(fits("x://{one}/of/{other}", &format!("x://{one}/of/{other}")), "{one} {other}");
        }
    }
}
