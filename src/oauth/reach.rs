//! Which addresses may be asked: what another server names must not lead into the own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::Uri;

/// How far a request may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchReach {
    /// Over https to public addresses.
    Public,
    /// The same, and this machine, also over plain http.
    Local,
    /// Over https anywhere, over plain http on this machine: for addresses that the configuration names.
    Configured,
}

impl FetchReach {
    /// As far as a server at this URL may lead: one on this machine may name others on it.
    pub fn of_server(uri: &Uri) -> Self {
        if is_loopback_host(uri) { Self::Local } else { Self::Public }
    }

    /// May plain http be spoken to this host?
    pub(super) fn allows_plain(self, uri: &Uri) -> bool {
        self != Self::Public && is_loopback_host(uri)
    }

    /// May this address be connected to?
    pub(super) fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            Self::Local => is_public(address) || address.to_canonical().is_loopback(),
            Self::Configured => true,
        }
    }
}

/// The host of a URL, without the brackets of an IPv6 address.
pub(super) fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_matches(['[', ']'])
}

/// Is this machine named?
pub fn is_loopback_host(uri: &Uri) -> bool {
    let host = host(uri);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Is it an address of the internet, by IANA's registries of special-purpose addresses?
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Of global unicast, what leads to IPv4 addresses (6to4, Teredo) and what is for documents is left out.
    segments[0] & 0xe000 == 0x2000
        && segments[0] != 0x2002
        && !(segments[0] == 0x2001 && matches!(segments[1], 0 | 0xdb8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_network_is_not_public() {
        let check = |address: &str, expected: bool| {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        };
        for address in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1", "::ffff:8.8.8.8"] {
            check(address, true);
        }
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
        ] {
            check(address, false);
        }
    }

    #[test]
    fn only_what_is_on_this_machine_leads_to_it() {
        let check = |url: &str, reach: FetchReach| {
            assert_eq!(FetchReach::of_server(&url.parse().unwrap()), reach, "{url}");
        };
        check("http://127.0.0.1:1/mcp", FetchReach::Local);
        check("https://localhost/mcp", FetchReach::Local);
        check("http://[::1]:8/mcp", FetchReach::Local);
        check("https://mcp.example.com/mcp", FetchReach::Public);
        check("https://10.0.0.1/mcp", FetchReach::Public);
        assert!(
            FetchReach::Local.allows("127.0.0.1".parse().unwrap())
                && !FetchReach::Local.allows("10.0.0.1".parse().unwrap())
        );
        assert!(!FetchReach::Public.allows("127.0.0.1".parse().unwrap()));
    }
}
