//! Who may have a hand in a library: root and the daemon's user, also through a group that nobody else is in.
//!
//! Where each user has a group of the same name, what they make is commonly writable by it (umask 002), which lets
//! nobody else in. Only the system's lists tell such a group from others; one that they do not tell of counts as
//! others.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, Stat};

/// Those whose libraries may run.
#[derive(Debug, Clone, Copy)]
pub struct Trusted {
    user: u32,
    /// Is nobody but root and this user, the second number, in the group of the first?
    is_private: fn(u32, u32) -> bool,
}

impl Trusted {
    /// Root, and the user of this process.
    pub fn by_this_process() -> Self {
        Self { user: rustix::process::geteuid().as_raw(), is_private }
    }

    /// Why others could change what has this status. Of a directory further up that all may write to, such as /tmp, the
    /// sticky bit is enough: nobody can replace in it what is not theirs.
    pub fn doubt(&self, stat: &Stat, sticky_will_do: bool) -> Option<String> {
        if stat.st_uid != 0 && stat.st_uid != self.user {
            return Some(format!("belongs to user {}", stat.st_uid));
        }
        let mode = Mode::from_raw_mode(stat.st_mode);
        if sticky_will_do && mode.contains(Mode::SVTX) {
            return None;
        }
        if mode.contains(Mode::WOTH) {
            return Some("can be written by everybody".to_owned());
        }
        let by_others = mode.contains(Mode::WGRP) && !(self.is_private)(stat.st_gid, self.user);
        by_others.then(|| format!("can be written by group {}", stat.st_gid))
    }

    /// Why others could change what stands at `path`, or put something else there; nothing if nobody can.
    pub fn doubt_path(&self, path: &Path) -> io::Result<Option<String>> {
        // Links are resolved first: whoever could turn one elsewhere would have to pass with where it leads.
        let path = path.canonicalize()?;
        for (above, place) in path.ancestors().enumerate() {
            let stat = rustix::fs::stat(place)?;
            if let Some(why) = self.doubt(&stat, above > 1) {
                return Ok(Some(format!("{} {why}", place.display())));
            }
        }
        Ok(None)
    }

    #[cfg(test)]
    pub fn with_private_groups(is_private: bool) -> Self {
        let is_private: fn(u32, u32) -> bool = if is_private { |_, _| true } else { |_, _| false };
        Self { is_private, ..Self::by_this_process() }
    }
}

fn is_private(group: u32, user: u32) -> bool {
    let lists = fs::read_to_string("/etc/passwd").and_then(|users| Ok((users, fs::read_to_string("/etc/group")?)));
    lists.is_ok_and(|(users, groups)| nobody_else(group, user, &users, &groups).unwrap_or(false))
}

/// By the lists as in passwd(5) and group(5); nothing if a line of theirs is not understood, or the group is not
/// listed.
fn nobody_else(group: u32, user: u32, users: &str, groups: &str) -> Option<bool> {
    let mut names = Vec::new();
    for line in lines(users) {
        let [name, _, number, primary] = fields(line)?;
        if [0, user].contains(&number.parse().ok()?) {
            names.push(name);
        } else if primary.parse() == Ok(group) {
            return Some(false);
        }
    }
    let mut listed = None;
    for line in lines(groups) {
        let [_, _, number, members] = fields(line)?;
        if number.parse::<u32>().ok()? == group {
            let trusted = members.split(',').all(|member| member.is_empty() || names.contains(&member));
            listed = Some(trusted && listed.unwrap_or(true));
        }
    }
    listed
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}

/// The first four fields.
fn fields(line: &str) -> Option<[&str; 4]> {
    let mut fields = line.split(':');
    Some([fields.next()?, fields.next()?, fields.next()?, fields.next()?.trim()])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nben:x:1001:100::/:/bin/sh\n";

    #[test]
    fn a_group_of_ones_own_has_nobody_else_in_it() {
        let check = |users: &str, groups: &str, expected: Option<bool>| {
            assert_eq!(nobody_else(1000, 1000, users, groups), expected, "{users}{groups}");
        };
        check(USERS, "root:x:0:\nann:x:1000:\n", Some(true));
        check(USERS, "ann:x:1000:ann,root\n\n", Some(true));
        check(USERS, "ann:x:1000:ann,ben\n", Some(false));
        check(USERS, "ann:x:1000:gone\n", Some(false));
        check(USERS, "ann:x:1000:\nagain:x:1000:ben\n", Some(false));
        check(USERS, "again:x:1000:ben\nann:x:1000:\n", Some(false));
        check(&format!("{USERS}eve:x:1002:1000::/:/bin/sh\n"), "ann:x:1000:\n", Some(false));
        check(USERS, "root:x:0:\n", None);
        check(USERS, "ann:x:1000:\n+\n", None);
        check(&format!("{USERS}+::::::\n"), "ann:x:1000:\n", None);
    }

    const GROUP: u32 = 2;

    /// Of a user: name, number, primary group.
    type User = (String, u32, u32);

    /// Of a group: number, members.
    type Group = (u32, Vec<String>);

    fn lists() -> impl Strategy<Value = (Vec<User>, Vec<Group>)> {
        let user = ("[a-c]", 0_u32..4, 0_u32..4);
        let group = (1_u32..4, prop::collection::vec("[a-d]", 0..3));
        (prop::collection::vec(user, 0..5), prop::collection::vec(group, 0..4))
    }

    fn users_of(users: &[User]) -> String {
        users.iter().map(|(name, number, group)| format!("{name}:x:{number}:{group}::/:/bin/sh\n")).collect()
    }

    fn groups_of(groups: &[Group]) -> String {
        groups.iter().map(|(number, members)| format!("g:x:{number}:{}\n", members.join(","))).collect()
    }

    proptest! {
        #[test]
        fn a_group_is_private_if_all_in_it_are_trusted((users, groups) in lists()) {
            let trusted: Vec<_> = users.iter().filter(|(_, number, _)| [0, 1].contains(number)).collect();
            let is_trusted = |member: &String| trusted.iter().any(|(name, ..)| name == member);
            let is_listed = groups.iter().any(|(number, _)| *number == GROUP);
            let is_primary = users.iter().any(|(_, number, group)| *group == GROUP && ![0, 1].contains(number));
            let has_others = groups.iter().any(|(number, all)| *number == GROUP && !all.iter().all(is_trusted));
            let found = nobody_else(GROUP, 1, &users_of(&users), &groups_of(&groups));
            prop_assert_eq!(found.unwrap_or(false), is_listed && !is_primary && !has_others);
            prop_assert_eq!(found.is_none(), !is_listed && !is_primary);
        }

        #[test]
        fn a_line_that_is_not_understood_lets_nobody_be_trusted(
            (users, groups) in lists(),
            odd in "[a-z+]{0,3}(:[a-z+]{0,3}){0,2}|a:x:[a-z+]?:[0-9]?",
            is_of_users: bool,
        ) {
            prop_assume!(!odd.trim().is_empty());
            let (mut users, mut groups) = (users_of(&users), groups_of(&groups));
            if is_of_users { users.push_str(&odd) } else { groups.push_str(&odd) }
            prop_assert_ne!(nobody_else(GROUP, 1, &users, &groups), Some(true), "{}{}", users, groups);
        }
    }
}
