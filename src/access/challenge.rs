//! What `WWW-Authenticate` tells who is refused: why (RFC 6750, section 3) and, with an issuer, which of its scopes
//! would do and where clients find out about it (RFC 9728, section 5.1).

use super::{Issuer, Scope, TokenKeeper};

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is no token.
    NoToken,
    /// The token is none that is let in.
    WrongToken,
    /// The token does not allow this.
    TooLittle(Scope),
}

impl TokenKeeper {
    /// The value of `WWW-Authenticate` for a request that is refused.
    pub fn challenge(&self, refused: Refused) -> String {
        challenge(self.issuer().as_deref(), refused)
    }
}

fn challenge(issuer: Option<&Issuer>, refused: Refused) -> String {
    let mut said: Vec<(&str, String)> = Vec::new();
    match refused {
        Refused::NoToken => {}
        Refused::WrongToken => said.extend(issuer.map(|_| ("error", "invalid_token".to_owned()))),
        Refused::TooLittle(scope) => {
            said.push(("error", "insufficient_scope".to_owned()));
            // By the name under which a client can ask for it.
            let named = issuer.map_or_else(|| Some(scope.to_string()), |issuer| issuer.scope_for(scope));
            said.extend(named.map(|name| ("scope", name)));
        }
    }
    said.extend(issuer.and_then(Issuer::resource_metadata).map(|place| ("resource_metadata", place)));
    let said: Vec<String> = said.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    format!("Bearer {}", said.join(", ")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::access::IssuerSettings;

    const PLACE: &str = r#"resource_metadata="https://a.example/.well-known/oauth-protected-resource/mcp""#;

    fn issuer(scopes: &[(&str, &[Scope])]) -> Issuer {
        let scopes: BTreeMap<String, Vec<Scope>> =
            scopes.iter().map(|(name, allowed)| ((*name).to_owned(), allowed.to_vec())).collect();
        let settings = IssuerSettings {
            issuer: Some("https://as.example".to_owned()),
            audience: Some("https://a.example/mcp".to_owned()),
            scopes,
            ..IssuerSettings::default()
        };
        Issuer::new(&settings, Duration::ZERO).unwrap()
    }

    #[test]
    fn a_challenge_says_why_what_would_do_and_where() {
        let check = |issuer: Option<&Issuer>, refused: Refused, expected: &str| {
            assert_eq!(challenge(issuer, refused), expected.replace("PLACE", PLACE), "{refused:?}");
        };
        let insufficient = r#"Bearer error="insufficient_scope""#;
        check(None, Refused::NoToken, "Bearer");
        check(None, Refused::WrongToken, "Bearer");
        check(None, Refused::TooLittle(Scope::Call), &format!(r#"{insufficient}, scope="call""#));
        let plain = issuer(&[]);
        let plain = Some(&plain);
        check(plain, Refused::NoToken, "Bearer PLACE");
        check(plain, Refused::WrongToken, r#"Bearer error="invalid_token", PLACE"#);
        check(plain, Refused::TooLittle(Scope::Call), &format!(r#"{insufficient}, scope="call", PLACE"#));
        // None of the issuer's allows it.
        check(plain, Refused::TooLittle(Scope::Admin), &format!("{insufficient}, PLACE"));
    }

    #[test]
    fn scopes_are_named_as_the_issuer_does_and_the_least_that_does() {
        let mapped = issuer(&[
            ("all", &[Scope::Admin]),
            ("most", &[Scope::Read, Scope::Record, Scope::Call]),
            ("tools:use", &[Scope::Read, Scope::Call]),
            ("tools:view", &[Scope::Read, Scope::Record]),
        ]);
        let check = |scope: Scope, expected: &str| {
            let said = challenge(Some(&mapped), Refused::TooLittle(scope));
            assert!(said.contains(&format!(r#", scope="{expected}", "#)), "{scope:?}: {said}");
        };
        check(Scope::Call, "tools:use");
        check(Scope::Read, "tools:use");
        check(Scope::Record, "tools:view");
        check(Scope::Memory, "all");
        check(Scope::Admin, "all");
    }
}
