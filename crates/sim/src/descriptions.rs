//! Descriptions: entries of a timeline, Needs and amounts as text, for traces, charts and reports.
//!
//! ```text
//! Change::Vanish { cluster: Some(0), count: 1 } ─▶ "machines vanish: 1 of a"
//! ```
//!
//! The part before the colon is the name under which faults are counted, so that a chart can tell
//! demand from trouble without knowing every kind of either.

use crate::plan::{Change, ClusterPlan, Left, Pick, Strike};
use bigfleet_model::{Amounts, NeedKey, quantity::format_short};

/// An entry of the timeline, with the clusters by name.
pub(crate) fn change(change: &Change, clusters: &[ClusterPlan]) -> String {
    let name = change_name(change);
    match details(change, clusters) {
        details if details.is_empty() => name.to_owned(),
        details => format!("{name}: {details}"),
    }
}

/// As where faults are counted, once they strike.
pub(crate) fn change_name(change: &Change) -> &'static str {
    match change {
        Change::Scale { .. } | Change::ScaleAll { .. } | Change::ScaleRow { .. } => "demand moves",
        Change::Priority { .. } => "priority edited",
        Change::Whole { .. } => "whole units",
        Change::Resize { .. } => "Pods of another size",
        Change::Break { .. } => "machines break",
        Change::Vanish { .. } => "machines vanish",
        Change::SpotWave(_) => "spot wave",
        Change::Reprice => "prices move",
        Change::StockOut { .. } => "stock-out",
        Change::FailNext { .. } => "calls fail",
        Change::Crash { .. } => "crash",
        Change::Twin { .. } => "twin",
        Change::WrongDisk { .. } => "wrong disk",
        Change::OperatorAway { .. } => "operator away",
        Change::ProviderAway { .. } => "provider away",
        Change::TruncatedLists { .. } => "list truncated",
        Change::BlockDrains { .. } => "drains blocked",
        Change::EmptyRollUps { .. } => "roll-up empty",
        Change::BlobErrors { .. } => "blob errors",
        Change::ConfiguresFail { .. } => "configures fail",
        Change::DeletesFail { .. } => "deletes fail",
        Change::Partition { .. } => "partition",
        Change::Pause { .. } => "pause",
        Change::Drain { .. } => "drain",
        Change::Undrain { .. } => "undrain",
        Change::Announce { .. } => "notice",
        Change::Withdraw => "notice withdrawn",
        Change::InCluster { what, .. } => what.name(),
    }
}

/// Which machines are meant.
fn picked(pick: &Pick) -> String {
    match pick {
        Pick::All => "every machine".to_owned(),
        Pick::Labelled(key, value) => format!("{key}={value}"),
        Pick::Serving { count } => format!("{count} that serve"),
        Pick::Named(id) => id.clone(),
    }
}

fn details(change: &Change, clusters: &[ClusterPlan]) -> String {
    let cluster = |at: usize| {
        let known = clusters.get(at);
        known.map_or_else(|| format!("cluster {at}"), |known| known.name.clone())
    };
    let row = |at: usize, work: usize| {
        let known = clusters.get(at).and_then(|known| known.works.get(work));
        let group = known.map_or("", |known| known.group.as_str());
        match group {
            "" => format!("{} row {work}", cluster(at)),
            group => format!("{} gang {group}", cluster(at)),
        }
    };
    let whose = |at: Option<usize>| at.map_or_else(|| "any cluster".to_owned(), cluster);
    match *change {
        Change::Scale {
            cluster,
            work,
            pods,
        } => format!("{} has {pods} Pods", row(cluster, work)),
        Change::ScaleAll {
            cluster: at,
            per_mille,
        } => {
            format!("{} has {} of its Pods", cluster(at), percent(per_mille))
        }
        Change::ScaleRow {
            cluster,
            work,
            per_mille,
        } => format!(
            "{} asks for {} of what it did",
            row(cluster, work),
            percent(per_mille)
        ),
        Change::Priority {
            cluster,
            work,
            priority,
        } => format!("{} has priority {priority}", row(cluster, work)),
        Change::Whole {
            cluster,
            work,
            whole,
        } => {
            let no = if whole { "" } else { "no " };
            format!("{} asks for {no}whole units", row(cluster, work))
        }
        Change::Resize {
            cluster,
            work,
            each,
        } => format!(
            "the Pods of {} ask for {} each",
            row(cluster, work),
            amounts(&each.amounts())
        ),
        Change::Break { cluster, count } | Change::Vanish { cluster, count } => {
            format!("{count} of {}", whose(cluster))
        }
        Change::SpotWave(per_mille) => format!("{per_mille} in 1000"),
        Change::Reprice => String::new(),
        Change::StockOut { ref kind, millis } => match kind.as_str() {
            "" => format!("every type, for {}", span(millis)),
            kind => format!("{kind}, for {}", span(millis)),
        },
        Change::FailNext {
            kind,
            machine: None,
            count,
        } => format!("the next {count} {kind:?}"),
        Change::FailNext {
            kind,
            machine: Some(machine),
            count,
        } => format!("the next {count} {kind:?} of {machine}"),
        Change::Crash {
            strike,
            disk,
            millis,
        } => format!(
            "{}, {}, away {}",
            at(strike),
            self::disk(disk),
            span(millis)
        ),
        Change::WrongDisk { millis } => format!("the right one is back after {}", span(millis)),
        Change::Twin { millis } => format!("the first goes on for {}", span(millis)),
        Change::OperatorAway {
            cluster: at,
            millis,
        }
        | Change::BlockDrains {
            cluster: at,
            millis,
        }
        | Change::BlobErrors {
            cluster: at,
            millis,
        }
        | Change::ConfiguresFail {
            cluster: at,
            millis,
        }
        | Change::Partition {
            cluster: at,
            millis,
        } => format!("{} for {}", cluster(at), span(millis)),
        Change::ProviderAway { millis, restart } => {
            if restart {
                format!("{}, and it forgets what it was doing", span(millis))
            } else {
                span(millis)
            }
        }
        Change::TruncatedLists { lists, per_mille } => {
            format!("the next {lists} lack {per_mille} machines in 1000")
        }
        Change::EmptyRollUps { cluster: at, count } => {
            format!("the next {count} of {}", cluster(at))
        }
        Change::Drain { ref pick, within } => match within {
            None => picked(pick),
            Some(0) => format!("{}, at once", picked(pick)),
            Some(millis) => format!("{}, within {}", picked(pick), span(millis)),
        },
        Change::Undrain { ref pick } => picked(pick),
        Change::Announce {
            ref pick,
            lead,
            meant,
        } => {
            let meant = if meant { "" } else { ", and not meant" };
            format!("{} in {}{meant}", picked(pick), span(lead))
        }
        Change::Withdraw => String::new(),
        Change::InCluster {
            cluster: at,
            ref what,
        } => match what.lasts() {
            Some(millis) => format!("{} for {}", cluster(at), span(millis)),
            None => cluster(at).to_owned(),
        },
        Change::Pause { millis } | Change::DeletesFail { millis } => span(millis),
    }
}

fn at(strike: Strike) -> &'static str {
    match strike {
        Strike::Now => "at once",
        Strike::Writing => "while it writes",
        Strike::Calling => "while a call is out",
        Strike::Listing => "while a List is out",
    }
}

/// What a crash leaves, in words.
pub(crate) fn disk(disk: Left) -> &'static str {
    match disk {
        Left::Whole => "disk whole",
        Left::Torn => "last write torn",
        Left::Nothing => "disk lost",
    }
}

/// `500` thousandths to `50 %`.
fn percent(per_mille: u32) -> String {
    match per_mille % 10 {
        0 => format!("{} %", per_mille / 10),
        tenths => format!("{}.{tenths} %", per_mille / 10),
    }
}

/// Milliseconds as people say them.
fn span(millis: u64) -> String {
    match millis {
        millis if millis % 60_000 == 0 && 0 < millis => format!("{} min", millis / 60_000),
        millis if millis % 1000 == 0 => format!("{} s", millis / 1000),
        millis => format!("{}.{:03} s", millis / 1000, millis % 1000),
    }
}

/// What a row asks for: `cpu=4 memory=16Gi`.
pub(crate) fn amounts(amounts: &Amounts) -> String {
    let entries = amounts.iter();
    let words = entries.map(|(name, milli)| format!("{}={}", name.as_str(), format_short(milli)));
    words.collect::<Vec<_>>().join(" ")
}

/// A Need, by what tells it from others of its cluster at a glance: `a's gang g0 of priority 1000`.
pub(crate) fn need(need: &NeedKey) -> String {
    let (cluster, group) = (&need.cluster, need.group.as_str());
    let what = match group {
        "" => "Pods".to_owned(),
        group => format!("gang {group}"),
    };
    let profile = need.fingerprint.as_str();
    let priority = profile
        .split('|')
        .next()
        .and_then(|first| first.strip_prefix("p="));
    format!("{cluster}'s {what} of priority {}", priority.unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Size;

    #[test]
    fn clusters_are_named_and_times_are_short() {
        let clusters = ["a", "late"].map(|name| ClusterPlan::new(name, Vec::new()));
        let check =
            |change: Change, words: &str| assert_eq!(super::change(&change, &clusters), words);
        let (cluster, count) = (Some(1), 3);
        check(
            Change::Vanish { cluster, count },
            "machines vanish: 3 of late",
        );
        let (cluster, per_mille) = (0, 505);
        check(
            Change::ScaleAll { cluster, per_mille },
            "demand moves: a has 50.5 % of its Pods",
        );
        let crash = Change::Crash {
            strike: Strike::Writing,
            disk: Left::Torn,
            millis: 90_500,
        };
        check(
            crash,
            "crash: while it writes, last write torn, away 90.500 s",
        );
        check(Change::Pause { millis: 120_000 }, "pause: 2 min");
        check(Change::Reprice, "prices move");
    }

    #[test]
    fn a_need_is_known_by_its_priority() {
        let row = crate::build::work(Size::plain(1, 1), 1).priority(7).build();
        let key = |group: &str| NeedKey {
            cluster: bigfleet_model::ClusterId::new("a").unwrap(),
            fingerprint: row.profile.fingerprint().clone(),
            group: bigfleet_model::Group::new(group),
        };
        assert_eq!(need(&key("")), "a's Pods of priority 7");
        assert_eq!(need(&key("g0")), "a's gang g0 of priority 7");
    }

    #[test]
    fn memory_is_said_in_gi() {
        assert_eq!(amounts(&Size::plain(4, 16).amounts()), "cpu=4 memory=16Gi");
    }
}
