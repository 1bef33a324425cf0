#!/usr/bin/env bash
# Makes a release archive with its checksum from a built daemon.
# usage: packaging/dist.sh DIRECTORY TARGET OUT    (DIRECTORY has almanacd and libalmanac_reasoning.so)
set -euo pipefail

built=$1 target=$2 out=$3
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -1)
name=almanac-$version-$target
stage=$(mktemp -d)
trap 'rm -rf -- "$stage"' EXIT
root=$stage/$name

put() { # MODE FILE... DIRECTORY
    local mode=$1 directory=${*: -1}
    shift
    mkdir -p "$root/$directory"
    install -m "$mode" -- "${@:1:$#-1}" "$root/$directory/"
}

cd -- "$here"
put 755 "$built/almanacd" bin
put 644 "$built/libalmanac_reasoning.so" lib/almanac/plugins
put 644 plugins/abi/include/almanac_plugin.h include
put 644 config/almanac.yaml config/categories.yaml config/timing-defaults.yaml etc/almanac
put 644 config/presets/*.yaml share/almanac/examples/presets
put 644 config/prometheus/* share/almanac/prometheus
put 644 systemd/*.service systemd/*.socket systemd/almanacd.sysusers systemd/almanacd.tmpfiles systemd/README.md share/almanac/systemd
put 644 systemd/drop-ins/*.conf share/almanac/systemd/drop-ins
put 644 docs/*.md share/doc/almanac
put 644 docs/schema/tool.json share/almanac/docs/schema
put 644 README.md CHANGELOG.md LICENSE src/text/embedding/NOTICE share/doc/almanac
cp -r tool_metadata "$root/share/almanac/"
# The program writes its pages itself, if it can run here.
if "$built/almanacd" man --out "$root/share/man/man1" 2>/dev/null; then
    mkdir -p "$root/share/completions"
    for shell in bash zsh fish; do
        "$built/almanacd" completions $shell >"$root/share/completions/almanacd.$shell"
    done
fi

mkdir -p -- "$out"
# The same files make the same archive: no owner, one time, one order.
time=$(git -C "$here" log -1 --format=%ct 2>/dev/null || echo 0)
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$time" --directory "$stage" "$name" |
    gzip --no-name --best >"$out/$name.tar.gz"
(cd -- "$out" && sha256sum -- "$name.tar.gz" >"$name.tar.gz.sha256")
printf '%s\n' "$out/$name.tar.gz"
