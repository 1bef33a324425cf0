//! Regular expressions of schemas: what readers take, in the words of JSON Schema. Lengths are bounded beside.

/// Control characters, as a part of a class.
macro_rules! control {
    () => {
        r"\u0000-\u001f\u007f-\u009f"
    };
}

/// Characters that nothing has that is shown in a line, as a part of a class.
pub const CONTROL: &str = control!();

/// A tool's name.
pub const NAME: &str = concat!("^[^/", control!(), "]+$");

/// A label; an empty one counts as absent.
pub const LABEL: &str = concat!("^[^", control!(), "]*$");

/// A label that is a mode.
pub const MODE: &str = concat!("^[^#", control!(), "]*$");

/// A part of an id, and a name of something that is referred to.
pub const PART: &str = concat!("^[^", control!(), "]+$");

/// An id as text: three parts, in which `:` and `%` are escaped, and perhaps a version.
pub const ID: &str =
    concat!("^(([^:%", control!(), "]|%3A|%25)+:){2}([^:%", control!(), r"]|%3A|%25)+(:[1-9][0-9]{0,18})?$");
