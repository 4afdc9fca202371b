//! Account: what is told about a Pod: its hops, where it waits, and what would change that.

use bigfleet_model::Time;

/// A stage on the way from a Pod to the Node it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HopName {
    /// The Pod itself, until its scheduler has looked for a Node.
    Pod,
    /// Its CapacityRequest.
    Request,
    /// The Need: what the cluster asks the shard for, of which the request is a part.
    Need,
    /// A machine on its way, as an UpcomingNode shows it.
    Machine,
    /// The Node.
    Node,
}

impl HopName {
    /// Every hop, in order.
    pub const ALL: [Self; 5] = [
        Self::Pod,
        Self::Request,
        Self::Need,
        Self::Machine,
        Self::Node,
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Request => "request",
            Self::Need => "need",
            Self::Machine => "machine",
            Self::Node => "node",
        }
    }
}

/// Where a hop stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopState {
    /// Behind the Pod.
    Done,
    /// The Pod waits here.
    Here,
    /// Before the Pod.
    Later,
    /// Not on the way of this Pod.
    NotNeeded,
    /// It could not be read.
    Unknown,
}

impl HopState {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Here => "here",
            Self::Later => "later",
            Self::NotNeeded => "not needed",
            Self::Unknown => "unknown",
        }
    }
}

/// One hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Which.
    pub name: HopName,
    /// Where it stands.
    pub state: HopState,
    /// The object, as `kind/name`; empty where there is none.
    pub object: String,
    /// Since when it is so, where that is known.
    pub since: Option<Time>,
    /// In a sentence; may be empty.
    pub sentence: String,
}

impl Hop {
    pub(super) fn new(name: HopName, state: HopState, sentence: impl Into<String>) -> Self {
        Self {
            name,
            state,
            object: String::new(),
            since: None,
            sentence: sentence.into(),
        }
    }

    pub(super) fn of(self, object: impl Into<String>, since: Option<Time>) -> Self {
        Self {
            object: object.into(),
            since,
            ..self
        }
    }
}

/// How the Pod is, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Runs,
    /// It has ended, or is being deleted.
    Over,
    /// It waits, and something is on its way to it or is done about it by itself.
    Coming,
    /// It waits, and nothing is on its way to it.
    Stuck,
    /// It waits, and BigFleet does nothing about Pods like this one.
    NotManaged,
    /// What would tell could not be read.
    Unknown,
}

impl Verdict {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Over => "over",
            Self::Coming => "coming",
            Self::Stuck => "stuck",
            Self::NotManaged => "not-managed",
            Self::Unknown => "unknown",
        }
    }

    /// Whether nobody has to do anything.
    pub fn is_well(self) -> bool {
        match self {
            Self::Runs | Self::Over | Self::Coming => true,
            Self::Stuck | Self::NotManaged | Self::Unknown => false,
        }
    }
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// How the Pod is.
    pub verdict: Verdict,
    /// Where it waits; `None` if it does not.
    pub waits_at: Option<HopName>,
    /// Why, in a sentence.
    pub sentence: String,
    /// What would change it.
    pub changes: Vec<String>,
    /// All hops, in order.
    pub hops: Vec<Hop>,
}

/// Why a Pod goes no further than a hop.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) verdict: Verdict,
    pub(super) sentence: String,
    pub(super) changes: Vec<String>,
}

impl Stop {
    pub(super) fn new(verdict: Verdict, sentence: impl Into<String>) -> Self {
        Self {
            verdict,
            sentence: sentence.into(),
            changes: Vec::new(),
        }
    }

    pub(super) fn changed_by(mut self, change: impl Into<String>) -> Self {
        self.changes.push(change.into());
        self
    }
}

/// A hop, and why the Pod goes no further, if it does not.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) hop: Hop,
    pub(super) stop: Option<Stop>,
}

impl Step {
    pub(super) fn passed(hop: Hop) -> Self {
        Self { hop, stop: None }
    }

    pub(super) fn stopped(hop: Hop, stop: Stop) -> Self {
        let stop = Some(stop);
        Self { hop, stop }
    }
}
