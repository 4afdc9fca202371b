//! The built `tidy` against throw-away workspaces: a clean one passes, a planted breach is named.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const WORKSPACE: &str = r#"
[workspace]
resolver = "3"
members = ["crates/*"]

[workspace.lints.rust]
unsafe_code = "forbid"
"#;

/// A new workspace with a `model` and an `engine`; each has the dependency and the source given.
fn workspace(name: &str, model: (&str, &str), engine: (&str, &str)) -> io::Result<PathBuf> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if root.exists() {
        std::fs::remove_dir_all(&root)?;
    }
    std::fs::create_dir_all(&root)?;
    std::fs::write(root.join("Cargo.toml"), WORKSPACE)?;
    for (name, (dependency, source)) in [("model", model), ("engine", engine)] {
        let folder = root.join("crates").join(name);
        let manifest = format!(
            "[package]\nname = \"bigfleet-{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [lints]\nworkspace = true\n\n[dependencies]\n{dependency}\n"
        );
        std::fs::create_dir_all(folder.join("src"))?;
        std::fs::write(folder.join("Cargo.toml"), manifest)?;
        std::fs::write(folder.join("src/lib.rs"), source)?;
    }
    Ok(root)
}

const ON_MODEL: &str = r#"bigfleet-model = { path = "../model" }"#;
const ON_ENGINE: &str = r#"bigfleet-engine = { path = "../engine" }"#;

fn tidy(root: &Path) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("tidy")
        .arg("--root")
        .arg(root)
        .output()
}

#[test]
fn a_clean_workspace_passes() -> io::Result<()> {
    let root = workspace("clean", ("", "//! Words.\n"), (ON_MODEL, "//! Decides.\n"))?;
    let output = tidy(&root)?;
    assert!(output.status.success(), "{output:?}");
    Ok(())
}

#[test]
fn a_planted_clock_fails_and_names_its_lines() -> io::Result<()> {
    let clock = "//! Decides.\n\nuse std::time::Instant;\n\n/// Now.\npub fn now() -> Instant {\n    \
                 Instant::now()\n}\n";
    let root = workspace("clock", ("", "//! Words.\n"), (ON_MODEL, clock))?;
    let output = tidy(&root)?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    for line in [3, 6, 7] {
        let place = format!("crates/engine/src/lib.rs:{line}: [core-clock]");
        assert!(text.contains(&place), "{text}");
    }
    Ok(())
}

#[test]
fn a_planted_upward_arrow_fails_and_is_named() -> io::Result<()> {
    let root = workspace("arrow", (ON_ENGINE, "//! Words.\n"), ("", "//! Decides.\n"))?;
    let output = tidy(&root)?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("crates/model/Cargo.toml: [upward-arrow]"),
        "{text}"
    );
    Ok(())
}

#[test]
fn what_points_nowhere_fails_and_is_named() -> io::Result<()> {
    let cited = "//! Decides (O-1, ZZ-9; engine.md §12, engine.md §13).\n";
    let root = workspace("pages", ("", "//! Words.\n"), (ON_MODEL, cited))?;
    std::fs::create_dir_all(root.join("docs/spec"))?;
    std::fs::write(
        root.join("docs/spec/engine.md"),
        "## 12. Order\n- **O-1** So.\n",
    )?;
    std::fs::write(root.join("docs/commands.txt"), "bigfleet get --output\n")?;
    std::fs::write(
        root.join("README.md"),
        "Read `crates/engine/src/gone.rs`; run `bigfleet get --wide` or `cargo xtask tidy --fix`.\n",
    )?;
    let output = tidy(&root)?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    for problem in [
        "README.md:1: [stale-command] bigfleet get has no --wide",
        "README.md:1: [stale-command] cargo xtask tidy has no --fix",
        "README.md:1: [stale-path] there is no crates/engine/src/gone.rs",
        "crates/engine/src/lib.rs:1: [dangling-citation] ZZ-9 is defined nowhere in docs/spec/",
        "crates/engine/src/lib.rs:1: [dangling-citation] engine.md has no section 13",
        "tidy: 5 problem(s)",
    ] {
        assert!(text.contains(problem), "{problem}: {text}");
    }
    Ok(())
}
