//! Arrows: who may depend on whom.
//!
//! Tests count too. A dev-dependency that points up would let a lower ring be written against a
//! higher one, and the day it moves into the crate proper nobody notices.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{FOR_TESTS, Outside, Ring, Row, SHIPPED_BESIDE, SIDEWAYS};
use super::{Problem, Rule};

/// The dependency graph of a workspace as far as the rules need it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Graph {
    pub(super) crates: Vec<Crate>,
    /// What each crate from outside pulls in, by package name.
    pub(super) outside: BTreeMap<String, BTreeSet<String>>,
}

/// A crate of ours.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Crate {
    /// The package name, `bigfleet-` prefix included.
    pub(super) package: String,
    /// The crate's folder, relative to the root, with forward slashes.
    pub(super) folder: String,
    /// Whether the manifest says `[lints] workspace = true`.
    pub(super) workspace_lints: bool,
    pub(super) dependencies: Vec<Dependency>,
}

/// An arrow as the manifest declares it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dependency {
    pub(super) package: String,
    pub(super) kind: ArrowKind,
    /// It is there only with a feature.
    pub(super) optional: bool,
    /// It is taken without any feature, so without what it has only with one.
    pub(super) bare: bool,
}

/// When the dependency is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrowKind {
    Normal,
    Build,
    Dev,
}

impl Crate {
    fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }

    fn shipped(&self) -> impl Iterator<Item = &str> {
        self.dependencies
            .iter()
            .filter(|d| d.kind != ArrowKind::Dev)
            .map(|d| d.package.as_str())
    }
}

/// The name a package has in the table.
pub(super) fn short(package: &str) -> &str {
    package.strip_prefix("bigfleet-").unwrap_or(package)
}

/// The row of a crate, if somebody has decided where it stands.
pub(super) fn row<'t>(table: &'t [Row], package: &str) -> Option<&'t Row> {
    table.iter().find(|row| row.name == short(package))
}

/// Every breach the dependency graph shows.
pub(super) fn problems(graph: &Graph, table: &[Row]) -> Vec<Problem> {
    let ours: BTreeMap<&str, &Crate> = graph
        .crates
        .iter()
        .map(|ours| (ours.package.as_str(), ours))
        .collect();
    let mut found = Vec::new();
    for this in &graph.crates {
        if !this.workspace_lints {
            let what = "the manifest must say `[lints] workspace = true`";
            found.push(Problem::new(this.manifest(), Rule::WorkspaceLints, what));
        }
        let Some(row) = row(table, &this.package) else {
            let what = format!("`{}` is not in the table of rings", this.package);
            found.push(Problem::new(this.manifest(), Rule::UnlistedCrate, what));
            continue;
        };
        found.extend(arrows(this, row, &ours, table));
        found.extend(kept_out(this, row, &ours));
        found.extend(outside(this, row, &ours, graph));
    }
    found
}

/// Direct arrows that point up, sideways, or at a crate beside the rings.
fn arrows(this: &Crate, from: &Row, ours: &BTreeMap<&str, &Crate>, table: &[Row]) -> Vec<Problem> {
    let mut found = Vec::new();
    for arrow in this
        .dependencies
        .iter()
        .filter(|arrow| ours.contains_key(arrow.package.as_str()))
    {
        let Some(to) = row(table, &arrow.package) else {
            continue;
        };
        if !allowed(from, to, arrow.kind) {
            let what = format!(
                "`{}` ({:?}) may not depend on `{}` ({:?}), not even as a {} dependency",
                from.name,
                from.ring,
                to.name,
                to.ring,
                match arrow.kind {
                    ArrowKind::Normal => "normal",
                    ArrowKind::Build => "build",
                    ArrowKind::Dev => "dev",
                }
            );
            found.push(Problem::new(this.manifest(), Rule::UpwardArrow, what));
        }
    }
    found
}

fn allowed(from: &Row, to: &Row, kind: ArrowKind) -> bool {
    let for_tests = FOR_TESTS.contains(&to.name);
    match (from.ring, to.ring) {
        (Ring::Beside, Ring::Beside) => for_tests,
        (_, Ring::Beside) => {
            let shipped = SHIPPED_BESIDE.contains(&(from.name, to.name));
            shipped || (for_tests && kind == ArrowKind::Dev)
        }
        (from_ring, to_ring) if from_ring == to_ring => SIDEWAYS.contains(&(from.name, to.name)),
        (from_ring, to_ring) => to_ring < from_ring,
    }
}

/// Crates of ours this one keeps out: directly in any kind, or through what it ships.
fn kept_out(this: &Crate, row: &Row, ours: &BTreeMap<&str, &Crate>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (reached, through) in reach_ours(this, ours) {
        let name = short(&reached);
        let hit = row.keeps_out.iter().any(|pattern| matches(pattern, name));
        // What only tests see is judged by the arrows: a test may use the fixtures.
        if hit && through != Through::Test(true) {
            let what = match through {
                Through::Direct | Through::Test(_) => {
                    format!("`{}` keeps out `{name}`", row.name)
                }
                Through::Crate(via) => {
                    format!(
                        "`{}` keeps out `{name}`, here reached through `{via}`",
                        row.name
                    )
                }
            };
            found.push(Problem::new(this.manifest(), Rule::KeptOut, what));
        }
    }
    found
}

#[derive(Clone, Debug, PartialEq)]
enum Through {
    Direct,
    /// Seen by tests only; true when it is one of the crates made for tests.
    Test(bool),
    Crate(String),
}

/// Our crates reachable from `this`: direct ones of every kind, then what the shipped ones ship.
fn reach_ours(this: &Crate, ours: &BTreeMap<&str, &Crate>) -> Vec<(String, Through)> {
    let mut reached: BTreeMap<String, Through> = BTreeMap::new();
    let mut open: Vec<(&str, Through)> = Vec::new();
    for arrow in &this.dependencies {
        let through = match arrow.kind {
            ArrowKind::Normal | ArrowKind::Build => Through::Direct,
            ArrowKind::Dev => Through::Test(FOR_TESTS.contains(&short(&arrow.package))),
        };
        open.push((&arrow.package, through));
    }
    while let Some((package, through)) = open.pop() {
        let Some(next) = ours.get(package) else {
            continue;
        };
        let seen = reached.get(package);
        let shipped = !matches!(through, Through::Test(_));
        let known = seen.is_some_and(|seen| !shipped || !matches!(seen, Through::Test(_)));
        if known {
            continue;
        }
        if shipped {
            open.extend(
                next.shipped()
                    .map(|p| (p, Through::Crate(short(package).to_owned()))),
            );
        }
        reached.insert(package.to_owned(), through);
    }
    reached.into_iter().collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// Crates of others this one keeps out, however deep.
fn outside(this: &Crate, row: &Row, ours: &BTreeMap<&str, &Crate>, graph: &Graph) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut report = |what: String| {
        found.push(Problem::new(this.manifest(), Rule::ForbiddenOutside, what));
    };
    match row.outside {
        Outside::StdOnly => {
            for package in this.shipped().filter(|package| !ours.contains_key(package)) {
                report(format!(
                    "`{}` uses the standard library only, not `{package}`",
                    row.name
                ));
            }
        }
        Outside::Without(forbidden) => {
            for arrow in this
                .dependencies
                .iter()
                .filter(|arrow| arrow.kind == ArrowKind::Dev)
            {
                if forbidden.contains(&arrow.package.as_str()) {
                    report(format!(
                        "`{}` keeps out `{}`, in tests too",
                        row.name, arrow.package
                    ));
                }
            }
            for (package, via) in reach_outside(this, ours, graph) {
                if forbidden.contains(&package.as_str()) {
                    report(match via {
                        None => format!("`{}` keeps out `{package}`", row.name),
                        Some(via) => {
                            format!(
                                "`{}` keeps out `{package}`, here reached through `{via}`",
                                row.name
                            )
                        }
                    });
                }
            }
        }
    }
    found
}

/// Everything shipped with `this`, ours left out, with the crate that brought it in.
fn reach_outside(
    this: &Crate,
    ours: &BTreeMap<&str, &Crate>,
    graph: &Graph,
) -> BTreeMap<String, Option<String>> {
    let mut reached: BTreeMap<String, Option<String>> = BTreeMap::new();
    // What a build script uses runs on the builder's machine, so only normal dependencies travel; and
    // from a crate taken without features only what it has without them.
    let normal = |of: &Crate, bare: bool| -> Vec<(String, bool)> {
        let arrows = of.dependencies.iter();
        let arrows =
            arrows.filter(|arrow| arrow.kind == ArrowKind::Normal && !(bare && arrow.optional));
        arrows
            .map(|arrow| (arrow.package.clone(), arrow.bare))
            .collect()
    };
    let mut seen: BTreeSet<(String, bool)> = BTreeSet::new();
    let mut open: Vec<((String, bool), Option<String>)> = normal(this, false)
        .into_iter()
        .map(|package| (package, None))
        .collect();
    while let Some(((package, bare), via)) = open.pop() {
        if !seen.insert((package.clone(), bare)) {
            continue;
        }
        let next: Vec<(String, bool)> = match ours.get(package.as_str()) {
            Some(next) => normal(next, bare),
            None => {
                reached.insert(package.clone(), via);
                graph
                    .outside
                    .get(&package)
                    .into_iter()
                    .flatten()
                    .map(|next| (next.clone(), false))
                    .collect()
            }
        };
        open.extend(next.into_iter().map(|next| (next, Some(package.clone()))));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::super::table::TABLE;
    use super::*;

    /// A workspace in text: `name -> dep, dev:dep, build:dep, optional:dep, bare:dep`; names of ours
    /// carry no prefix.
    fn graph(text: &str) -> Graph {
        let lines: Vec<(&str, &str)> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| line.split_once("->").unwrap_or((line, "")))
            .collect();
        let ours: Vec<&str> = lines.iter().map(|(name, _)| name.trim()).collect();
        let package = |name: &str| {
            let prefixed = ours.contains(&name) && name != "bigfleet" && name != "xtask";
            if prefixed {
                format!("bigfleet-{name}")
            } else {
                name.to_owned()
            }
        };
        let dependency = |text: &str| match text.split_once(':') {
            Some((how, name)) => Dependency {
                package: package(name),
                kind: match how {
                    "dev" => ArrowKind::Dev,
                    "build" => ArrowKind::Build,
                    _ => ArrowKind::Normal,
                },
                optional: how == "optional",
                bare: how == "bare",
            },
            None => Dependency {
                package: package(text),
                kind: ArrowKind::Normal,
                optional: false,
                bare: false,
            },
        };
        let crates = lines.iter().map(|(name, arrows)| Crate {
            package: package(name.trim()),
            folder: format!("crates/{}", name.trim()),
            workspace_lints: true,
            dependencies: arrows
                .split(',')
                .map(str::trim)
                .filter(|arrow| !arrow.is_empty())
                .map(dependency)
                .collect(),
        });
        Graph {
            crates: crates.collect(),
            outside: BTreeMap::new(),
        }
    }

    fn check(graph: &Graph, expected: &[&str]) {
        let found: Vec<String> = problems(graph, TABLE)
            .iter()
            .map(Problem::to_string)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_workspace_as_it_is_meant_to_be_has_no_problems() {
        check(
            &graph(
                "model -> dev:proptest, dev:num-bigint, dev:testkit
                 engine -> model, dev:testkit, dev:oracle, dev:workloads, dev:proptest
                 fleet-file -> model, serde_json, thiserror
                 wire -> model, tonic, build:tonic-prost-build
                 provider-kit -> model, wire, tokio
                 provider-fake -> provider-kit, model, wire
                 testkit -> model, fleet-file
                 oracle -> model, dev:testkit
                 workloads -> model, testkit
                 bigfleet -> engine, fleet-file, oracle, workloads, provider-fake, dev:testkit
                 xtask -> clap",
            ),
            &[],
        );
    }

    /// A simulator uses the plain value of a crate that can also be a server.
    #[test]
    fn what_a_crate_has_only_with_a_feature_is_not_reached_without_one() {
        let kit = "provider-kit -> model, optional:tokio\n model\n";
        check(&graph(&format!("{kit} sim -> bare:provider-kit")), &[]);
        let reached = "crates/sim/Cargo.toml: [forbidden-dependency] `sim` keeps out `tokio`, here \
                       reached through `bigfleet-provider-kit`";
        check(&graph(&format!("{kit} sim -> provider-kit")), &[reached]);
    }

    #[test]
    fn a_planted_upward_arrow_is_named() {
        check(
            &graph("model\n engine -> model, wire\n wire -> model"),
            &[
                "crates/engine/Cargo.toml: [upward-arrow] `engine` (Decision) may not depend on \
               `wire` (Edge), not even as a normal dependency",
            ],
        );
    }

    #[test]
    fn an_upward_arrow_in_tests_or_build_scripts_counts() {
        for kind in ["dev", "build"] {
            check(
                &graph(&format!("model\n engine -> model, {kind}:shard\n shard")),
                &[&format!(
                    "crates/engine/Cargo.toml: [upward-arrow] `engine` (Decision) may not depend \
                     on `shard` (Runtime), not even as a {kind} dependency"
                )],
            );
        }
    }

    #[test]
    fn a_sideways_arrow_needs_to_be_drawn() {
        check(&graph("provider-kit\n provider-fake -> provider-kit"), &[]);
        check(
            &graph("net -> wire\n wire"),
            &[
                "crates/net/Cargo.toml: [upward-arrow] `net` (Edge) may not depend on `wire` \
               (Edge), not even as a normal dependency",
            ],
        );
    }

    #[test]
    fn crates_beside_are_for_tests_only() {
        let found = problems(&graph("testkit\n wire -> testkit"), TABLE);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, Rule::UpwardArrow);
        let found = problems(&graph("sim\n shard-core -> dev:sim"), TABLE);
        assert_eq!(found.len(), 1, "sim is imported by nobody, not even tests");
    }

    #[test]
    fn a_planted_unlisted_crate_is_named() {
        check(
            &graph("surprise"),
            &[
                "crates/surprise/Cargo.toml: [unlisted-crate] `bigfleet-surprise` is not in the \
               table of rings",
            ],
        );
    }

    #[test]
    fn a_planted_forbidden_dependency_is_named() {
        check(
            &graph("model -> serde"),
            &[
                "crates/model/Cargo.toml: [forbidden-dependency] `model` uses the standard library \
               only, not `serde`",
            ],
        );
        check(
            &graph("shard-core -> tokio"),
            &[
                "crates/shard-core/Cargo.toml: [forbidden-dependency] `shard-core` keeps out \
               `tokio`",
            ],
        );
        check(
            &graph("shard-core -> dev:tokio"),
            &[
                "crates/shard-core/Cargo.toml: [forbidden-dependency] `shard-core` keeps out \
               `tokio`, in tests too",
            ],
        );
    }

    #[test]
    fn a_forbidden_dependency_is_found_however_deep() {
        let mut deep = graph("shard-core -> harmless");
        deep.outside
            .insert("harmless".to_owned(), BTreeSet::from(["tokio".to_owned()]));
        check(
            &deep,
            &[
                "crates/shard-core/Cargo.toml: [forbidden-dependency] `shard-core` keeps out \
               `tokio`, here reached through `harmless`",
            ],
        );
    }

    #[test]
    fn a_crate_kept_out_is_found_through_another() {
        check(
            &graph("engine\n shard-core -> engine\n provider-kit -> shard-core"),
            &[
                "crates/provider-kit/Cargo.toml: [kept-out] `provider-kit` keeps out `engine`, \
                 here reached through `shard-core`",
                "crates/provider-kit/Cargo.toml: [kept-out] `provider-kit` keeps out `shard-core`",
            ],
        );
    }

    #[test]
    fn a_crate_kept_out_of_tests_is_found_too() {
        check(
            &graph("engine\n wire -> dev:engine"),
            &["crates/wire/Cargo.toml: [kept-out] `wire` keeps out `engine`"],
        );
    }

    #[test]
    fn a_manifest_without_the_workspace_lints_is_named() {
        let mut lax = graph("model");
        lax.crates[0].workspace_lints = false;
        check(
            &lax,
            &[
                "crates/model/Cargo.toml: [workspace-lints] the manifest must say `[lints] \
               workspace = true`",
            ],
        );
    }

    #[test]
    fn the_table_names_each_crate_once() {
        let mut names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
