//! Regular expressions of the schemas: what the readers of requests take, in the words of JSON Schema.

/// A tool's name. Its length is bounded beside.
pub(crate) const NAME: &str = r"^[^/\u0000-\u001f\u007f-\u009f]+$";

/// A label that can be shown in a line; an empty one counts as absent.
pub(crate) const LABEL: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// A label that is a mode.
pub(crate) const MODE: &str = r"^[^#\u0000-\u001f\u007f-\u009f]*$";
