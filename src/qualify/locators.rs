//! What only says where something is: addresses of pages, names of files, and what stands for an account or a
//! transaction on a blockchain.
//!
//! Their words are somebody's names, not the request: whoever reads `swap.md` swaps nothing. So an address counts by
//! its host, a file by what kind it is, and what only machines read by what it is.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// What an address of a page is called: as documents call what holds one.
const ADDRESS: &str = " url";

/// What files are called, and how their names end. The first is also what one of no known ending is.
const KINDS: [(&str, &str); 4] = [
    (
        "file",
        "bak bash bat bin bz2 c cc cfg conf cpp cs css csv db dll doc docx env epub exe go gz h hpp htm html ico ics \
         ini ipynb java js json jsonl jsx key kt lock log lua md odt out parquet patch pdf pem php ppt pptx \
         properties ps1 py rb rs rst rtf scala sh sql sqlite srt swift tar tex tgz toml ts tsv tsx txt whl xls xlsx \
         xml yaml yml zip zsh",
    ),
    ("image", "bmp gif jpeg jpg png svg tif tiff webp"),
    ("audio file", "flac m4a mp3 ogg wav"),
    ("video file", "avi mkv mov mp4 webm"),
];

/// What stands before a full stop and is no file: libraries (`node.js`), objects of programs (`console.log`) and hosts
/// (`docs.rs`).
const NO_FILES: &str = "\
    angular chart d3 discord ethers express jquery next node nuxt p5 react socket three vue \
    console document math module process request req response res self this window \
    bun docs";

/// How paths begin.
const BEGINNINGS: [&str; 3] = ["./", "../", "~/"];

/// Where a machine's files are.
const ROOTS: [&str; 15] = [
    "/etc/", "/home/", "/tmp/", "/var/", "/usr/", "/opt/", "/root/", "/mnt/", "/srv/", "/proc/", "/sys/", "/dev/",
    "/bin/", "/Users/", "/data/",
];

/// What accounts and contracts on a blockchain are called, and what transactions are.
const ACCOUNT: &str = "address";
const TRANSACTION: &str = "transaction hash";

/// Digits of the hexadecimal numbers that they are, behind `0x`.
const ACCOUNT_DIGITS: usize = 40;
const TRANSACTION_DIGITS: usize = 64;

/// Characters of accounts that are written in base 58, of 25 or 32 bytes.
const ACCOUNT_LETTERS: RangeInclusive<usize> = 32..=44;

/// Digits of these at least: a long name in some program may have one.
const LEAST_DIGITS: usize = 2;

/// The text with each address cut to its host, each name of a file to its kind, and each key to what it is.
pub(super) fn without_locators(text: &str) -> Cow<'_, str> {
    [with_kinds, without_keys].into_iter().fold(with_hosts(text), |text, next| match text {
        Cow::Borrowed(text) => next(text),
        Cow::Owned(text) => match next(&text) {
            Cow::Borrowed(_) => Cow::Owned(text),
            Cow::Owned(text) => Cow::Owned(text),
        },
    })
}

/// The text with each address of an account, and each hash of a transaction, as what it is called.
fn without_keys(text: &str) -> Cow<'_, str> {
    // What is a part of something longer is no key: of a name, or of bytes in base 64.
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-+/=".contains(byte);
    let (mut said, mut copied, mut at) = (String::new(), 0, 0);
    for run in text.as_bytes().chunk_by(|one, next| goes_on(one) == goes_on(next)) {
        let place = at..at + run.len();
        at = place.end;
        if run.len() < *ACCOUNT_LETTERS.start() {
            continue;
        }
        if let Some(called) = key(run) {
            said.push_str(&text[copied..place.start]);
            said.push_str(called);
            copied = place.end;
        }
    }
    if copied == 0 { text.into() } else { (said + &text[copied..]).into() }
}

/// What somebody's key is called, if it is one.
fn key(word: &[u8]) -> Option<&'static str> {
    if let Some(number) = word.strip_prefix(b"0x").filter(|number| number.iter().all(u8::is_ascii_hexdigit)) {
        return match number.len() {
            ACCOUNT_DIGITS => Some(ACCOUNT),
            TRANSACTION_DIGITS => Some(TRANSACTION),
            _ => None,
        };
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() && !b"0OIl".contains(byte);
    let is_account = ACCOUNT_LETTERS.contains(&word.len())
        && word.iter().all(is_letter)
        && word.iter().any(u8::is_ascii_lowercase)
        && word.iter().any(u8::is_ascii_uppercase)
        && word.iter().filter(|byte| byte.is_ascii_digit()).count() >= LEAST_DIGITS;
    is_account.then_some(ACCOUNT)
}

fn with_hosts(text: &str) -> Cow<'_, str> {
    let (mut said, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("://") {
        let end = after.find(|char: char| !char.is_ascii_graphic() || "\"'`<>()".contains(char)).unwrap_or(after.len());
        let address = after[..end].trim_end_matches(['.', ',', ';', ':', '!', '?']);
        let host = address.split(['/', '?', '#', ':']).next().unwrap_or_default();
        said.push_str(before.trim_end_matches(|char: char| char.is_ascii_alphanumeric()));
        said.extend([host, ADDRESS]);
        rest = &after[address.len()..];
    }
    if said.is_empty() { text.into() } else { (said + rest).into() }
}

/// The names of files in a text.
pub(super) fn files(text: &str) -> impl Iterator<Item = &str> {
    tokens(text).map(|(_, name)| name).filter(|name| kind(name).is_some())
}

/// What stands between spaces, quotes and brackets, with its place.
fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_around = |char: char| !char.is_ascii_graphic() || "\"'`<>()[]{},;|=".contains(char);
    let mut at = 0;
    text.split_inclusive(is_around).map(move |token| {
        let place = at;
        at += token.len();
        (place, token.trim_end_matches(|char: char| !char.is_ascii_alphanumeric() && char != '/'))
    })
}

fn with_kinds(text: &str) -> Cow<'_, str> {
    let (mut said, mut copied) = (String::new(), 0);
    for (at, name) in tokens(text) {
        if let Some((ending, kind)) = kind(name) {
            said.push_str(&text[copied..at]);
            said.extend([ending, if ending.is_empty() { "" } else { " " }, kind]);
            copied = at + name.len();
        }
    }
    if copied == 0 { text.into() } else { (said + &text[copied..]).into() }
}

/// How a file's name ends, if not without an ending, and what the file is called; nothing if it is no file's name.
fn kind(name: &str) -> Option<(&str, &'static str)> {
    // `src/lib.rs:12:5` is a place in a file.
    let name = name.split(':').next().filter(|name| !name.is_empty())?;
    let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let ending = last.rsplit_once('.').filter(|(stem, ending)| {
        let is_library = NO_FILES.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(stem));
        // "U.S.C." is no source.
        let is_abbreviation = ending.len() == 1 && (stem.len() < 2 || stem.contains('.'));
        stem.contains(|char: char| char.is_ascii_alphanumeric()) && !is_library && !is_abbreviation
    });
    let known = ending.and_then(|(_, ending)| {
        let is_it = |known: &str| known.eq_ignore_ascii_case(ending);
        let kind = KINDS.iter().find(|(_, endings)| endings.split_ascii_whitespace().any(is_it));
        kind.map(|(kind, _)| (ending, *kind))
    });
    let is_path = BEGINNINGS
        .iter()
        .chain(&ROOTS)
        .any(|beginning| name.strip_prefix(beginning).is_some_and(|rest| !rest.is_empty()));
    known.or(is_path.then_some(("", KINDS[0].0)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(without_locators(text), expected, "{text:?}");
    }

    #[test]
    fn an_address_is_its_host() {
        check("read it", "read it");
        check("Read https://a.org/en/b?c=1. Then (http://b.de:80/x) go!", "Read a.org url. Then (b.de url) go!");
        check("总结https://a.org/x的内容", "总结a.org url的内容");
        check("https://", " url");
        check("a://b", "b url");
    }

    #[test]
    fn a_file_is_its_kind() {
        check("show me what is in build.sh", "show me what is in sh file");
        check("what's in `swap.md`?", "what's in `md file`?");
        check("look into src/price/history.ts:12, please", "look into ts file, please");
        check("cat ~/.bashrc and /etc/hosts", "cat file and file");
        check("Read README.MD. Then stop.", "Read MD file. Then stop.");
        check("open ./notes/ and (a.csv)", "open file and (csv file)");
        check("what's in screenshot.png?", "what's in png image?");
        for other in [
            "and/or 3.5 e.g. U.S. U.S.C node.js Next.js bob.eth",
            "console.log notion.so docs.rs Response.json",
            "AclApi.add_mapping a.org either/or /v1/tools 10/12/2026 .py v1.2",
            "...",
            "/",
            "~/",
        ] {
            check(other, other);
        }
    }

    #[test]
    fn a_key_is_what_it_stands_for() {
        check(
            "what does 0x3f5CE5FBFe3E9af3971dD833D26bA9b5C936f0bE hold? 9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin?",
            "what does address hold? address?",
        );
        check("(1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa) 0xdac17f958d2ee523a2206206994597c13d831ec7.", "(address) address.");
        check(
            "tx 0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060 is stuck",
            "tx transaction hash is stuck",
        );
        for other in [
            // A commit, a digest, a UUID, a number.
            "5bca4e5faf4f7ba8ec1b9b89373befbcb1141c2e",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "550e8400-e29b-41d4-a716-446655440000",
            "0xdeadbeef 0xd8dA6BF26964aF9D7eEd9e03E53415D37aA9604 0xd8dA6BF26964aF9D7eEd9e03E53415D37aA960455",
            // Bytes in base 64.
            "5KQwr3nGm7YzTq9uXvBc4d8Ef2gHhJk1sMn6pR+tWxZ",
            "data:text/plain;base64,5KQwrnGmYzTq9uXvBc4d8Ef2gHhJk1sMn6pRtWxZ=",
            // Names and words.
            "SuperTokenFactoryMigrationHandsV2Test donaudampfschifffahrtsgesellschaftskapitaen",
            "MAX_RETRIES_OF_THE_SECOND_STORE_V2_a3 AccountSettings/2fa/SecurityKeys42",
            "x9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin",
        ] {
            check(other, other);
        }
    }

    proptest! {
        /// No library's name ends so.
        #[test]
        fn what_is_around_stays(before in "[a-z ]{0,12}", after in "[a-z ]{0,12}", stem in "[a-z]{0,7}x") {
            let text = format!("{before} {stem}.toml {after}");
            prop_assert_eq!(without_locators(&text), format!("{before} toml file {after}"));
        }

        #[test]
        fn any_text_is_taken(text in "(\\PC|[./:~\\n]|\\.rs|://){0,60}") {
            let once = without_locators(&text).into_owned();
            prop_assert!(once.len() <= 5 * text.len());
        }
    }
}
