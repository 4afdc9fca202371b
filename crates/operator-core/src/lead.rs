//! Lead: only one process of a cluster follows, dials and writes (OP-11).
//!
//! ```text
//! lease seen ─▶ held by another, changed within 15 s by our clock ─▶ wait
//!            ─▶ held by nobody, or unchanged for 15 s ─▶ take       ─▶ held by us ─▶ renew every 2 s
//! ```
//!
//! Times in the lease are not believed: two clocks need not agree. What counts is how long its version has not changed
//! by our own clock. A process that was stopped for a while finds that its last renewal is old before it acts.

use bigfleet_model::Time;
use std::time::Duration;

/// How long a lease lasts without a renewal.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How often it is renewed.
pub const RENEW_EVERY: Duration = Duration::from_secs(2);
/// Whoever has not renewed for so long gives up.
pub const RENEW_WITHIN: Duration = Duration::from_secs(10);

/// Whether this process leads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lead {
    renewed: Option<Time>,
}

impl Lead {
    pub(crate) fn renewed(&mut self, at: Option<Time>) {
        self.renewed = at;
    }

    /// Whether it does, as far as it can know.
    pub(crate) fn leads(&self, now: Time) -> bool {
        let is_recent = |at: Time| now.duration_since(at) < RENEW_WITHIN;
        self.renewed.is_some_and(is_recent)
    }

    /// When it stops leading unless it renews.
    pub(crate) fn ends(&self) -> Option<Time> {
        self.renewed.map(|at| at + RENEW_WITHIN)
    }
}

/// What to do about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    /// Write it with this process as the holder, version checked.
    Write,
    /// Look again at this moment.
    WaitUntil(Time),
}

/// The lease as one process sees it.
#[derive(Clone, Debug)]
pub struct LeaseWatch {
    holder: String,
    seen: Option<SeenLease>,
    renewed: Option<Time>,
}

#[derive(Clone, Debug)]
struct SeenLease {
    version: String,
    holder: String,
    since: Time,
}

impl LeaseWatch {
    /// The watch of a process with this name, which no other process has.
    pub fn new(holder: &str) -> Self {
        Self {
            holder: holder.to_owned(),
            seen: None,
            renewed: None,
        }
    }

    /// The lease as it is; an empty holder for one that was given up, `None` for none.
    pub fn saw(&mut self, now: Time, lease: Option<(&str, &str)>) {
        let Some((version, holder)) = lease else {
            self.seen = None;
            return;
        };
        if self
            .seen
            .as_ref()
            .is_some_and(|seen| seen.version == version)
        {
            return;
        }
        if holder != self.holder {
            self.renewed = None;
        }
        self.seen = Some(SeenLease {
            version: version.to_owned(),
            holder: holder.to_owned(),
            since: now,
        });
    }

    /// A write of it that began at this moment succeeded, and gave it this version.
    pub fn wrote(&mut self, began: Time, version: &str) {
        self.seen = Some(SeenLease {
            version: version.to_owned(),
            holder: self.holder.clone(),
            since: began,
        });
        self.renewed = Some(began);
    }

    /// When this process last renewed, while it holds the lease: what [`crate::Event::Leads`] says.
    pub fn renewed(&self, now: Time) -> Option<Time> {
        self.renewed
            .filter(|at| now.duration_since(*at) < RENEW_WITHIN)
    }

    /// What to do now.
    pub fn step(&self, now: Time) -> LeaseStep {
        let Some(seen) = &self.seen else {
            return LeaseStep::Write;
        };
        let due = if seen.holder == self.holder {
            self.renewed.map_or(now, |at| at + RENEW_EVERY)
        } else if seen.holder.is_empty() {
            now
        } else {
            seen.since + LEASE_DURATION
        };
        if due <= now {
            LeaseStep::Write
        } else {
            LeaseStep::WaitUntil(due)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_changes_hands_when_it_was_not_renewed_by_our_clock() {
        let mut b = LeaseWatch::new("b");
        assert_eq!(b.step(at(0)), LeaseStep::Write, "there is none");
        b.saw(at(100), Some(("1", "a")));
        assert_eq!(b.step(at(100)), LeaseStep::WaitUntil(at(115)));
        b.saw(at(102), Some(("2", "a")));
        b.saw(at(110), Some(("2", "a")));
        assert_eq!(b.step(at(116)), LeaseStep::WaitUntil(at(117)));
        assert_eq!(b.step(at(117)), LeaseStep::Write);
        assert_eq!(b.renewed(at(117)), None);
        b.wrote(at(117), "3");
        assert_eq!(b.renewed(at(126)), Some(at(117)));
        assert_eq!(b.renewed(at(127)), None, "given up after ten seconds");
        assert_eq!(b.step(at(118)), LeaseStep::WaitUntil(at(119)));
        b.saw(at(120), Some(("4", "c")));
        assert_eq!(b.renewed(at(120)), None);
        b.saw(at(121), Some(("5", "")));
        assert_eq!(
            b.step(at(121)),
            LeaseStep::Write,
            "an orderly stop clears the holder"
        );
    }
}
