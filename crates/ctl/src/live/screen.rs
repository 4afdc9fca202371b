//! Screen: everything the live view shows, as one value.
//!
//! What the shard said is in the overview; what the person looks at is in the focus. Updates change the
//! one, keys the other, and after either the cursor is put back inside its list.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::overview::ShardOverview;
use super::poll::PollUpdate;
use crate::record::{ActionRecord, ClusterRecord, NeedRecord};
use crate::text::printable;

/// Lines of the caller that are kept.
const MOST_NOTES: usize = 50;

/// The live view as a value.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    pub(crate) target: String,
    pub(crate) colour: bool,
    pub(crate) pause_for: Duration,
    /// Our own clock, to say since when the shard has not answered.
    pub(crate) clock: i64,
    pub(crate) connection: Connection,
    pub(crate) overview: ShardOverview,
    pub(crate) focus: Focus,
    pub(crate) notes: VecDeque<String>,
}

/// Whether the shard answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// It has not answered yet.
    Waiting,
    /// It answers.
    Live,
    /// It stopped answering; the screen shows what it said last.
    Lost {
        /// When it last answered, by our clock; `None` if it never has.
        since: Option<i64>,
        /// What the last attempt failed with.
        why: String,
    },
}

/// What the person looks at and types.
#[derive(Clone, Debug, Default)]
pub(crate) struct Focus {
    pub(crate) pane: Pane,
    cursors: [usize; 3],
    pub(crate) filter: String,
    pub(crate) mode: InputMode,
    /// How far the wide column of every list is scrolled to the right.
    pub(crate) shift: usize,
    /// What came of the last request, until the next key.
    pub(crate) said: String,
    last_heard: Option<i64>,
}

/// The lists one can move in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    /// Clusters.
    Clusters,
    /// Needs.
    #[default]
    Needs,
    /// Decisions.
    Decisions,
}

/// What the next key means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum InputMode {
    /// Moving about.
    #[default]
    Browse,
    /// Typing a filter.
    Filter,
    /// Typing a command, as in `:clusters`.
    Command(String),
    /// Asked whether to pause everything.
    ConfirmPause,
    /// Reading what the keys do.
    Help,
    /// Reading a page that lies over the lists.
    Page(TextPage),
}

/// A page of text that covers the lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextPage {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    pub(crate) scroll: usize,
}

impl Screen {
    /// Before anything was heard.
    pub(crate) fn new(target: &str, colour: bool, pause_for: Duration) -> Self {
        Self {
            target: target.to_owned(),
            colour,
            pause_for,
            clock: 0,
            connection: Connection::Waiting,
            overview: ShardOverview::default(),
            focus: Focus::default(),
            notes: VecDeque::new(),
        }
    }

    /// Takes in what the shard said, or that it does not answer.
    pub(crate) fn take(&mut self, update: PollUpdate) {
        if let PollUpdate::Lost(error) = &update {
            self.connection = Connection::Lost {
                since: self.focus.last_heard,
                why: error.to_string(),
            };
            return;
        }
        self.focus.last_heard = Some(self.clock);
        self.connection = Connection::Live;
        match update {
            PollUpdate::Lost(_) => {}
            PollUpdate::CycleStatus(header) => self.overview.status.advance(header),
            PollUpdate::Clusters(clusters) => self.overview.clusters = clusters,
            PollUpdate::Demand(demand) => self.overview.demand = demand,
            PollUpdate::Machines(tally) => self.overview.machines = tally,
            PollUpdate::Actions(actions) => self.overview.actions = actions,
            PollUpdate::Limits(limits) => self.overview.limits = limits,
            PollUpdate::Said(said) => self.focus.said = printable(&said),
            PollUpdate::Page(title, lines) => self.open(title, lines),
        }
        self.settle();
    }

    /// Adds a line of the caller.
    pub(crate) fn note(&mut self, line: &str) {
        self.notes.push_back(printable(line));
        while MOST_NOTES < self.notes.len() {
            self.notes.pop_front();
        }
    }

    fn open(&mut self, title: String, lines: Vec<String>) {
        let lines = lines.iter().map(|line| printable(line)).collect();
        self.focus.mode = InputMode::Page(TextPage {
            title,
            lines,
            scroll: 0,
        });
    }

    /// The shard's clock at its last answer; ours where it does not say.
    pub(crate) fn now(&self) -> i64 {
        match self.overview.status.at {
            0 => self.clock,
            at => at,
        }
    }

    /// The clusters that match the filter.
    pub(crate) fn clusters(&self) -> Vec<&ClusterRecord> {
        let all = self.overview.clusters.iter();
        all.filter(|one| self.admits(&[&one.id])).collect()
    }

    /// The Needs that match the filter.
    pub(crate) fn needs(&self) -> Vec<&NeedRecord> {
        let all = self.overview.demand.rows.iter();
        let admitted = |one: &&NeedRecord| {
            let facts = [&one.cluster, &one.need, &one.group, &one.why];
            self.admits(&facts)
                || one
                    .requirements
                    .iter()
                    .any(|of| self.admits(&[&of.to_string()]))
        };
        all.filter(admitted).collect()
    }

    /// The decisions that match the filter: a line per operation, with what came of it last.
    pub(crate) fn decisions(&self) -> Vec<&ActionRecord> {
        let mut seen = BTreeSet::new();
        // Newest first, so the first entry of an operation is how it stands.
        let all = self.overview.actions.iter();
        let all = all.filter(|one| one.operation.is_empty() || seen.insert(one.operation.as_str()));
        let admitted = |one: &&ActionRecord| {
            let kind = one.kind.as_ref().map_or("", String::as_str);
            let facts = [&one.cluster, &one.machine, &one.detail, &one.from_cluster];
            self.admits(&facts.map(String::as_str)) || self.admits(&[kind, &one.outcome])
        };
        all.filter(admitted).collect()
    }

    fn admits(&self, facts: &[&(impl AsRef<str> + ?Sized)]) -> bool {
        let wanted = self.focus.filter.to_lowercase();
        let mut facts = facts.iter();
        wanted.is_empty() || facts.any(|fact| fact.as_ref().to_lowercase().contains(&wanted))
    }

    /// The Need under the cursor.
    pub(crate) fn selected_need(&self) -> Option<&NeedRecord> {
        self.needs().get(self.cursor(Pane::Needs)).copied()
    }

    /// The cluster under the cursor.
    pub(crate) fn selected_cluster(&self) -> Option<&ClusterRecord> {
        self.clusters().get(self.cursor(Pane::Clusters)).copied()
    }

    /// The position of the cursor in a list.
    pub(crate) fn cursor(&self, pane: Pane) -> usize {
        self.focus.cursors[pane as usize]
    }

    fn length(&self, pane: Pane) -> usize {
        match pane {
            Pane::Clusters => self.clusters().len(),
            Pane::Needs => self.needs().len(),
            Pane::Decisions => self.decisions().len(),
        }
    }

    /// Moves the cursor of the pane in focus, as far as the list goes.
    pub(crate) fn step(&mut self, by: isize) {
        let pane = self.focus.pane;
        let cursor = &mut self.focus.cursors[pane as usize];
        *cursor = cursor.saturating_add_signed(by);
        self.settle();
    }

    /// Puts every cursor inside its list.
    pub(crate) fn settle(&mut self) {
        for pane in [Pane::Clusters, Pane::Needs, Pane::Decisions] {
            let last = self.length(pane).saturating_sub(1);
            let cursor = &mut self.focus.cursors[pane as usize];
            *cursor = (*cursor).min(last);
        }
    }
}
