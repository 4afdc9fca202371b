//! Words: what is behind a verdict, in a sentence with its numbers.

use bigfleet_model::{Amounts, Time, counted, quantity::format_short, shown};
use bigfleet_shard_core::{BackoffView, BreakerView, NeedStage, NeedView, Progress, Withheld};
use bigfleet_wire::v1alpha1::UnmetReason;

/// Where a row stands that is not served in full, with the numbers; empty for one that is.
pub(super) fn status(
    view: &NeedView,
    progress: &Progress,
    reason: UnmetReason,
    now: Time,
) -> String {
    said(view, progress, reason, Some(now))
}

/// The same without how long it has been so: what is kept where it is read later says only what stays true.
pub(super) fn status_without_ages(
    view: &NeedView,
    progress: &Progress,
    reason: UnmetReason,
) -> String {
    said(view, progress, reason, None)
}

fn said(view: &NeedView, progress: &Progress, reason: UnmetReason, now: Option<Time>) -> String {
    let age = |before: &str, since: Time| {
        now.map_or_else(String::new, |now| {
            format!("{before}for {}", span(since, now))
        })
    };
    let mut parts = Vec::new();
    if !progress.missing.is_zero() {
        let missing = amounts(&progress.missing);
        let since = progress.lacking_since;
        let since = since.map_or_else(String::new, |since| age(" ", since));
        parts.push(format!(
            "missing {missing}{since}: {}",
            missing_why(view, progress, reason)
        ));
    }
    for (word, of) in [("stuck", &progress.stuck), ("coming", &progress.coming)] {
        if of.is_zero() {
            continue;
        }
        let is_stuck = word == "stuck";
        let stages = progress.stages.iter();
        let stages = stages.filter(|stage| stage.stuck.is_some() == is_stuck);
        let words: Vec<String> = stages
            .map(|stage| at_stage(stage, &age(", ", stage.since)))
            .collect();
        parts.push(format!("{word} {}: {}", amounts(of), words.join(", and ")));
    }
    parts.join("; ")
}

/// `2 machines, Create: the provider works on it, for 40 s`, and what holds them up.
fn at_stage(stage: &NeedStage, age: &str) -> String {
    let machines = counted(stage.machines, "machine", "machines");
    let said = format!("{machines}, {}{age}", stage.stage);
    match &stage.stuck {
        Some(why) => format!("{said}: {why}"),
        None => said,
    }
}

/// Why nothing is on its way for what is missing.
fn missing_why(view: &NeedView, progress: &Progress, reason: UnmetReason) -> String {
    let verdict = &view.verdict;
    let held = progress.held_back.as_ref();
    if let Some(held) = held.filter(|_| reason != UnmetReason::NoMatchingSupply) {
        return held.clone();
    }
    let why = match view.withheld.filter(|_| is_withheld(reason)) {
        Some(withheld) => match &view.trouble {
            Some(trouble) => format!("{}: {}", withheld.words(), stuck(trouble)),
            None => withheld.words().to_owned(),
        },
        None if verdict.satisfied => {
            "machines for it are chosen, and none has begun yet".to_owned()
        }
        None => unmet(view, progress, reason),
    };
    if verdict.parked && !verdict.satisfied {
        why + "; parked: it is tried again when something changes"
    } else {
        why
    }
}

fn is_withheld(reason: UnmetReason) -> bool {
    matches!(
        reason,
        UnmetReason::NoOperatorSession
            | UnmetReason::ActuationPaused
            | UnmetReason::ProviderBackoff
    )
}

fn unmet(view: &NeedView, progress: &Progress, reason: UnmetReason) -> String {
    let verdict = &view.verdict;
    let supply = &verdict.matching_supply;
    let least = if supply.capped { "at least " } else { "" };
    let exist = format!(
        "{least}{} idle, {} configured and {} speculative machines fit",
        supply.idle, supply.configured, supply.speculative
    );
    match reason {
        UnmetReason::Unspecified => exist,
        UnmetReason::PriorityStarved if holds_all(view, progress) => format!(
            "it already holds every machine that fits, {}",
            verdict.claimed
        ),
        UnmetReason::PriorityStarved => match verdict.claimed {
            0 => format!("{exist}, but serve Needs this one does not outrank"),
            own => format!("{exist}; it has {own}, and no Need it outranks has another"),
        },
        UnmetReason::NoMatchingSupply => {
            "no machine that works, not even one that could be bought, meets its requirements and smallest size".to_owned()
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
            let make_way = counted(victims, "machine makes way and frees", "machines make way and free");
            format!("{make_way} {freed}, which leaves {left}")
        }
        UnmetReason::SpreadUnsatisfiable => {
            format!("{exist}, but taking one would break its hard spread")
        }
        UnmetReason::ProviderBackoff => {
            format!("{exist}, but the provider failed lately to make such machines")
        }
        UnmetReason::NoOperatorSession => Withheld::NoOperatorSession.words().to_owned(),
        UnmetReason::ActuationPaused => Withheld::ActuationPaused.words().to_owned(),
    }
}

/// Whether no machine fits but those that serve it: then nobody stands in its way.
fn holds_all(view: &NeedView, progress: &Progress) -> bool {
    let (verdict, supply) = (&view.verdict, &view.verdict.matching_supply);
    let free = supply.idle + supply.speculative;
    let all_serve = progress.coming.is_zero() && progress.stuck.is_zero();
    !supply.capped
        && free == 0
        && all_serve
        && 0 < verdict.claimed
        && supply.configured <= verdict.claimed
}

/// What a person could do about what the shard itself holds back. What the fleet lacks is tried, not guessed.
pub(super) fn remedies(reason: UnmetReason) -> &'static [&'static str] {
    match reason {
        UnmetReason::NoOperatorSession => &["find out why the cluster's operator does not connect"],
        UnmetReason::ProviderBackoff => {
            &["`bigfleet get rails` shows what failed and when it is tried again"]
        }
        UnmetReason::ActuationPaused => {
            &["end the pause; `bigfleet get pauses` shows who set it and why"]
        }
        UnmetReason::Unspecified
        | UnmetReason::PriorityStarved
        | UnmetReason::NoMatchingSupply
        | UnmetReason::TopologyUnsatisfiable
        | UnmetReason::PreemptionExhausted
        | UnmetReason::SpreadUnsatisfiable => &[],
    }
}

/// A pool that is left alone, why, and until when.
pub(super) fn breaker(view: &BreakerView, now: Time) -> String {
    let (pool, breaker) = (&view.pool, &view.breaker);
    let next = if now < breaker.until {
        format!("tried again in {}", span(now, breaker.until))
    } else {
        "one machine is being tried".to_owned()
    };
    let said = match breaker.last_error.as_str() {
        "" => String::new(),
        error => format!(", the last with \"{}\"", shown(error)),
    };
    let failed = match breaker.failures {
        1 => "failed".to_owned(),
        failures => format!("failed {failures} times in a row"),
    };
    format!(
        "{} in zone {} {failed}{said}; {next}",
        shown(&pool.instance_type),
        shown(&pool.zone),
    )
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
    let failures = counted(breaker.failures, "failure", "failures");
    format!("stuck at {step}, {failures} in a row{last}")
}

/// The same, and when the next machine is tried.
pub(super) fn backoff(backoff: &BackoffView, now: Time) -> String {
    let next = if backoff.exhausted {
        format!(
            "{} used up, so no more are tried until one of them can be used again or \
             somebody pauses and resumes the cluster",
            counted(backoff.spent, "machine was", "machines were")
        )
    } else if now < backoff.breaker.until {
        format!("tried again in {}", span(now, backoff.breaker.until))
    } else {
        "the next machine is tried now".to_owned()
    };
    format!("{}; {next}", stuck(backoff))
}

/// How long it is from one moment to another, as people say it.
pub(super) fn span(from: Time, to: Time) -> String {
    let seconds = to.duration_since(from).as_secs();
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6000 => format!("{} min", seconds / 60),
        6000..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
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

    fn at(seconds: i64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    fn cpu(milli: i128) -> Amounts {
        Amounts::from_entries([(Dimension::new("cpu").unwrap(), milli)])
    }

    /// What is said of a row of which 1.5 cpu are missing for three minutes.
    fn said(view: &NeedView, reason: UnmetReason) -> String {
        let progress = Progress {
            missing: cpu(1500),
            lacking_since: Some(at(820)),
            ..Progress::default()
        };
        status(view, &progress, reason, at(1000))
    }

    #[test]
    fn the_numbers_behind_a_reason_are_in_its_words() {
        let starved = view(bigfleet_model::UnmetReason::PriorityStarved);
        assert_eq!(
            said(&starved, UnmetReason::PriorityStarved),
            "missing cpu=1500m for 3 min: 0 idle, 7 configured and 0 speculative machines \
             fit, but serve Needs this one does not outrank"
        );
        let mut alone = starved.clone();
        alone.verdict.claimed = 7;
        assert_eq!(
            said(&alone, UnmetReason::PriorityStarved),
            "missing cpu=1500m for 3 min: it already holds every machine that fits, 7"
        );
        alone.verdict.claimed = 3;
        assert!(
            said(&alone, UnmetReason::PriorityStarved)
                .ends_with("machines fit; it has 3, and no Need it outranks has another")
        );
        assert!(
            said(&starved, UnmetReason::PreemptionExhausted)
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
        let said = said(&gang, UnmetReason::TopologyUnsatisfiable);
        assert!(
            said.ends_with("\"r1\" covers 250 ‰; parked: it is tried again when something changes"),
            "{said}"
        );
    }

    #[test]
    fn what_comes_and_what_is_stuck_say_where_and_for_how_long() {
        let mut covered = view(bigfleet_model::UnmetReason::Unspecified);
        covered.verdict.satisfied = true;
        let stage = |stage: &str, stuck: Option<&str>, machines, since| NeedStage {
            stage: stage.to_owned(),
            stuck: stuck.map(str::to_owned),
            machines,
            since: at(since),
            machine: bigfleet_model::MachineId::new("m1").unwrap(),
        };
        let refused = Some("the provider says \"UNAVAILABLE: no route\"");
        let progress = Progress {
            serving: cpu(4000),
            coming: cpu(8000),
            stuck: cpu(4000),
            stages: vec![
                stage("Create: to be tried again", refused, 1, 400),
                stage("Create: the provider works on it", None, 2, 960),
            ],
            lacking_since: Some(at(400)),
            ..Progress::default()
        };
        assert_eq!(
            status(&covered, &progress, UnmetReason::Unspecified, at(1000)),
            "stuck cpu=4: 1 machine, Create: to be tried again, for 10 min: the provider says \
             \"UNAVAILABLE: no route\"; coming cpu=8: 2 machines, Create: the provider works on it, \
             for 40 s"
        );
        let served = Progress {
            serving: cpu(4000),
            ..Progress::default()
        };
        assert_eq!(
            status(&covered, &served, UnmetReason::Unspecified, at(1000)),
            ""
        );
        let paused = Progress {
            missing: cpu(4000),
            lacking_since: Some(at(990)),
            held_back: Some("everything is paused by alice: storage work".to_owned()),
            ..Progress::default()
        };
        assert_eq!(
            status(&covered, &paused, UnmetReason::Unspecified, at(1000)),
            "missing cpu=4 for 10 s: everything is paused by alice: storage work"
        );
    }
}
