//! Outcome: a decision as lines of text.

use bigfleet_model::quantity::format_milli;
use bigfleet_model::{Action, ActionKind, Amounts, Decision, MachineId, NeedKey, Reason, Verdict};

/// The actions, one per line, in emission order.
///
/// ```text
/// Bootstrap i1 for a
/// Bootstrap i2 for a (promised)
/// Provision s1 for a
/// Preempt b3 from b grace 10 for a
/// Reclaim m2 from a
/// Reclaim m3 from a (leaving)
/// Delete i9
/// ```
pub fn outcome(decision: &Decision) -> String {
    let lines: Vec<String> = decision.actions.iter().map(action).collect();
    lines.join("\n")
}

/// Everything the decision says, for people who look for the reason of a failing test.
pub fn story(decision: &Decision) -> String {
    let mut lines: Vec<String> = decision.actions.iter().map(action).collect();
    lines.push(ids("held", &decision.held));
    lines.push(ids("ended", &decision.ended_intents));
    lines.push(ids(
        "restamps",
        decision.restamps.iter().map(|to| &to.machine),
    ));
    for verdict in &decision.needs {
        let key = verdict.need.key();
        lines.push(state_of(&key.to_string(), verdict, true));
        lines.push(claims(decision, &format!("  claims {key}"), Some(&key)));
        if verdict.need.row.profile.same_key().is_some() {
            lines.push(domain(&format!("  domain {key}"), verdict));
        }
    }
    lines.join("\n")
}

pub(crate) fn action(action: &Action) -> String {
    let Action { machine, kind, .. } = action;
    let word = kind.word();
    let cluster = action.cluster.as_ref().map_or("nobody", |id| id.as_str());
    match kind {
        ActionKind::Bootstrap if action.reason == Reason::Promised => {
            format!("{word} {machine} for {cluster} (promised)")
        }
        ActionKind::Bootstrap | ActionKind::Provision | ActionKind::Restore => {
            format!("{word} {machine} for {cluster}")
        }
        ActionKind::Preempt => {
            let grace = action.grace_seconds;
            let purpose = action.purpose.as_ref();
            let purpose = purpose.map_or("nobody", |(need, _)| need.cluster.as_str());
            format!("{word} {machine} from {cluster} grace {grace} for {purpose}")
        }
        ActionKind::Reclaim if action.reason == Reason::Leaving => {
            format!("{word} {machine} from {cluster} (leaving)")
        }
        ActionKind::Reclaim => format!("{word} {machine} from {cluster}"),
        ActionKind::Delete => format!("{word} {machine}"),
    }
}

pub(crate) fn ids<'a>(head: &str, ids: impl IntoIterator<Item = &'a MachineId>) -> String {
    let words = ids.into_iter().map(|id| format!(" {id}"));
    format!("{head}:{}", words.collect::<String>())
}

/// The machines claimed by one Need, or by all of them.
pub(crate) fn claims(decision: &Decision, head: &str, need: Option<&NeedKey>) -> String {
    let of_need = decision
        .claims
        .iter()
        .filter(|claim| need.is_none_or(|key| claim.need == *key));
    ids(head, of_need.map(|claim| &claim.machine))
}

/// `satisfied a/g1` or `short a/g1: cpu=4 REASON`.
pub(crate) fn state_of(called: &str, verdict: &Verdict, with_reason: bool) -> String {
    if verdict.satisfied {
        return format!("satisfied {called}");
    }
    let reason = if with_reason {
        format!(" {}", verdict.unmet_reason.text())
    } else {
        String::new()
    };
    format!("short {called}:{}{reason}", amounts(&verdict.residual))
}

pub(crate) fn domain(head: &str, verdict: &Verdict) -> String {
    let mark = if verdict.same_satisfiable {
        ""
    } else {
        " unsatisfiable"
    };
    let space = if verdict.same_domain.is_empty() {
        ""
    } else {
        " "
    };
    format!("{head}:{space}{}{mark}", verdict.same_domain)
}

pub(crate) fn amounts(amounts: &Amounts) -> String {
    let word = |(name, milli)| format!(" {name}={}", format_milli(milli));
    amounts.iter().map(word).collect()
}
