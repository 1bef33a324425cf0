//! Where every field lies. The header's tests assert the same numbers in C; a number that changes breaks libraries that
//! exist.

use crate::types::{Array, Descriptor, Host, Note, Pair, Request, Sink, Snapshot, Str, Suggestion, Tool, Vtable};

macro_rules! layout {
    ($($record:ident as $c:literal: $size:literal { $($field:ident: $offset:literal),* $(,)? })*) => {
        $(const _: () = {
            assert!(size_of::<$record>() == $size);
            $(assert!(core::mem::offset_of!($record, $field) == $offset);)*
        };)*

        /// `struct size` and `struct.field offset`, spelled as the header spells them.
        #[cfg(test)]
        fn lines() -> Vec<String> {
            let mut lines = Vec::new();
            $(
                lines.push(format!("{} {}", $c, size_of::<$record>()));
                $(lines.push(format!("{}.{} {}", $c, stringify!($field), core::mem::offset_of!($record, $field)));)*
            )*
            lines
        }
    };
}

layout! {
    Str as "almanac_str": 16 { data: 0, len: 8 }
    Array as "almanac_array": 24 { data: 0, len: 8, stride: 16 }
    Pair as "almanac_pair": 32 { key: 0, value: 16 }
    Host as "almanac_host": 80 {
        struct_size: 0, abi_minor: 4, context: 8, name: 16, version: 32, log: 48, now_ns: 56, is_cancelled: 64,
        get_extension: 72,
    }
    Tool as "almanac_tool": 80 { name: 0, category: 16, capabilities: 32, keywords: 56 }
    Snapshot as "almanac_snapshot": 40 { struct_size: 0, reserved: 4, generation: 8, tools: 16 }
    Request as "almanac_request": 152 {
        struct_size: 0, complexity: 4, generation: 8, tool: 16, mode: 32, session_id: 48, goal: 64, num_outputs: 80,
        has_branches: 88, reserved: 92, history: 96, context: 120, deadline_ns: 144,
    }
    Suggestion as "almanac_suggestion": 48 { struct_size: 0, reserved: 4, tool: 8, reason: 24, score: 40 }
    Sink as "almanac_sink": 24 { struct_size: 0, reserved: 4, context: 8, push: 16 }
    Vtable as "almanac_plugin_vtable": 48 {
        struct_size: 0, reserved: 4, create: 8, destroy: 16, on_snapshot: 24, suggest: 32, get_extension: 40,
    }
    Descriptor as "almanac_plugin_descriptor": 120 {
        struct_size: 0, abi_minor: 4, flags: 8, id: 16, name: 32, version: 48, vendor: 64, url: 80, config_schema: 96,
        vtable: 112,
    }
    Note as "almanac_plugin_note": 220 {
        owner_size: 0, desc_size: 4, kind: 8, owner: 12, abi_major: 20, abi_minor: 24, id: 28, version: 156,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::{fs, path::Path};

    use super::*;
    use crate::{
        ABI_MAJOR, ABI_MINOR, ENTRY_SYMBOL, FLAGS_MUST_KNOW, NOTE_OWNER, NOTE_SECTION, NOTE_TYPE, Record, code,
        complexity, level,
    };

    /// The constants, spelled as the header spells them.
    fn constants() -> Vec<String> {
        let numbers: [(&str, i64); 20] = [
            ("ABI_MAJOR", ABI_MAJOR.into()),
            ("ABI_MINOR", ABI_MINOR.into()),
            ("OK", code::OK.into()),
            ("STOP", code::STOP.into()),
            ("E_INVALID", code::INVALID.into()),
            ("E_UNSUPPORTED", code::UNSUPPORTED.into()),
            ("E_CONFIG", code::CONFIG.into()),
            ("E_INTERNAL", code::INTERNAL.into()),
            ("E_PANICKED", code::PANICKED.into()),
            ("E_CANCELLED", code::CANCELLED.into()),
            ("LOG_ERROR", level::ERROR.into()),
            ("LOG_WARN", level::WARN.into()),
            ("LOG_INFO", level::INFO.into()),
            ("LOG_DEBUG", level::DEBUG.into()),
            ("LOG_TRACE", level::TRACE.into()),
            ("COMPLEXITY_ABSENT", complexity::ABSENT.into()),
            ("COMPLEXITY_SIMPLE", complexity::SIMPLE.into()),
            ("COMPLEXITY_MODERATE", complexity::MODERATE.into()),
            ("COMPLEXITY_COMPLEX", complexity::COMPLEX.into()),
            ("NOTE_TYPE", NOTE_TYPE.into()),
        ];
        let mut lines: Vec<_> = numbers.iter().map(|(name, value)| format!("ALMANAC_{name} {value}")).collect();
        lines.push(format!("ALMANAC_FLAGS_MUST_KNOW {FLAGS_MUST_KNOW:#x}"));
        lines.push(format!("ALMANAC_ENTRY_SYMBOL {}", ENTRY_SYMBOL.to_str().unwrap()));
        lines.push(format!("ALMANAC_NOTE_SECTION {NOTE_SECTION}"));
        lines.push(format!("ALMANAC_NOTE_OWNER {}", str::from_utf8(&NOTE_OWNER[..7]).unwrap()));
        lines
    }

    #[test]
    fn rust_and_c_agree() {
        let printed: Vec<String> = run(&probe(&lines(), &constants()), "include");
        assert_eq!(printed, [lines(), constants()].concat());
    }

    /// A library of 1.0 sends and expects these sizes for ever.
    #[test]
    fn the_frozen_header_has_the_smallest_sizes() {
        macro_rules! smallest {
            ($($record:ident as $c:literal),*) => {
                [$(format!("{} {}", $c, $record::MIN_SIZE)),*]
            };
        }
        let smallest = smallest![
            Str as "almanac_str", Pair as "almanac_pair", Host as "almanac_host", Tool as "almanac_tool",
            Snapshot as "almanac_snapshot", Request as "almanac_request", Suggestion as "almanac_suggestion",
            Sink as "almanac_sink", Vtable as "almanac_plugin_vtable", Descriptor as "almanac_plugin_descriptor"
        ];
        let frozen = "../../tests/fixtures/plugins/v1_0";
        assert_eq!(run(&probe(&smallest, &[]), frozen), smallest);
    }

    /// A program that prints what the header says, with every number of ours asserted in C as well.
    fn probe(fields: &[String], constants: &[String]) -> String {
        let mut source = String::from("#include <stdio.h>\n#include \"almanac_plugin.h\"\n");
        let mut body = String::new();
        for line in fields {
            let (name, number) = line.split_once(' ').unwrap();
            let measured = match name.split_once('.') {
                Some((record, field)) => format!("offsetof({record}, {field})"),
                None => format!("sizeof({name})"),
            };
            source += &format!("_Static_assert({measured} == {number}, \"{name}\");\n");
            body += &format!("    printf(\"{name} %zu\\n\", {measured});\n");
        }
        for line in constants {
            let name = line.split_once(' ').unwrap().0;
            let (format, cast) = match name {
                "ALMANAC_FLAGS_MUST_KNOW" => ("%#llx", "(unsigned long long)"),
                "ALMANAC_ENTRY_SYMBOL" | "ALMANAC_NOTE_SECTION" | "ALMANAC_NOTE_OWNER" => ("%s", ""),
                _ => ("%lld", "(long long)"),
            };
            body += &format!("    printf(\"{name} {format}\\n\", {cast}{name});\n");
        }
        format!("{source}int main(void) {{\n{body}    return 0;\n}}\n")
    }

    /// Compiles a program with the header in `include`, a directory of this package, and runs it.
    fn run(source: &str, include: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let (file, program) = (directory.path().join("probe.c"), directory.path().join("probe"));
        fs::write(&file, source).unwrap();
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join(include);
        let built = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
            .args([&include, Path::new("-o"), &program, &file])
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let output = Command::new(program).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}
