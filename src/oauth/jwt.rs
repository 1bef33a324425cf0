//! Signed tokens (RFC 7515, RFC 7519) and the keys that they are checked with (RFC 7517).
//!
//! A key serves one algorithm, which its own kind says; that a token names another, or `none`, or one with a shared
//! secret, makes it no token of that key. Nothing of a token is believed before its signature was checked.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Longest token, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// Keys of one issuer; what is beyond is left out.
const MAX_KEYS: usize = 64;

/// How tokens may be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

/// The keys of an issuer.
#[derive(Debug, Default)]
pub struct KeySet(Vec<PublicKey>);

/// Not a set of keys.
#[derive(Debug, thiserror::Error)]
pub enum KeySetError {
    /// Not even its form.
    #[error("it is no set of keys: {0}")]
    Malformed(#[from] serde_json::Error),
    /// None of them is for signatures that are known here.
    #[error("it has no key for RS256, ES256 or EdDSA")]
    Empty,
}

/// Why a token is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JwtFault {
    /// Not of the form of a signed token.
    #[error("it is no signed token")]
    Malformed,
    /// Another algorithm than those that are taken.
    #[error("it is not signed by RS256, ES256 or EdDSA")]
    Algorithm,
    /// A token for something else than access.
    #[error("it is a token of another kind, by its `typ`")]
    Kind,
    /// No key of that name, or for that algorithm.
    #[error("its key is none of the issuer's")]
    UnknownKey,
    /// Another key signed it, or it was changed.
    #[error("its signature is wrong")]
    Signature,
}

#[derive(Debug)]
struct PublicKey {
    id: Option<String>,
    algorithm: Algorithm,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// As ring takes it.
    Point(Vec<u8>),
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Head {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

impl KeySet {
    /// Reads a set of keys. Those that are for something else, or of another kind, are left out.
    pub fn read(document: &[u8]) -> Result<Self, KeySetError> {
        let read: Jwks = serde_json::from_slice(document)?;
        let keys: Vec<PublicKey> = read.keys.iter().filter_map(PublicKey::read).take(MAX_KEYS).collect();
        if keys.is_empty() { Err(KeySetError::Empty) } else { Ok(Self(keys)) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The claims of a token that one of these keys signed.
    pub fn verify(&self, token: &str) -> Result<Map<String, Value>, JwtFault> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(JwtFault::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(JwtFault::Malformed)?;
        let (head, claims) = signed.split_once('.').ok_or(JwtFault::Malformed)?;
        let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtFault::Malformed);
        let head: Head = serde_json::from_slice(&decode(head)?).map_err(|_| JwtFault::Malformed)?;
        let algorithm = head.algorithm()?;
        let signature = decode(signature)?;
        let named = |key: &&PublicKey| head.kid.is_none() || key.id == head.kid;
        let mut fitting = self.0.iter().filter(named).filter(|key| key.algorithm == algorithm).peekable();
        if fitting.peek().is_none() {
            return Err(JwtFault::UnknownKey);
        }
        if !fitting.any(|key| key.verifies(signed.as_bytes(), &signature)) {
            return Err(JwtFault::Signature);
        }
        serde_json::from_slice(&decode(claims)?).map_err(|_| JwtFault::Malformed)
    }
}

impl Head {
    fn algorithm(&self) -> Result<Algorithm, JwtFault> {
        // Extensions that must be understood, and are not.
        if self.crit.is_some() {
            return Err(JwtFault::Malformed);
        }
        let kind = self.typ.as_deref().map(|kind| kind.trim_start_matches("application/").to_ascii_lowercase());
        if !kind.is_none_or(|kind| kind == "jwt" || kind == "at+jwt") {
            return Err(JwtFault::Kind);
        }
        match self.alg.as_str() {
            "RS256" => Ok(Algorithm::Rs256),
            "ES256" => Ok(Algorithm::Es256),
            "EdDSA" | "Ed25519" => Ok(Algorithm::EdDsa),
            _ => Err(JwtFault::Algorithm),
        }
    }
}

impl PublicKey {
    fn read(key: &Value) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        let bytes = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(text(name)?.trim_end_matches('=')).ok();
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let (algorithm, material) = match (text("kty")?, text("crv")) {
            ("RSA", _) => (Algorithm::Rs256, Material::Rsa { modulus: bytes("n")?, exponent: bytes("e")? }),
            ("EC", Some("P-256")) => {
                let point = [vec![4], bytes("x")?, bytes("y")?].concat();
                (Algorithm::Es256, Material::Point(point))
            }
            ("OKP", Some("Ed25519")) => (Algorithm::EdDsa, Material::Point(bytes("x")?)),
            _ => return None,
        };
        let is_other = text("alg").is_some_and(|named| {
            Head { alg: named.to_owned(), kid: None, typ: None, crit: None }.algorithm() != Ok(algorithm)
        });
        (!is_other).then(|| Self { id: text("kid").map(str::to_owned), algorithm, material })
    }

    fn verifies(&self, content: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.material, self.algorithm) {
            (Material::Rsa { modulus, exponent }, _) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, content, signature)
            }
            (Material::Point(point), Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, point).verify(content, signature)
            }
            (Material::Point(point), _) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(content, signature)
            }
        };
        verified.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// RFC 8037, appendix A: a key, and a token that it signed.
    const KEY: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const SIGNED: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
        hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn keys(kid: &str) -> KeySet {
        let key = json!({"kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": kid});
        KeySet::read(json!({"keys": [{"kty": "oct", "k": "AAAA"}, key]}).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn the_example_of_the_standard_is_verified() {
        // What it signs is no set of claims, which is looked at last.
        assert_eq!(keys("a").verify(SIGNED), Err(JwtFault::Malformed));
        let changed = SIGNED.replace("RXhh", "RXhi");
        assert_eq!(keys("a").verify(&changed), Err(JwtFault::Signature));
    }

    #[test]
    fn heads_that_are_not_meant_are_refused() {
        let check = |head: Value, fault: JwtFault| {
            let token = format!("{}.e30.{}", BASE64_URL_SAFE_NO_PAD.encode(head.to_string()), "AA");
            assert_eq!(keys("a").verify(&token), Err(fault), "{head}");
        };
        for algorithm in ["none", "None", "HS256", "HS512", "PS256", "RS1", ""] {
            check(json!({"alg": algorithm}), JwtFault::Algorithm);
        }
        check(json!({"alg": "EdDSA"}), JwtFault::Signature);
        check(json!({"alg": "EdDSA", "kid": "b"}), JwtFault::UnknownKey);
        check(json!({"alg": "RS256", "kid": "a"}), JwtFault::UnknownKey);
        check(json!({"alg": "EdDSA", "crit": ["b64"], "b64": false}), JwtFault::Malformed);
        check(json!({"alg": "EdDSA", "typ": "logout+jwt"}), JwtFault::Kind);
        check(json!({"alg": "EdDSA", "typ": "at+JWT"}), JwtFault::Signature);
        check(json!({"kid": "a"}), JwtFault::Malformed);
        for token in ["", ".", "..", "a.b", "a.b.c", "e30.e30.e30.e30"] {
            assert_eq!(keys("a").verify(token), Err(JwtFault::Malformed), "{token}");
        }
    }

    #[test]
    fn keys_for_something_else_are_left_out() {
        let check = |more: Value, expected: bool| {
            let mut key = json!({"kty": "OKP", "crv": "Ed25519", "x": KEY});
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let read = KeySet::read(json!({"keys": [key]}).to_string().as_bytes());
            assert_eq!(read.is_ok(), expected, "{more}");
        };
        check(json!({}), true);
        check(json!({"use": "sig", "alg": "EdDSA"}), true);
        check(json!({"use": "enc"}), false);
        check(json!({"alg": "HS256"}), false);
        check(json!({"crv": "X25519"}), false);
        check(json!({"x": "!"}), false);
        assert!(KeySet::read(b"[]").is_err() && KeySet::read(b"{\"keys\": []}").is_err());
    }

    #[test]
    fn any_text_is_refused_without_a_panic() {
        proptest::proptest!(|(token in "[A-Za-z0-9_.=-]{0,120}")| {
            proptest::prop_assert!(keys("a").verify(&token).is_err());
        });
    }
}
