//! Why a line or an event of a stream is refused.

/// The messages about lines of the data stream are those of that protocol's own client.
#[derive(Debug, thiserror::Error)]
pub(super) enum PartError {
    #[error("Failed to parse stream string. No separator found.")]
    NoSeparator,
    #[error("Failed to parse stream string. Invalid code {0}.")]
    UnknownCode(String),
    #[error("\"{part}\" parts expect {expected}.")]
    Unexpected { part: &'static str, expected: &'static str },
    #[error("invalid JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("unknown field \"{0}\"; those of an event are data, event, id and retry")]
    UnknownField(String),
    #[error("a chunk is an object with a string \"type\"")]
    NoType,
    #[error("unknown type of chunk \"{0}\"")]
    UnknownChunk(String),
    #[error("\"{chunk}\" chunks need a string \"{key}\"")]
    NoString { chunk: String, key: String },
}
