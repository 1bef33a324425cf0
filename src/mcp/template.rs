//! Does a URI come of a template? As far as one must know to find the server that reads it, which looks closer.

/// Fits the URI to a template of RFC 6570? What stands between the expressions must be there in its order, and each
/// expression stands for something; without an operator for nothing with a `/`.
pub(super) fn fits(template: &str, uri: &str) -> bool {
    let Some((literal, rest)) = template.split_once('{') else { return template == uri };
    let Some(value) = uri.strip_prefix(literal) else { return false };
    let Some((expression, rest)) = rest.split_once('}') else { return false };
    let may_be_empty = expression.starts_with(['?', '&', '#', '/', ';', '.']);
    let may_have_more = may_be_empty || expression.starts_with('+') || expression.ends_with('*');
    let most = if may_have_more { value.len() } else { value.find('/').unwrap_or(value.len()) };
    let next = rest.split('{').next().unwrap_or_default();
    if rest.is_empty() {
        return most == value.len() && (may_be_empty || !value.is_empty());
    }
    if next.is_empty() {
        // Two expressions in a row: where one ends nobody can say.
        return may_be_empty || !value.is_empty();
    }
    let from = usize::from(!may_be_empty);
    value.match_indices(next).any(|(at, _)| at >= from && at <= most && fits(rest, &value[at..]))
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
    }

    proptest! {
        #[test]
        fn nothing_stops_it(template in "[a{}/+?-]{0,30}", uri in "\\PC{0,30}") {
            fits(&template, &uri);
        }

        #[test]
        fn filled_templates_fit(one in "[a-z]{1,9}", other in "[a-z0-9]{1,9}") {
            prop_assert!(fits("x://{one}/of/{other}", &format!("x://{one}/of/{other}")), "{one} {other}");
        }
    }
}
