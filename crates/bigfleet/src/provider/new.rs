//! `bigfleet provider new NAME`: a provider of one's own, to begin with.
//!
//! ```text
//! crates/provider-template, which is built, tested and certified here ── another name, path dependencies ──▶ NAME/
//! ```

use crate::failure::Failure;
use clap::Args as ClapArgs;
use std::path::{Path, PathBuf};

/// `bigfleet provider new`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// What it is called: lower-case letters, digits and dashes, a letter first. Its folder has the same name
    name: String,
    /// The folder to make it in
    #[arg(long, default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// The BigFleet repository its dependencies are taken from [default: the one around the current directory or this binary]
    #[arg(long, value_name = "DIR")]
    repository: Option<PathBuf>,
}

/// The files that are taken over, with another name.
const FILES: [(&str, &str); 6] = [
    (
        "src/main.rs",
        include_str!("../../../provider-template/src/main.rs"),
    ),
    (
        "src/backend.rs",
        include_str!("../../../provider-template/src/backend.rs"),
    ),
    (
        "src/offerings.rs",
        include_str!("../../../provider-template/src/offerings.rs"),
    ),
    (
        "src/substrate.rs",
        include_str!("../../../provider-template/src/substrate.rs"),
    ),
    (
        "tests/conformance.rs",
        include_str!("../../../provider-template/tests/conformance.rs"),
    ),
    (
        "README.md",
        include_str!("../../../provider-template/README.md"),
    ),
];
/// What building and trying it leaves in its folder.
const IGNORED: &str = "/target\n/state*\n/report\n";
const TEMPLATE: &str = "bigfleet-provider-template";
const TEMPLATE_NAME: &str = "const NAME: &str = \"template\";";

/// Writes it, and says what to type next.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let name = checked(&args.name)?;
    let repository = repository(args)?;
    let folder = args.folder.join(name);
    if folder.exists() {
        let there = folder.display();
        return Err(Failure::Input(format!(
            "{there} is there already; nothing was written"
        )));
    }
    let mut files = vec![
        ("Cargo.toml", manifest(name, &repository)),
        (".gitignore", IGNORED.to_owned()),
    ];
    files.extend(FILES.map(|(path, text)| (path, renamed(text, name))));
    for (path, text) in files {
        write(&folder.join(path), &text)?;
    }
    let there = folder.display();
    println!("{there} is a provider whose machines are folders. It works as it is:\n");
    println!("  cd {there}\n  cargo test\n  cargo run -- --addr 127.0.0.1:9000 --state state\n");
    println!("Then replace src/substrate.rs by what your machines are.");
    Ok(())
}

fn checked(name: &str) -> Result<&str, Failure> {
    let fits =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let first = name.starts_with(|letter: char| letter.is_ascii_lowercase());
    if first && name.len() <= 64 && name.chars().all(fits) && !name.ends_with('-') {
        return Ok(name);
    }
    Err(Failure::Input(format!(
        "{name:?} cannot be a provider's name: lower-case letters, digits and dashes, a letter first, at most 64"
    )))
}

/// A folder with the kit in it: the one that was named, or one around where we are, or around this binary.
fn repository(args: &Args) -> Result<PathBuf, Failure> {
    let has_kit = |folder: &Path| folder.join("crates/provider-kit/Cargo.toml").is_file();
    let whole = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if let Some(folder) = &args.repository {
        let there = folder.display();
        let refused =
            || Failure::Input(format!("--repository: {there} has no crates/provider-kit"));
        return has_kit(folder).then(|| whole(folder)).ok_or_else(refused);
    }
    let here = std::env::current_dir().ok();
    let binary = std::env::current_exe().ok();
    let around = [here, binary];
    let mut around = around.iter().flatten().flat_map(|path| path.ancestors());
    let found = around.find(|folder| has_kit(folder)).map(whole);
    found.ok_or_else(|| {
        Failure::Input(
            "the BigFleet repository is not around here: name it with --repository DIR".to_owned(),
        )
    })
}

fn renamed(text: &str, name: &str) -> String {
    let own = format!("const NAME: &str = \"{name}\";");
    text.replace(TEMPLATE_NAME, &own).replace(TEMPLATE, name)
}

/// By path, until the crates are published. A workspace of its own, wherever it is made.
fn manifest(name: &str, repository: &Path) -> String {
    let path = |of: &str| repository.join("crates").join(of).display().to_string();
    let (kit, conformance) = (path("provider-kit"), path("conformance"));
    format!(
        r#"[package]
name = "{name}"
version = "0.1.0"
edition = "2024"
publish = false

[dependencies]
bigfleet-provider-kit = {{ path = {kit:?}, features = ["flags"] }}
clap = {{ version = "4", features = ["derive"] }}
tokio = {{ version = "1", features = ["fs", "macros", "rt-multi-thread"] }}

[dev-dependencies]
bigfleet-conformance = {{ path = {conformance:?} }}

[workspace]
"#
    )
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(path, text));
    written.map_err(|why| Failure::Undone(format!("{}: {why}", path.display())))
}
