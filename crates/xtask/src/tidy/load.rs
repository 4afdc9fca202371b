//! Loading: the one part of tidy that touches the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use super::graph::{ArrowKind, Crate, Dependency, Graph};
use super::{File, Repo};
use crate::steps::{Failed, answer, cargo, git_files};

/// The repository at `root` as a value.
pub(super) fn load(root: &Path) -> Result<Repo, Failed> {
    let root = root.canonicalize().map_err(|source| read(root, source))?;
    let files = files(&root)?;
    let graph = graph(&root, &files)?;
    Ok(Repo { graph, files })
}

fn read(path: &Path, source: std::io::Error) -> Failed {
    Failed::Read {
        path: path.to_path_buf(),
        source,
    }
}

fn graph(root: &Path, files: &[File]) -> Result<Graph, Failed> {
    let mut command = MetadataCommand::new();
    command.cargo_path(cargo()).current_dir(root);
    let mut options = Vec::new();
    // Only this machine's dependencies are sure to be downloaded.
    if let Some(host) = host()? {
        options.extend(["--filter-platform".to_owned(), host]);
    }
    if root.join("Cargo.lock").exists() {
        options.push("--locked".to_owned());
    }
    command.other_options(options);
    let metadata = command.exec()?;
    let crates = metadata.workspace_packages().into_iter();
    let mut crates: Vec<Crate> = crates.map(|package| ours(package, root, files)).collect();
    crates.sort_by(|a, b| a.package.cmp(&b.package));
    Ok(Graph {
        crates,
        outside: outside(&metadata),
    })
}

fn host() -> Result<Option<String>, Failed> {
    let version = answer(Command::new("rustc").arg("-vV"))?;
    let version = String::from_utf8_lossy(&version).into_owned();
    Ok(version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned))
}

fn ours(package: &Package, root: &Path, files: &[File]) -> Crate {
    let folder = package
        .manifest_path
        .parent()
        .map(|folder| folder.as_std_path());
    let folder = folder.map_or_else(String::new, |folder| relative(folder, root));
    let manifest = format!("{folder}/Cargo.toml");
    let manifest = files.iter().find(|file| file.path == manifest);
    let dependencies = package.dependencies.iter().map(|dependency| Dependency {
        package: dependency.name.clone(),
        kind: match dependency.kind {
            DependencyKind::Build => ArrowKind::Build,
            DependencyKind::Development => ArrowKind::Dev,
            // A kind cargo invents later is judged as if it shipped.
            _ => ArrowKind::Normal,
        },
        optional: dependency.optional,
        bare: !dependency.uses_default_features && dependency.features.is_empty(),
    });
    Crate {
        package: package.name.to_string(),
        folder,
        workspace_lints: manifest.is_some_and(|file| takes_workspace_lints(&file.text)),
        dependencies: dependencies.collect(),
    }
}

/// Whether a manifest says `[lints] workspace = true`, in either spelling.
fn takes_workspace_lints(manifest: &str) -> bool {
    let mut section = "";
    for line in manifest
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
    {
        if line.starts_with('[') {
            section = line;
        }
        let setting: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        match (section, setting.as_str()) {
            ("[lints]", "workspace=true") | ("", "lints.workspace=true") => return true,
            _ => {}
        }
    }
    false
}

/// What each crate from outside ships with, by name; versions of one crate count as one.
fn outside(metadata: &Metadata) -> BTreeMap<String, BTreeSet<String>> {
    let names: BTreeMap<_, _> = metadata
        .packages
        .iter()
        .map(|package| (&package.id, package.name.to_string()))
        .collect();
    let mut outside: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in metadata.resolve.iter().flat_map(|resolve| &resolve.nodes) {
        if metadata.workspace_members.contains(&node.id) {
            continue;
        }
        let Some(name) = names.get(&node.id) else {
            continue;
        };
        let entry = outside.entry(name.clone()).or_default();
        for dependency in &node.deps {
            let ships = dependency
                .dep_kinds
                .iter()
                .any(|k| k.kind == DependencyKind::Normal);
            entry.extend(names.get(&dependency.pkg).filter(|_| ships).cloned());
        }
    }
    outside
}

/// Every text file git knows or would add; outside of git, every text file but build output.
fn files(root: &Path) -> Result<Vec<File>, Failed> {
    let mut paths = if is_git_root(root) {
        git_files(root)?
    } else {
        walked(root)?
    };
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let full = root.join(&path);
        // Links are read at their target; a file deleted but still listed is no file.
        if !full.is_file() {
            continue;
        }
        let bytes = std::fs::read(&full).map_err(|source| read(&full, source))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File { path, text });
        }
    }
    Ok(files)
}

fn is_git_root(root: &Path) -> bool {
    let top = answer(
        Command::new("git")
            .args(["rev-parse", "--show-toplevel"])
            .current_dir(root),
    );
    let top = top
        .ok()
        .map(|top| String::from_utf8_lossy(&top).trim().to_owned());
    top.and_then(|top| Path::new(&top).canonicalize().ok())
        .is_some_and(|top| top == root)
}

fn walked(root: &Path) -> Result<Vec<String>, Failed> {
    let mut paths = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|source| read(&folder, source))? {
            let path = entry.map_err(|source| read(&folder, source))?.path();
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            match name.as_deref() {
                Some("target" | ".git") | None => {}
                Some(_) if path.is_dir() => open.push(path),
                Some(_) => paths.push(relative(&path, root)),
            }
        }
    }
    Ok(paths)
}

fn relative(path: &Path, root: &Path) -> String {
    let inside = path.strip_prefix(root).unwrap_or(path);
    inside
        .components()
        .map(|c| c.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_lints_are_seen_in_either_spelling() {
        assert!(takes_workspace_lints(
            "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"
        ));
        assert!(takes_workspace_lints("lints.workspace = true\n[package]\n"));
        assert!(!takes_workspace_lints("[dependencies]\nworkspace = true\n"));
        assert!(!takes_workspace_lints("[lints]\n# workspace = true\n"));
        assert!(!takes_workspace_lints("[lints]\nworkspace = false\n"));
    }
}
