//! From nothing to a daemon that answers: by the environment alone, from an archive, from a backup.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::counterparts::installed;
use crate::daemon::{Daemon, Site, almanacd, document, wait_until};
use crate::fixtures::reasoning;

const SECRET: &str = "a-secret-of-the-operator";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn start(site: &Site, first: &str) -> Daemon {
    let mut command = site.command();
    command.env("ALMANAC_TOKEN_FILE", site.path("tokens")).env("ALMANAC_FIRST_TOKEN", first);
    Daemon::start(command, site.path("state/admin.sock"))
}

fn status(daemon: &Daemon, token: &str) -> u16 {
    let value = format!("Bearer {token}");
    daemon.send("GET", "/v1/tools", &[("authorization", value.as_str())], b"").status
}

#[test]
fn the_environment_alone_makes_a_first_token() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    let daemon = start(&site, SECRET);
    assert_eq!(daemon.get("/v1/tools").status, 401);
    assert_eq!((status(&daemon, SECRET), status(&daemon, "another-secret-altogether")), (200, 401));
    let text = fs::read_to_string(site.path("tokens")).unwrap();
    assert!(!text.contains(SECRET) && text.contains("\"first\""), "{text}");
    assert!(!daemon.log.text().contains(SECRET));
    drop(daemon);
    // A file that has tokens is as it should be.
    let daemon = start(&site, "another-secret-altogether");
    assert_eq!((status(&daemon, SECRET), status(&daemon, "another-secret-altogether")), (200, 401));
    drop(daemon);
    let weak = |token: &str| {
        let mut command = site.command();
        let output =
            command.env("ALMANAC_TOKEN_FILE", site.path("other")).env("ALMANAC_FIRST_TOKEN", token).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = weak("short");
    assert!(code == Some(78) && said.contains("16 characters"), "{said}");
    assert!(!site.path("other").exists());
}

#[test]
fn a_backup_is_the_whole_store() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    let daemon = site.start();
    assert_eq!(daemon.post("/v1/executions", r#"{"tool_name": "a", "duration_ms": 1234}"#).status, 201);
    let copy = site.path("copy.db");
    let output = almanacd().arg("backup").arg(&copy).arg("--state-dir").arg(site.path("state")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    drop(daemon);
    let other = Site::new();
    other.save("a.yaml", &document("a", "t"));
    fs::create_dir_all(other.path("state")).unwrap();
    fs::copy(&copy, other.path("state/almanac.db")).unwrap();
    let daemon = other.start();
    wait_until("the record of the backup", || {
        let reply = daemon.get("/v1/timing/a");
        reply.status == 200 && reply.json()["items"][0]["samples"] == 1
    });
}

#[test]
fn a_backup_is_of_what_is_kept_and_whole() {
    let site = Site::new();
    site.save("a.yaml", &document("a", "t"));
    drop(site.start());
    let refused = |variable: Option<(&str, &str)>, expected: &str| {
        let mut command = almanacd();
        command.arg("backup").arg(site.path("copy.db")).current_dir(site.path(""));
        command.env_remove("ALMANAC_STATE_DIR").envs(variable);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(expected), "{error}");
        assert!(!site.path("copy.db").exists());
    };
    let shared = "its own tools copy (pg_dump)";
    refused(Some(("ALMANAC_DATABASE_URL", "postgres://a@127.0.0.1:1/a")), shared);
    let named = site.path("shared.yaml");
    fs::write(&named, "store: {url: 'postgres://a@127.0.0.1:1/a'}\n").unwrap();
    refused(Some(("ALMANAC_CONFIG", named.to_str().unwrap())), shared);
    let database = site.path("state/almanac.db");
    let whole = almanacd().arg("backup").arg(site.path("whole.db")).arg("--state-dir").arg(site.path("state")).status();
    assert!(whole.unwrap().success());
    for left in ["almanac.db-wal", "almanac.db-shm", "almanac.journal"] {
        let _ = fs::remove_file(site.path("state").join(left));
    }
    fs::rename(site.path("whole.db"), &database).unwrap();
    let mut bytes = fs::read(&database).unwrap();
    assert!(bytes.len() > 40_960, "{}", bytes.len());
    bytes[8192..32_768].fill(0xa5);
    fs::write(&database, bytes).unwrap();
    refused(None, "cannot copy");
}

#[test]
fn an_upgrade_of_the_package_restarts_the_service_and_leaves_its_sockets_open() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    for name in ["bin", "root/run/systemd/system"] {
        fs::create_dir_all(path(name)).unwrap();
    }
    for program in ["deb-systemd-invoke", "systemd-sysusers"] {
        let file = path("bin").join(program);
        fs::write(&file, format!("#!/bin/sh\necho {program} \"$@\" >> {}\n", path("done").display())).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let search = format!("{}:/usr/bin:/bin", path("bin").display());
    let run = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.arg(root().join("packaging/deb/postinst")).args(arguments);
        assert!(command.env("PATH", &search).env("DPKG_ROOT", path("root")).status().unwrap().success());
        let done = fs::read_to_string(path("done")).unwrap();
        fs::remove_file(path("done")).unwrap();
        let invoked = done.lines().filter(|line| line.starts_with("deb-systemd-invoke"));
        invoked.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(run(&["configure", "0.0.9"]), ["deb-systemd-invoke restart almanacd.service"]);
    assert_eq!(run(&["configure", ""]), [""; 0], "a first installation is started by what is generated");
    assert_eq!(run(&["abort-upgrade", "0.0.9"]), [""; 0]);
    // Nor does what is generated stop or restart a socket.
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let units = manifest.lines().find(|line| line.starts_with("systemd-units = ")).unwrap();
    assert!(units.contains("restart-after-upgrade = false, stop-on-upgrade = false"), "{units}");
}

#[test]
fn an_archive_has_what_is_needed_and_a_checksum() {
    let directory = TempDir::new().unwrap();
    let built = directory.path().join("built");
    fs::create_dir(&built).unwrap();
    fs::write(built.join("almanacd"), "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(built.join("almanacd"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(built.join("libalmanac_reasoning.so"), "stands in").unwrap();
    let out = directory.path().join("out");
    let make = || -> PathBuf {
        let script = root().join("packaging/dist.sh");
        let output = Command::new(script).arg(&built).arg("x86_64-unknown-linux-gnu").arg(&out).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().into()
    };
    let archive = make();
    let first = fs::read(&archive).unwrap();
    let summed = Command::new("sha256sum")
        .args(["--check", "--quiet"])
        .arg(format!("{}.sha256", archive.display()))
        .current_dir(&out)
        .status()
        .unwrap();
    assert!(summed.success());
    assert_eq!(fs::read(make()).unwrap(), first, "the same files make the same archive");
    let listed = Command::new("tar").arg("--list").arg("--gzip").arg("--file").arg(&archive).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for part in [
        "bin/almanacd",
        "lib/almanac/plugins/libalmanac_reasoning.so",
        "include/almanac_plugin.h",
        "etc/almanac/almanac.yaml",
        "share/almanac/systemd/almanacd.service",
        "share/doc/almanac/INSTALL.md",
        "share/almanac/docs/schema/tool.json",
        "share/almanac/tool_metadata/builtin/web_search.yaml",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(part)), "{part} is not in\n{listed}");
    }
}

#[test]
fn an_archive_for_another_processor_is_cross_built_or_make_says_what_is_missing() {
    let make = |more: &[&str]| {
        // Not a part of the make that runs the tests.
        let mut command = Command::new("make");
        command.args(["--no-print-directory", "dist"]).args(more).current_dir(root());
        let output = command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (is_done, said, error) = make(&["TARGET=nonsense-unknown-linux-gnu"]);
    assert!(!is_done && error.contains("Rust knows no target nonsense-unknown-linux-gnu"), "{said}{error}");
    let (is_done, said, error) = make(&["--dry-run", "TARGET=s390x-unknown-linux-gnu"]);
    assert!(is_done, "{error}");
    for part in [
        "rustup target add s390x-unknown-linux-gnu",
        "CC_s390x_unknown_linux_gnu=s390x-linux-gnu-gcc",
        "CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER:-s390x-linux-gnu-gcc}",
        "--profile dist --target s390x-unknown-linux-gnu",
        "packaging/dist.sh target/s390x-unknown-linux-gnu/dist s390x-unknown-linux-gnu target/archives",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    let (_, said, _) = make(&["--dry-run"]);
    assert!(said.contains("packaging/dist.sh target/dist ") && !said.contains("--target "), "{said}");
}

#[test]
fn the_files_for_containers_name_what_there_is() {
    let compose = fs::read(root().join("packaging/compose.yaml")).unwrap();
    let limits = almanac::strict::Limits::of_bytes(1 << 16);
    let compose: Value = almanac::strict::read::yaml(&compose, &limits).unwrap().into();
    let build = &compose["services"]["almanac"]["build"];
    assert!(root().join(build["dockerfile"].as_str().unwrap()).is_file(), "{build}");
    let services = compose["services"].as_object().unwrap();
    for service in services.values() {
        for volume in service["volumes"].as_array().unwrap() {
            let from = volume.as_str().unwrap().split(':').next().unwrap();
            let is_there = match from.strip_prefix('.') {
                Some(_) => root().join("packaging").join(from).exists(),
                None => compose["volumes"].get(from).is_some(),
            };
            assert!(is_there, "{from}");
        }
        for config in service.get("configs").and_then(Value::as_array).into_iter().flatten() {
            let content = &compose["configs"][config["source"].as_str().unwrap()]["content"];
            almanac::strict::read::yaml(content.as_str().unwrap().as_bytes(), &limits).unwrap();
        }
    }
    let source = compose["configs"]["grafana-source"]["content"].as_str().unwrap();
    assert!(services.contains_key("prometheus") && source.contains("http://prometheus:9090"), "{source}");
    let recipe = fs::read_to_string(root().join("packaging/Containerfile")).unwrap();
    assert!(recipe.contains("packaging/image.sh target/dist /image"), "{recipe}");
    let oldest = env!("CARGO_PKG_RUST_VERSION");
    assert!(recipe.contains(&format!("/rust:{oldest}-")) && recipe.contains(&format!("RUSTUP_TOOLCHAIN={oldest}\n")));
    // Every variable that it sets is one that `serve` takes.
    let help = String::from_utf8(almanacd().args(["serve", "--help"]).output().unwrap().stdout).unwrap();
    let variables: Vec<&str> = recipe
        .split("ALMANAC_")
        .skip(1)
        .filter_map(|rest| rest.split('=').next())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
        .collect();
    assert!(variables.len() >= 4, "{variables:?}");
    for name in variables {
        assert!(help.contains(&format!("ALMANAC_{name}")), "{name}");
    }
}

/// The words of an instruction that is a list of them.
fn exec_form(recipe: &str, instruction: &str) -> Vec<String> {
    let line = recipe.lines().find(|line| line.starts_with(instruction) && line.ends_with(']')).unwrap();
    serde_json::from_str(&line[line.find('[').unwrap()..]).unwrap()
}

/// What the recipe's base image has: the C library and what the daemon is linked to.
fn put_base(image: &Path) {
    let listed = Command::new("ldd").arg(env!("CARGO_BIN_EXE_almanacd")).output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        let to = image.join(&library[1..]);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(library, to).unwrap();
    }
    for directory in ["proc", "tmp", "dev"] {
        fs::create_dir_all(image.join(directory)).unwrap();
    }
    // Stands in for the device that those who run containers mount there.
    fs::write(image.join("dev/null"), "").unwrap();
}

#[test]
fn the_image_starts_by_its_environment_and_is_healthy() {
    if !installed("unshare") {
        return;
    }
    let directory = TempDir::new().unwrap();
    let (built, image) = (directory.path().join("built"), directory.path().join("image"));
    fs::create_dir(&built).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_almanacd"), built.join("almanacd")).unwrap();
    fs::copy(reasoning(), built.join("libalmanac_reasoning.so")).unwrap();
    let arranged = Command::new(root().join("packaging/image.sh")).arg(&built).arg(&image).status().unwrap();
    assert!(arranged.success());
    put_base(&image);

    let recipe = fs::read_to_string(root().join("packaging/Containerfile")).unwrap();
    let inside = |arguments: &[String]| {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-user=65532", "--map-group=65532", "--mount", "--pid", "--fork", "--kill-child"])
            .arg("--mount-proc")
            .arg(format!("--root={}", image.display()))
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap());
        let variables = recipe.lines().filter_map(|line| line.trim().trim_end_matches(" \\").rsplit(' ').next());
        command.envs(variables.filter(|word| word.starts_with("ALMANAC_")).filter_map(|word| word.split_once('=')));
        command
    };
    let mut command = inside(&[exec_form(&recipe, "ENTRYPOINT"), exec_form(&recipe, "CMD")].concat());
    // Another port than the recipe's, which another daemon may have.
    command.env("ALMANAC_LISTEN", "0.0.0.0:0").env("ALMANAC_FIRST_TOKEN", SECRET).stderr(Stdio::piped());
    let daemon = Daemon::start(command, image.join("run/almanac/admin.sock"));
    assert_eq!((status(&daemon, "another-secret-altogether"), status(&daemon, SECRET)), (401, 200));
    let authorization = format!("Bearer {SECRET}");
    let headers = [("authorization", authorization.as_str())];
    wait_until("the rule library", || {
        let libraries = daemon.send("GET", "/v1/plugins", &headers, b"").json();
        libraries["items"][0]["state"] == "ready"
    });

    let health = recipe.lines().find(|line| line.starts_with("HEALTHCHECK")).unwrap();
    let health: Vec<String> = serde_json::from_str(&health[health.find('[').unwrap()..]).unwrap();
    let output = inside(&health).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for kept in ["etc/almanac/tokens", "var/lib/almanac/almanac.db"] {
        assert!(image.join(kept).exists(), "{kept} is on a volume");
    }
}
