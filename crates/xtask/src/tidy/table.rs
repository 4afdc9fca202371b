//! The one table: every crate, its ring, and what it keeps out.
//!
//! ```text
//! binaries     bigfleet ─▶ up · ctl · conformance ◀─ provider-template
//! runtimes     shard-link ─▶ shard · coordinator · operator · dashboard · provider-fake, provider-exec ─▶ provider-kit
//! edges        wire · net · k8s · fleet-file
//! cores        shard-core · coordinator-core · operator-core
//! decision     engine
//! vocabulary   model · seeded
//! beside       sim · testkit · scripted-operator · scripted-shard · shard-world · kube-world · hollow-kubelet · bench · engine-fuzz · xtask · oracle · workloads
//! ```
//!
//! An arrow may only point down this page. A new crate is one new row; that row is where somebody
//! decides what the crate must never be able to do.

use super::Rule;

/// Where a crate stands. The order is the order of the page, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ring {
    Vocabulary,
    Decision,
    Core,
    Edge,
    Runtime,
    Binary,
    /// Outside of the rings: may look at everything, is looked at by nobody but tests.
    Beside,
}

/// What a crate may take from outside of this repository, for what it ships (tests are freer).
#[derive(Clone, Copy, Debug)]
pub(super) enum Outside {
    /// The standard library and nothing else.
    StdOnly,
    /// Anything but these, however far down the graph they sit.
    Without(&'static [&'static str]),
}

/// One crate's row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The package name without the `bigfleet-` prefix.
    pub(super) name: &'static str,
    pub(super) ring: Ring,
    /// Crates of ours it may not reach, even through another; a trailing `*` stands for any ending.
    pub(super) keeps_out: &'static [&'static str],
    pub(super) outside: Outside,
    /// What its `src/` may not name.
    pub(super) bans: &'static [Rule],
}

/// Arrows within a ring that are drawn on the page.
pub(super) const SIDEWAYS: &[(&str, &str)] = &[
    ("shard-link", "shard"),
    ("provider-fake", "provider-kit"),
    ("provider-exec", "provider-kit"),
    ("bigfleet", "up"),
    ("bigfleet", "ctl"),
    ("bigfleet", "conformance"),
    ("provider-template", "conformance"),
];

/// Crates beside the rings that tests everywhere, and other crates beside, may import.
pub(super) const FOR_TESTS: &[&str] = &[
    "testkit",
    "oracle",
    "workloads",
    "engine-fuzz",
    "scripted-operator",
    "scripted-shard",
    "shard-world",
    "kube-world",
    "hollow-kubelet",
];

/// Crates beside the rings that a crate in the rings ships with, and why: `bigfleet decide
/// --engine oracle`, `bigfleet bench`, `bigfleet sim` and `bigfleet up --kubernetes` are verbs of the binary, and
/// `bigfleet up` plays the workloads everything is measured with, through scripted operators.
pub(super) const SHIPPED_BESIDE: &[(&str, &str)] = &[
    ("bigfleet", "oracle"),
    ("bigfleet", "workloads"),
    ("bigfleet", "bench"),
    ("bigfleet", "sim"),
    ("bigfleet", "kube-world"),
    ("bigfleet", "hollow-kubelet"),
    ("up", "workloads"),
    ("up", "scripted-operator"),
];

/// A value that decides must see only its arguments.
const PURE: &[Rule] = &[
    Rule::Clock,
    Rule::Thread,
    Rule::Random,
    Rule::HashOrder,
    Rule::World,
    Rule::Print,
];

/// Whatever owns a clock, a socket, a thread pool or a source of randomness.
const HANDS: &[&str] = &[
    "async-std",
    "axum",
    "chrono",
    "crossbeam",
    "fastrand",
    "futures-executor",
    "getrandom",
    "hyper",
    "k8s-openapi",
    "kube",
    "mio",
    "openraft",
    "prost",
    "rand",
    "rayon",
    "redb",
    "rustls",
    "smol",
    "time",
    "tokio",
    "tonic",
];

const CORES: &[&str] = &["engine", "shard-core", "coordinator-core", "operator-core"];

/// Every crate there is or will be.
pub(super) const TABLE: &[Row] = &[
    Row {
        name: "model",
        ring: Ring::Vocabulary,
        keeps_out: &["*"],
        outside: Outside::StdOnly,
        bans: PURE,
    },
    Row {
        name: "seeded",
        ring: Ring::Vocabulary,
        keeps_out: &["*"],
        outside: Outside::StdOnly,
        bans: PURE,
    },
    Row {
        name: "engine",
        ring: Ring::Decision,
        keeps_out: &[],
        outside: Outside::StdOnly,
        bans: PURE,
    },
    Row {
        name: "shard-core",
        ring: Ring::Core,
        keeps_out: &["wire", "coordinator*"],
        outside: Outside::Without(HANDS),
        bans: PURE,
    },
    Row {
        name: "coordinator-core",
        ring: Ring::Core,
        keeps_out: &["wire", "engine", "shard*"],
        outside: Outside::Without(HANDS),
        bans: PURE,
    },
    Row {
        name: "operator-core",
        ring: Ring::Core,
        keeps_out: &["wire", "engine", "shard*", "coordinator*"],
        outside: Outside::Without(HANDS),
        bans: PURE,
    },
    Row {
        name: "wire",
        ring: Ring::Edge,
        keeps_out: CORES,
        outside: Outside::Without(&["kube", "openraft", "redb"]),
        bans: &[],
    },
    Row {
        name: "net",
        ring: Ring::Edge,
        keeps_out: CORES,
        outside: Outside::Without(&["kube", "openraft", "redb"]),
        bans: &[],
    },
    Row {
        name: "k8s",
        ring: Ring::Edge,
        keeps_out: CORES,
        outside: Outside::Without(&["openraft", "redb"]),
        bans: &[],
    },
    Row {
        name: "fleet-file",
        ring: Ring::Edge,
        keeps_out: CORES,
        outside: Outside::Without(HANDS),
        bans: &[Rule::Clock, Rule::Thread, Rule::Random, Rule::HashOrder],
    },
    Row {
        name: "shard",
        ring: Ring::Runtime,
        keeps_out: &["k8s", "shard-link", "coordinator*", "operator*"],
        outside: Outside::Without(&["openraft", "kube"]),
        bans: &[],
    },
    Row {
        name: "shard-link",
        ring: Ring::Runtime,
        keeps_out: &["coordinator", "k8s", "operator*"],
        outside: Outside::Without(&["openraft", "kube"]),
        bans: &[],
    },
    Row {
        name: "coordinator",
        ring: Ring::Runtime,
        keeps_out: &["engine", "shard*", "k8s", "operator*"],
        outside: Outside::Without(&["kube"]),
        bans: &[],
    },
    Row {
        name: "operator",
        ring: Ring::Runtime,
        keeps_out: &["engine", "shard*", "coordinator*"],
        outside: Outside::Without(&["openraft", "redb"]),
        bans: &[],
    },
    Row {
        name: "provider-kit",
        ring: Ring::Runtime,
        keeps_out: &["engine", "shard*", "coordinator*", "operator*", "k8s"],
        outside: Outside::Without(&["openraft", "kube"]),
        bans: &[Rule::Clock],
    },
    Row {
        name: "provider-fake",
        ring: Ring::Runtime,
        keeps_out: &["engine", "shard*", "coordinator*", "operator*", "k8s"],
        outside: Outside::Without(&["openraft", "kube"]),
        bans: &[Rule::Clock],
    },
    Row {
        name: "provider-exec",
        ring: Ring::Runtime,
        keeps_out: &["engine", "shard*", "coordinator*", "operator*", "k8s"],
        outside: Outside::Without(&["openraft", "kube"]),
        bans: &[],
    },
    Row {
        name: "dashboard",
        ring: Ring::Runtime,
        keeps_out: CORES,
        outside: Outside::Without(&["openraft", "redb"]),
        bans: &[],
    },
    Row {
        name: "ctl",
        ring: Ring::Binary,
        keeps_out: CORES,
        outside: Outside::Without(&["openraft", "redb"]),
        bans: &[],
    },
    Row {
        name: "up",
        ring: Ring::Binary,
        keeps_out: &["coordinator*", "operator*", "k8s", "ctl"],
        outside: Outside::Without(&["openraft", "kube"]),
        bans: &[],
    },
    Row {
        name: "conformance",
        ring: Ring::Binary,
        keeps_out: &[
            "provider-kit",
            "provider-fake",
            "provider-exec",
            "engine",
            "shard*",
            "coordinator*",
            "operator*",
        ],
        outside: Outside::Without(&["openraft", "redb", "kube"]),
        bans: &[],
    },
    Row {
        name: "provider-template",
        ring: Ring::Binary,
        keeps_out: &["engine", "shard*", "coordinator*", "operator*", "k8s"],
        outside: Outside::Without(&["openraft", "kube"]),
        bans: &[],
    },
    Row {
        name: "bigfleet",
        ring: Ring::Binary,
        keeps_out: &[],
        outside: Outside::Without(&[]),
        bans: &[],
    },
    Row {
        name: "oracle",
        ring: Ring::Beside,
        keeps_out: &[
            "engine",
            "shard*",
            "coordinator*",
            "operator*",
            "fleet-file",
            "workloads",
        ],
        outside: Outside::StdOnly,
        bans: PURE,
    },
    Row {
        name: "workloads",
        ring: Ring::Beside,
        keeps_out: &[],
        outside: Outside::Without(HANDS),
        bans: &[Rule::Clock, Rule::Thread, Rule::HashOrder],
    },
    Row {
        name: "sim",
        ring: Ring::Beside,
        keeps_out: &["shard", "shard-link", "coordinator", "operator"],
        outside: Outside::Without(&["tokio", "openraft", "kube", "rayon"]),
        bans: &[Rule::Clock, Rule::Thread, Rule::HashOrder],
    },
    Row {
        name: "testkit",
        ring: Ring::Beside,
        keeps_out: &[],
        outside: Outside::Without(&["tokio", "openraft", "kube"]),
        bans: &[Rule::Clock, Rule::Thread, Rule::HashOrder],
    },
    Row {
        name: "scripted-operator",
        ring: Ring::Beside,
        keeps_out: &["engine", "shard*", "coordinator*", "operator*"],
        outside: Outside::Without(&["openraft", "kube"]),
        bans: &[],
    },
    Row {
        name: "scripted-shard",
        ring: Ring::Beside,
        keeps_out: &["engine", "shard*", "coordinator*", "operator*"],
        outside: Outside::Without(&["openraft", "kube"]),
        bans: &[],
    },
    Row {
        name: "shard-world",
        ring: Ring::Beside,
        keeps_out: &["shard", "shard-link", "coordinator*", "operator*"],
        outside: Outside::StdOnly,
        bans: &[Rule::Clock, Rule::Thread, Rule::HashOrder],
    },
    Row {
        name: "kube-world",
        ring: Ring::Beside,
        keeps_out: &["*"],
        outside: Outside::Without(&["tokio", "openraft", "kube"]),
        bans: &[],
    },
    Row {
        name: "hollow-kubelet",
        ring: Ring::Beside,
        keeps_out: &["engine", "shard*", "coordinator*", "operator*"],
        outside: Outside::Without(&["openraft", "redb"]),
        bans: &[],
    },
    Row {
        name: "bench",
        ring: Ring::Beside,
        keeps_out: &["provider-*", "coordinator*", "operator*"],
        outside: Outside::Without(&["openraft", "kube"]),
        bans: &[],
    },
    Row {
        name: "engine-fuzz",
        ring: Ring::Beside,
        keeps_out: &["shard", "shard-link", "coordinator", "operator"],
        outside: Outside::Without(&["tokio", "openraft", "kube", "rayon"]),
        bans: &[Rule::Thread, Rule::HashOrder],
    },
    Row {
        name: "xtask",
        ring: Ring::Beside,
        keeps_out: &["*"],
        outside: Outside::Without(&["tokio", "openraft", "kube"]),
        bans: &[],
    },
];

/// Examples of `docs/spec/` whose part is not built yet, each with the reason. An entry that is no
/// longer needed is itself a problem, so this list can only be as long as it must be.
pub(super) const EXAMPLES_NOT_BUILT: &[(&str, &str)] = &[];
