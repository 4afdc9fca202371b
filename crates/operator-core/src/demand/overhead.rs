//! Overhead: what DaemonSets take of every machine, on top of what Pods ask for (OP-51).
//!
//! ```text
//! requests of all DaemonSets ÷ the median allocatable, up to the next 1/32 ── twice the same, 10 min apart ──▶ in force
//! ```
//!
//! Rows carry the demand of Pods alone; a machine that is bought for it also has to hold one Pod of each DaemonSet. The
//! share moves in coarse steps and slowly, since every step changes every row.

use bigfleet_model::{Amounts, Dimension, Time};
use std::time::Duration;

const PARTS: i128 = 32;
const CONFIRMED_AFTER: Duration = Duration::from_secs(600);

/// A share of every machine in 1/32, less than all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overhead(u8);

impl Overhead {
    /// The demand divided by what a machine has left, rounded up.
    pub(crate) fn on_top_of(self, demand: &Amounts) -> Amounts {
        if self.0 == 0 {
            return demand.clone();
        }
        let left = PARTS - i128::from(self.0);
        let grown = |(name, milli): (&Dimension, i128)| {
            let product = milli.saturating_mul(PARTS);
            (
                name.clone(),
                product / left + i128::from(product % left != 0),
            )
        };
        Amounts::from_entries(demand.iter().map(grown))
    }

    /// The greatest share any dimension of the requests takes of these Nodes, up to the next 1/32.
    fn of(requests: &Amounts, nodes: &[&Amounts]) -> Self {
        let share = |(name, asked): (&Dimension, i128)| {
            let mut offered: Vec<_> = nodes.iter().map(|node| node.get(name.as_str())).collect();
            offered.sort_unstable();
            let median = offered.get(offered.len() / 2).copied().unwrap_or(0);
            match median {
                0 => 0, // what no Node has, no DaemonSet gets
                median => (asked.saturating_mul(PARTS) + median - 1) / median,
            }
        };
        let parts = requests.iter().map(share).max().unwrap_or(0);
        Self(parts.clamp(0, PARTS - 1) as u8)
    }
}

/// The share in force, and one that may follow it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OverheadWatch {
    requests: Amounts,
    in_force: Overhead,
    candidate: Option<(Overhead, Time)>,
}

impl OverheadWatch {
    pub(crate) fn daemon_sets(&mut self, requests: Amounts) {
        self.requests = requests;
    }

    pub(crate) fn in_force(&self) -> Overhead {
        self.in_force
    }

    /// Looks at the Nodes; whether another share is in force now.
    pub(crate) fn look(&mut self, now: Time, nodes: &[&Amounts]) -> bool {
        let found = Overhead::of(&self.requests, nodes);
        if nodes.is_empty() || found == self.in_force {
            self.candidate = None;
            return false;
        }
        match self.candidate {
            Some((same, since)) if same == found => {
                if now.duration_since(since) < CONFIRMED_AFTER {
                    return false;
                }
                self.in_force = found;
                self.candidate = None;
                true
            }
            Some(_) | None => {
                self.candidate = Some((found, now));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(milli: i128) -> Amounts {
        Amounts::from_entries([(Dimension::new("cpu").unwrap(), milli)])
    }

    /// OP-51.
    #[test]
    fn a_share_is_in_force_after_two_equal_looks_ten_minutes_apart() {
        let at = |minutes: u64| Time::ZERO + Duration::from_secs(60 * minutes);
        let mut watch = OverheadWatch::default();
        watch.daemon_sets(cpu(300));
        let (node, large) = (cpu(3_900), cpu(64_000));
        let nodes = [&node, &node, &large];
        assert!(!watch.look(at(0), &nodes));
        assert!(!watch.look(at(9), &nodes));
        assert_eq!(watch.in_force(), Overhead(0));
        assert!(watch.look(at(10), &nodes));
        assert_eq!(watch.in_force(), Overhead(3), "0.3 of 3.9 is 2.46/32");
        assert_eq!(watch.in_force().on_top_of(&cpu(2_900)), cpu(3_200));
        assert!(!watch.look(at(11), &[&large]));
        assert!(
            !watch.look(at(15), &nodes),
            "what is in force ends a candidate"
        );
        assert!(!watch.look(at(22), &[&large]));
    }

    #[test]
    fn a_share_is_never_all_and_nothing_without_nodes() {
        let mut watch = OverheadWatch::default();
        watch.daemon_sets(cpu(9_000));
        assert!(!watch.look(Time::ZERO, &[]));
        assert_eq!(Overhead::of(&cpu(9_000), &[&cpu(1_000)]), Overhead(31));
        assert_eq!(Overhead::of(&cpu(9_000), &[&Amounts::NONE]), Overhead(0));
        assert_eq!(
            Overhead(31).on_top_of(&cpu(i128::MAX)),
            cpu(i128::MAX),
            "it saturates"
        );
    }
}
