//! A decision as tables.

pub(crate) use bigfleet_ctl::text::{amounts, columns};

use bigfleet_engine::{Equal, Equals, StaysBecause};
use bigfleet_model::{
    Action, ActionKind, Decision, Fleet, FleetMachine, MachineId, NeedKey, Row, Verdict, shown,
};

/// Of how many Reclaims it is said why it is this machine.
const MOST_REASONED: usize = 20;

/// Actions, then Needs, then what else there is to say.
pub(crate) fn decision(fleet: &Fleet, decision: &Decision) -> String {
    let mut text = String::new();
    if decision.actions.is_empty() {
        text += "Nothing to do.\n"
    } else {
        text += &actions(&decision.actions);
        text += &reclaims(fleet, decision);
    }
    if !decision.needs.is_empty() {
        text += "\n";
        text += &needs(&decision.needs);
    }
    text += "\n";
    text += &ids("kept until a replacement serves", &decision.held);
    let claimed = decision.claims.iter().map(|claim| &claim.machine);
    let leaves_soon = |id: &&MachineId| {
        let found = fleet.machines.get(*id);
        found.is_some_and(FleetMachine::leaves_soon)
    };
    text += &ids(
        "to leave, but nothing that is free can replace them",
        claimed.filter(leaves_soon),
    );
    text += &ids(
        "no longer meant for the Need they were bought for",
        &decision.ended_intents,
    );
    let restamps = decision.restamps.iter().map(|to| &to.machine);
    text += &ids("committed to another Need", restamps);
    text += &format!("digest {}\n", decision.digest());
    text
}

fn actions(actions: &[Action]) -> String {
    let row = |action: &Action| {
        let cluster = action.cluster.as_ref();
        let purpose = action.purpose.as_ref().map(|(need, _)| name(need));
        let grace = match action.grace_seconds {
            0 => String::new(),
            seconds => format!("{seconds} s"),
        };
        vec![
            action.kind.word().to_owned(),
            shown(action.machine.as_str()),
            cluster.map(|id| shown(id.as_str())).unwrap_or_default(),
            purpose.unwrap_or_default(),
            grace,
            action.reason.text().to_owned(),
        ]
    };
    let header = ["ACTION", "MACHINE", "CLUSTER", "FOR", "GRACE", "REASON"];
    columns(&header, actions.iter().map(row))
}

/// Why a machine is reclaimed and not one that is just like it and stays.
fn reclaims(fleet: &Fleet, decision: &Decision) -> String {
    let reclaims = decision.actions.iter();
    let mut reclaims = reclaims.filter(|action| action.kind == ActionKind::Reclaim);
    let equals = Equals::new(fleet, decision);
    let line = |action: &Action| {
        let Equal { machine, because } = equals.of(&action.machine)?;
        let (goes, stays) = (shown(action.machine.as_str()), shown(machine.as_str()));
        let why = match because {
            StaysBecause::Cheaper(ours, theirs) => {
                let (ours, theirs) = (ours.dollars_per_hour(), theirs.dollars_per_hour());
                format!("is kept at ${ours} and not ${theirs} an hour")
            }
            StaysBecause::DearerToLose(ours, theirs) => {
                let (ours, theirs) = (ours.dollars(), theirs.dollars());
                format!("costs ${ours} to lose and not ${theirs}")
            }
            StaysBecause::DisturbsMore(ours, theirs) => {
                let (ours, theirs) = (ours.level(), theirs.level());
                format!("would disturb more, {ours} and not {theirs}")
            }
            StaysBecause::Id => "is like it in everything, and its id comes first".to_owned(),
        };
        Some(format!(
            "{goes} goes and not its equal {stays}, which {why}\n"
        ))
    };
    let named = reclaims.by_ref().take(MOST_REASONED);
    let mut lines: Vec<String> = named.filter_map(line).collect();
    if !lines.is_empty() {
        lines.insert(0, "\n".to_owned());
    }
    lines.concat()
}

/// What a row asks for, and if it is whole units, of what.
fn wants(row: &Row) -> String {
    let wants = amounts(&row.aggregate);
    if row.whole_units {
        format!("{wants} in units of {}", amounts(&row.min_unit))
    } else {
        wants
    }
}

fn needs(needs: &[Verdict]) -> String {
    let row = |verdict: &Verdict| {
        let row = &verdict.need.row;
        let verdict_word = match (verdict.satisfied, verdict.parked) {
            (true, _) => "all of it".to_owned(),
            (false, true) => "short, parked".to_owned(),
            (false, false) => format!("short {}", amounts(&verdict.residual)),
        };
        let why = if verdict.satisfied {
            String::new()
        } else {
            verdict.unmet_reason.text().to_owned()
        };
        vec![
            name(&verdict.need.key()),
            row.profile.priority().to_string(),
            wants(row),
            verdict.claimed.to_string(),
            verdict.bootstrap.to_string(),
            verdict.provision.to_string(),
            shown(&verdict.same_domain),
            verdict_word,
            why,
        ]
    };
    let header = [
        "NEED",
        "PRIORITY",
        "WANTS",
        "CLAIMED",
        "BOOTSTRAP",
        "PROVISION",
        "DOMAIN",
        "VERDICT",
        "WHY",
    ];
    columns(&header, needs.iter().map(row))
}

/// A Need by the name that every verb takes, and its gang.
fn name(need: &NeedKey) -> String {
    let called = format!("{}/{}", shown(need.cluster.as_str()), need.name());
    match need.group.as_str() {
        "" => called,
        group => format!("{called} ({})", shown(group)),
    }
}

fn ids<'a>(what: &str, ids: impl IntoIterator<Item = &'a MachineId>) -> String {
    let words: Vec<String> = ids.into_iter().map(|id| shown(id.as_str())).collect();
    if words.is_empty() {
        String::new()
    } else {
        format!("{what}: {}\n", words.join(" "))
    }
}
