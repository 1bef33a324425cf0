#!/usr/bin/env bash
# Puts what an image of the daemon has into a directory that will be its root.
# usage: packaging/image.sh DIRECTORY ROOT    (DIRECTORY has almanacd and libalmanac_reasoning.so)
set -euo pipefail

built=$1 root=$2
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

install -D -m 755 -- "$built/almanacd" "$root/usr/bin/almanacd"
install -D -m 644 -- "$built/libalmanac_reasoning.so" "$root/usr/lib/almanac/plugins/libalmanac_reasoning.so"
install -d -m 755 -- "$root/usr/share/almanac" "$root/etc/almanac" "$root/var/lib/almanac" "$root/run/almanac" "$root/run/almanac-mcp"
cp -r -- "$here/tool_metadata" "$root/usr/share/almanac/"
install -m 644 -- "$here/config/almanac.yaml" "$here/config/categories.yaml" "$root/etc/almanac/"
