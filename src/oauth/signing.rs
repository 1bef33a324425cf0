//! Signs what a client says of itself (RFC 7523) with a private key of one of the usual kinds.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

/// A private key that signs.
pub enum SigningKey {
    Es256(EcdsaKeyPair),
    Rs256(RsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

/// A key that signs nothing. What is wrong is not quoted: it is a secret.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// No key.
    #[error("the private key is not in PEM as `BEGIN PRIVATE KEY` (PKCS#8)")]
    NoPem,
    /// A key of an unknown kind.
    #[error("the private key is none of P-256 (ES256), RSA of 2048 bits or more (RS256) and Ed25519 (EdDSA)")]
    Kind,
    /// The system has no randomness, or the key does not fit itself.
    #[error("the private key cannot sign")]
    Unsigned,
}

impl SigningKey {
    /// Reads a key in PEM, PKCS#8; its kind is found.
    pub fn read(pem: &str) -> Result<Self, SigningError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| SigningError::NoPem)?;
        let der = der.secret_pkcs8_der();
        let random = SystemRandom::new();
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random) {
            return Ok(Self::Es256(key));
        }
        if let Ok(key) = RsaKeyPair::from_pkcs8(der) {
            return Ok(Self::Rs256(key));
        }
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(Self::EdDsa).map_err(|_| SigningError::Kind)
    }

    /// The name of the algorithm in a token's head (RFC 7518, RFC 8037).
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::Rs256(_) => "RS256",
            Self::EdDsa(_) => "EdDSA",
        }
    }

    /// The claims as a signed token.
    pub fn sign(&self, claims: &Value) -> Result<String, SigningError> {
        self.sign_as(claims, None)
    }

    /// The same, with the key's name in the token's head.
    pub fn sign_as(&self, claims: &Value, kid: Option<&str>) -> Result<String, SigningError> {
        let mut head = json!({"alg": self.algorithm(), "typ": "JWT"});
        if let Some(kid) = kid {
            head["kid"] = kid.into();
        }
        let head = head.to_string();
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let signed = format!("{}.{}", encode(head.as_bytes()), encode(claims.to_string().as_bytes()));
        let signature = self.signature(signed.as_bytes()).map_err(|_| SigningError::Unsigned)?;
        Ok(format!("{signed}.{}", encode(&signature)))
    }

    fn signature(&self, content: &[u8]) -> Result<Vec<u8>, ring::error::Unspecified> {
        let random = SystemRandom::new();
        match self {
            Self::Es256(key) => Ok(key.sign(&random, content)?.as_ref().to_vec()),
            Self::EdDsa(key) => Ok(key.sign(content).as_ref().to_vec()),
            Self::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, content, &mut signature)?;
                Ok(signature)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, KeyPair as _, UnparsedPublicKey};

    use super::*;

    #[test]
    fn what_is_signed_is_verified_by_the_public_key() {
        for (kind, name) in [(&rcgen::PKCS_ECDSA_P256_SHA256, "ES256"), (&rcgen::PKCS_ED25519, "EdDSA")] {
            let pem = rcgen::KeyPair::generate_for(kind).unwrap().serialize_pem();
            let key = SigningKey::read(&pem).unwrap();
            assert_eq!(key.algorithm(), name);
            let token = key.sign(&json!({"iss": "me"})).unwrap();
            let (content, signature) = token.rsplit_once('.').unwrap();
            let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
            let verified = match &key {
                SigningKey::Es256(key) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref())
                    .verify(content.as_bytes(), &signature),
                SigningKey::EdDsa(key) => {
                    UnparsedPublicKey::new(&ED25519, key.public_key().as_ref()).verify(content.as_bytes(), &signature)
                }
                SigningKey::Rs256(_) => panic!("no such key was made"),
            };
            assert!(verified.is_ok(), "{name}");
        }
    }

    #[test]
    fn what_is_no_key_is_not_quoted() {
        for text in ["s3cret", "-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----\n"] {
            let said = SigningKey::read(text).err().unwrap().to_string();
            assert!(said.starts_with("the private key is") && !said.contains("s3cret"), "{said}");
        }
    }
}
