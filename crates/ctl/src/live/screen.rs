//! Screen: everything the live view shows, as one value.
//!
//! What the shard said is in the picture; where the person stands is in the hand. News change the one,
//! keys the other, and the cursor is put back inside its list whenever either does.

use std::collections::VecDeque;
use std::time::Duration;

use super::picture::Picture;
use super::poll::News;
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
    /// Our own clock, for how long nothing was heard.
    pub(crate) clock: i64,
    pub(crate) link: Link,
    pub(crate) picture: Picture,
    pub(crate) hand: Hand,
    pub(crate) notes: VecDeque<String>,
}

/// Whether the shard answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// It has not yet.
    Waiting,
    /// It does.
    Live,
    /// It did; the last picture stands.
    Lost {
        /// When it last did, by our clock; `None` if it never has.
        since: Option<i64>,
        /// What it failed with.
        why: String,
    },
}

/// Where the person stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hand {
    pub(crate) pane: Pane,
    cursors: [usize; 3],
    pub(crate) filter: String,
    pub(crate) mode: Mode,
    /// What came of the last thing that was asked, until the next key.
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

/// What keys mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Moving about.
    #[default]
    Browse,
    /// Typing a filter.
    Filter,
    /// Asked whether to pause everything.
    ConfirmPause,
    /// Reading what the keys do.
    Help,
    /// Reading a page that lies over the lists.
    Page(Page),
}

/// A page of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
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
            link: Link::Waiting,
            picture: Picture::default(),
            hand: Hand::default(),
            notes: VecDeque::new(),
        }
    }

    /// Takes in what the shard said, or that it did not.
    pub(crate) fn take(&mut self, news: News) {
        if let News::Lost(trouble) = &news {
            self.link = Link::Lost {
                since: self.hand.last_heard,
                why: trouble.to_string(),
            };
            return;
        }
        self.hand.last_heard = Some(self.clock);
        self.link = Link::Live;
        match news {
            News::Lost(_) => {}
            News::Place(header) => self.picture.place.advance(header),
            News::Clusters(clusters) => self.picture.clusters = clusters,
            News::Demand(demand) => self.picture.demand = demand,
            News::Machines(tally) => self.picture.machines = tally,
            News::Actions(actions) => self.picture.actions = actions,
            News::Limits(limits) => self.picture.limits = limits,
            News::Said(said) => self.hand.said = printable(&said),
            News::Page(title, lines) => self.open(title, lines),
        }
        self.settle();
    }

    /// Takes a line of the caller.
    pub(crate) fn note(&mut self, line: &str) {
        self.notes.push_back(printable(line));
        while MOST_NOTES < self.notes.len() {
            self.notes.pop_front();
        }
    }

    fn open(&mut self, title: String, lines: Vec<String>) {
        let lines = lines.iter().map(|line| printable(line)).collect();
        self.hand.mode = Mode::Page(Page {
            title,
            lines,
            scroll: 0,
        });
    }

    /// The shard's clock at its last answer; ours where it does not say.
    pub(crate) fn now(&self) -> i64 {
        match self.picture.place.at {
            0 => self.clock,
            at => at,
        }
    }

    /// The clusters that match the filter.
    pub(crate) fn clusters(&self) -> Vec<&ClusterRecord> {
        let all = self.picture.clusters.iter();
        all.filter(|one| self.admits(&[&one.id])).collect()
    }

    /// The Needs that match the filter.
    pub(crate) fn needs(&self) -> Vec<&NeedRecord> {
        let all = self.picture.demand.rows.iter();
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

    /// The decisions that match the filter.
    pub(crate) fn decisions(&self) -> Vec<&ActionRecord> {
        let all = self.picture.actions.iter();
        let admitted = |one: &&ActionRecord| {
            let kind = one.kind.as_ref().map_or("", String::as_str);
            let facts = [&one.cluster, &one.machine, &one.detail, &one.from_cluster];
            self.admits(&facts.map(String::as_str)) || self.admits(&[kind, &one.outcome])
        };
        all.filter(admitted).collect()
    }

    fn admits(&self, facts: &[&(impl AsRef<str> + ?Sized)]) -> bool {
        let wanted = self.hand.filter.to_lowercase();
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
        self.hand.cursors[pane as usize]
    }

    fn length(&self, pane: Pane) -> usize {
        match pane {
            Pane::Clusters => self.clusters().len(),
            Pane::Needs => self.needs().len(),
            Pane::Decisions => self.decisions().len(),
        }
    }

    /// Moves the cursor of the pane in hand, as far as the list goes.
    pub(crate) fn step(&mut self, by: isize) {
        let pane = self.hand.pane;
        let cursor = &mut self.hand.cursors[pane as usize];
        *cursor = cursor.saturating_add_signed(by);
        self.settle();
    }

    /// Puts every cursor inside its list.
    pub(crate) fn settle(&mut self) {
        for pane in [Pane::Clusters, Pane::Needs, Pane::Decisions] {
            let last = self.length(pane).saturating_sub(1);
            let cursor = &mut self.hand.cursors[pane as usize];
            *cursor = (*cursor).min(last);
        }
    }
}
