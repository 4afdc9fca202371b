//! `bigfleet provider new`: what it writes is the template under another name, and cargo finds everything it needs.

use std::path::Path;
use std::process::{Command, Output};

use crate::shard_scene::Folder;

fn new(folder: &Folder, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    let folder = format!("--folder={}", folder.0.display());
    command.args(["provider", "new", &folder]).args(args);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The template itself is a crate of this repository: `cargo test -p bigfleet-provider-template` certifies it.
#[test]
fn what_is_written_is_the_certified_template_and_resolves() {
    let folder = Folder::new("provider-new");
    let output = new(&folder, &["my-cloud"]);
    assert!(output.status.success(), "{}", said(&output));
    let made = folder.file("my-cloud");
    let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../provider-template");
    for file in [
        "src/main.rs",
        "src/backend.rs",
        "src/offerings.rs",
        "src/substrate.rs",
        "tests/conformance.rs",
    ] {
        let (ours, theirs) = (
            std::fs::read_to_string(template.join(file)),
            std::fs::read_to_string(made.join(file)),
        );
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        let renamed = ours.replace("bigfleet-provider-template", "my-cloud");
        assert_eq!(
            theirs,
            renamed.replace("NAME: &str = \"template\"", "NAME: &str = \"my-cloud\""),
            "{file}"
        );
    }
    // No file of the template is forgotten.
    assert_eq!(std::fs::read_dir(template.join("src")).unwrap().count(), 4);
    // Nor any dependency.
    let names = |manifest: &Path| -> Vec<String> {
        let text = std::fs::read_to_string(manifest.join("Cargo.toml")).unwrap();
        let sections = text.split("\n[").skip(1);
        let dependencies =
            sections.filter(|it| it.split(']').next().unwrap().ends_with("dependencies"));
        let lines = dependencies.flat_map(|section| section.lines().skip(1));
        let names = lines.filter_map(|line| line.split([' ', '.', '=']).next());
        names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(names(&made), names(&template));
    assert_eq!(names(&made).len(), 4);
    // Resolved with the versions of this repository, without asking anybody.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    std::fs::copy(lock, made.join("Cargo.lock")).unwrap();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What this platform needs: what others would need may never have been fetched.
    let tree = cargo
        .args(["tree", "--offline", "--prefix=none", "--format={p}"])
        .current_dir(&made);
    let tree = tree.output().unwrap();
    assert!(tree.status.success(), "{}", said(&tree));
    let tree = String::from_utf8(tree.stdout).unwrap();
    for name in ["my-cloud", "bigfleet-provider-kit", "bigfleet-conformance"] {
        let named = |line: &str| line.starts_with(&format!("{name} v"));
        assert!(tree.lines().any(named), "{name}: {tree}");
    }
}

#[test]
fn what_cannot_be_written_is_refused_and_nothing_is() {
    let folder = Folder::new("provider-new-refused");
    for name in ["", "My-Cloud", "-x", "x-", "7up", "a/b", "../x", "a b"] {
        let output = new(&folder, &["--", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
    std::fs::create_dir(folder.file("there")).unwrap();
    let output = new(&folder, &["there"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("is there already; nothing was written"),
        "{}",
        said(&output)
    );
    let output = new(&folder, &["x", "--repository=/etc"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("/etc has no crates/provider-kit"),
        "{}",
        said(&output)
    );
    assert!(!folder.file("x").exists());
}
