//! Words: what is behind a verdict, in a sentence with its numbers.

use bigfleet_model::{Amounts, Time, quantity::format_short, shown};
use bigfleet_shard_core::{BackoffView, NeedView, Withheld};
use bigfleet_wire::v1alpha1::UnmetReason;

/// What is missing of a row and why; empty when nothing is.
pub(super) fn shortfall(view: &NeedView, reason: UnmetReason) -> String {
    let verdict = &view.verdict;
    if verdict.satisfied {
        return String::new();
    }
    let why = match view.withheld.filter(|_| is_withheld(reason)) {
        Some(withheld) => match &view.trouble {
            Some(trouble) => format!("{}: {}", self::withheld(withheld), stuck(trouble)),
            None => self::withheld(withheld).to_owned(),
        },
        None => unmet(view, reason),
    };
    let since = match view.age {
        0 => String::new(),
        1 => " for 1 cycle".to_owned(),
        age => format!(" for {age} cycles"),
    };
    let parked = if verdict.parked {
        format!("; parked for {} cycles", view.parked_age)
    } else {
        String::new()
    };
    let missing = amounts(&verdict.residual);
    format!("short of {missing}{since}: {why}{parked}")
}

fn is_withheld(reason: UnmetReason) -> bool {
    matches!(
        reason,
        UnmetReason::NoOperatorSession
            | UnmetReason::ActuationPaused
            | UnmetReason::ProviderBackoff
    )
}

fn unmet(view: &NeedView, reason: UnmetReason) -> String {
    let verdict = &view.verdict;
    let supply = &verdict.matching_supply;
    let least = if supply.capped { "at least " } else { "" };
    let exist = format!(
        "{least}{} idle, {} configured and {} speculative machines fit",
        supply.idle, supply.configured, supply.speculative
    );
    match reason {
        UnmetReason::Unspecified => exist,
        UnmetReason::PriorityStarved => {
            format!("{exist}, but serve Needs this one does not outrank")
        }
        UnmetReason::NoMatchingSupply => {
            "no machine, not even one that could be bought, meets its requirements and smallest size".to_owned()
        }
        UnmetReason::TopologyUnsatisfiable => {
            let Some(best) = verdict.same_candidates.first() else {
                return format!("{exist}, but no domain holds any of it");
            };
            let (domain, covered) = (shown(&best.domain), best.coverage_per_mille);
            format!("{exist}, but no domain holds all of it; \"{domain}\" covers {covered} ‰")
        }
        UnmetReason::PreemptionExhausted => {
            let (victims, freed) = (verdict.victims_found, amounts(&verdict.capacity_freed));
            let left = amounts(&view.unresolved);
            format!("{victims} machines make way and free {freed}, which leaves {left}")
        }
        UnmetReason::SpreadUnsatisfiable => {
            format!("{exist}, but taking one would break its hard spread")
        }
        UnmetReason::ProviderBackoff => {
            format!("{exist}, but the provider failed lately to make such machines")
        }
        UnmetReason::NoOperatorSession => withheld(Withheld::NoOperatorSession).to_owned(),
        UnmetReason::ActuationPaused => withheld(Withheld::ActuationPaused).to_owned(),
    }
}

/// Why the shard acquires nothing for a cluster.
pub(super) fn withheld(withheld: Withheld) -> &'static str {
    match withheld {
        Withheld::NoOperatorSession => "no operator of its cluster is connected",
        Withheld::BootstrapBackoff => "machines failed to join its cluster lately",
        Withheld::ActuationPaused => "changes to machines of its cluster are paused",
    }
}

/// What a person could do about it.
pub(super) fn remedies(reason: UnmetReason) -> &'static [&'static str] {
    match reason {
        UnmetReason::Unspecified => &[],
        UnmetReason::PriorityStarved => &[
            "offer more machines that fit",
            "raise its priority, if it matters more than what holds them",
            "lower what else asks for such machines",
        ],
        UnmetReason::NoMatchingSupply => &[
            "offer machines that meet its requirements",
            "check its requirements and its smallest machine size for a mistake",
        ],
        UnmetReason::TopologyUnsatisfiable => &[
            "offer enough machines in one domain",
            "make the gang smaller, or its domain wider",
        ],
        UnmetReason::PreemptionExhausted => &[
            "offer more machines that fit",
            "wait for the drains in progress, if what they free is enough",
        ],
        UnmetReason::SpreadUnsatisfiable => &[
            "offer machines in the domains that have fewest",
            "allow a larger skew, or ScheduleAnyway",
        ],
        UnmetReason::NoOperatorSession => &["find out why the cluster's operator does not connect"],
        UnmetReason::ProviderBackoff => &[
            "`bigfleet top` shows what failed and when it is tried again",
            "accept other instance types or zones",
        ],
        UnmetReason::ActuationPaused => {
            &["end the pause; `bigfleet get pauses` shows who set it and why"]
        }
    }
}

/// `cpu=4 memory=16`.
pub(super) fn amounts(amounts: &Amounts) -> String {
    let word = |(name, milli): (&bigfleet_model::Dimension, i128)| {
        format!("{}={}", shown(name.as_str()), format_short(milli))
    };
    let words: Vec<String> = amounts.iter().map(word).collect();
    if words.is_empty() {
        "nothing".to_owned()
    } else {
        words.join(" ")
    }
}

/// What a cluster's machines are stuck at, how often, and how last.
pub(super) fn stuck(backoff: &BackoffView) -> String {
    let (step, breaker) = (backoff.step.word(), &backoff.breaker);
    let last = match breaker.last_error.as_str() {
        "" => String::new(),
        error => format!(", the last with \"{}\"", shown(error)),
    };
    format!(
        "stuck at {step}, {} failures in a row{last}",
        breaker.failures
    )
}

/// The same, and when the next machine is tried.
pub(super) fn backoff(backoff: &BackoffView, now: Time) -> String {
    let next = if backoff.exhausted {
        format!(
            "{} machines were used up, so no more are tried until one of them can be used again or \
             somebody pauses and resumes the cluster",
            backoff.spent
        )
    } else if now < backoff.breaker.until {
        format!("tried again in {}", seconds(now, backoff.breaker.until))
    } else {
        "the next machine is tried now".to_owned()
    };
    format!("{}; {next}", stuck(backoff))
}

/// How far a moment is from another, in whole seconds.
pub(super) fn seconds(from: Time, to: Time) -> String {
    format!("{:.0} s", to.duration_since(from).as_secs_f64())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use bigfleet_model::{
        ClusterId, Dimension, DomainCoverage, MatchingSupply, Need, RowFacts, Verdict,
    };
    use std::sync::Arc;

    /// A row that is short of 1.5 cpu.
    pub(in crate::read) fn view(unmet_reason: bigfleet_model::UnmetReason) -> NeedView {
        let cpu = |milli| Amounts::from_entries([(Dimension::new("cpu").unwrap(), milli)]);
        let need = Need {
            cluster: ClusterId::new("a").unwrap(),
            row: RowFacts::default().check().unwrap(),
            arrival: None,
            parked: false,
        };
        let verdict = Verdict {
            need: Arc::new(need),
            satisfied: false,
            residual: cpu(1500),
            claimed: 0,
            bootstrap: 0,
            provision: 0,
            same_domain: String::new(),
            same_satisfiable: false,
            parked: false,
            victims_found: 2,
            capacity_freed: cpu(1000),
            unmet_reason,
            matching_supply: MatchingSupply::capped(0, 0, 7),
            same_candidates: Vec::new(),
        };
        NeedView {
            verdict,
            unresolved: cpu(500),
            age: 3,
            parked_age: 0,
            withheld: None,
            trouble: None,
        }
    }

    #[test]
    fn the_numbers_behind_a_reason_are_in_its_words() {
        let starved = view(bigfleet_model::UnmetReason::PriorityStarved);
        assert_eq!(
            shortfall(&starved, UnmetReason::PriorityStarved),
            "short of cpu=1500m for 3 cycles: 0 idle, 7 configured and 0 speculative machines \
             fit, but serve Needs this one does not outrank"
        );
        assert!(
            shortfall(&starved, UnmetReason::PreemptionExhausted)
                .contains("2 machines make way and free cpu=1, which leaves cpu=500m")
        );
        let mut gang = view(bigfleet_model::UnmetReason::TopologyUnsatisfiable);
        gang.verdict.parked = true;
        gang.parked_age = 9;
        gang.verdict.same_candidates = vec![DomainCoverage {
            domain: "r1".to_owned(),
            coverage_per_mille: 250,
            satisfiable: false,
        }];
        let said = shortfall(&gang, UnmetReason::TopologyUnsatisfiable);
        assert!(
            said.ends_with("\"r1\" covers 250 ‰; parked for 9 cycles"),
            "{said}"
        );
    }
}
