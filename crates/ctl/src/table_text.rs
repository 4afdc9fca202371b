//! What was weighed for a Need, as text: the same for a running shard and for a fleet file.

use bigfleet_model::{self as model, ordinal};

use crate::record::{Choice, TableRecord, Victims, WholeUnits};
use crate::text::{columns, printable};

/// Its place in the order, what is done for it, and everything that was weighed.
pub(crate) fn tables(explained: &TableRecord) -> String {
    let (position, needs) = (ordinal(explained.position), explained.needs);
    let mut text = format!("served {position} of {needs}{}\n", competition(explained));
    if let Some(whole) = &explained.whole_units {
        text += &counted(whole);
    }
    for action in &explained.actions {
        text += &format!("  {}\n", printable(action));
    }
    if !explained.outranked_by.is_empty() {
        text += &ahead(explained);
    }
    if let Some(choice) = &explained.choice {
        text += &domains(choice);
    }
    if let Some(victims) = &explained.victims {
        text += &weighed(victims);
    }
    text + "\n" + &machines(explained)
}

/// What its machines count for, and what they would if any part of a unit counted.
fn counted(whole: &WholeUnits) -> String {
    match whole.counted.as_str() {
        "" => String::new(),
        counted => format!(
            "its machines count for {}, in whole units, and would for {} otherwise\n",
            printable(counted),
            printable(&whole.otherwise)
        ),
    }
}

/// How many of the Needs that are served before it hold machines it could use; empty if none does.
fn competition(explained: &TableRecord) -> String {
    let named = explained.outranked_by.len();
    let ahead = explained.outranked_by.iter();
    let holders = ahead.filter(|other| 0 < other.holds).count();
    // Holders are named first: if all that are named hold some, so may others.
    let least = if holders == named && named + 1 < explained.position {
        "at least "
    } else {
        ""
    };
    match holders {
        0 => String::new(),
        count => {
            let hold = model::counted(count, "Need ahead of it holds", "Needs ahead of it hold");
            format!("; {least}{hold} machines this one could use")
        }
    }
}

fn ahead(explained: &TableRecord) -> String {
    let rows = explained.outranked_by.iter().map(|other| {
        vec![
            other.need.clone(),
            other.by.clone(),
            other.holds.to_string(),
        ]
    });
    let mut text = "\n".to_owned()
        + &columns(
            &[
                "SERVED BEFORE IT",
                "BECAUSE OF",
                "HOLDS MACHINES IT COULD USE",
            ],
            rows,
        );
    let named = explained.outranked_by.len();
    text += &more(explained.position.saturating_sub(1 + named), "");
    text
}

/// ` and 3 more`, where there are.
fn more(count: usize, what: &str) -> String {
    match count {
        0 => String::new(),
        count => format!(" and {count} more{what}\n"),
    }
}

fn domains(choice: &Choice) -> String {
    let key = printable(&choice.key);
    let mut text = match &choice.chosen {
        None => format!("\nno {key}: {}\n", choice.rule),
        Some(chosen) => format!("\n{key} {}: {}\n", printable(chosen), choice.rule),
    };
    if let (Some(next), Some(by)) = (&choice.runner_up, &choice.decided_by) {
        text += &format!("before {}: {by}\n", printable(next));
    }
    if choice.domains.is_empty() {
        return text;
    }
    let header = [
        "DOMAIN",
        "QUALIFIES",
        "OWN",
        "CREDITED",
        "IDLE",
        "SPECULATIVE",
        "VICTIMS",
        "COVERED BY OWN",
        "BY CREDITED",
        "BY AVAILABLE",
        "FILL",
    ];
    let rows = choice.domains.iter().map(|domain| {
        let ratio = |value: f64| format!("{value:.3}");
        vec![
            printable(&domain.domain),
            if domain.qualifies { "yes" } else { "no" }.to_owned(),
            domain.own.to_string(),
            domain.credited.to_string(),
            domain.idle.to_string(),
            domain.speculative.to_string(),
            domain
                .victims
                .map(|count| count.to_string())
                .unwrap_or_default(),
            ratio(domain.own_coverage),
            ratio(domain.credit_coverage),
            ratio(domain.coverage_at_hand),
            ratio(domain.fill),
        ]
    });
    text += &columns(&header, rows);
    text + &more(choice.domains_left_out, "")
}

fn weighed(victims: &Victims) -> String {
    let rows = victims.weighed.iter().map(|victim| {
        let score = victim.score.map(|score| format!("{score:.6}"));
        vec![
            victim.machine.clone(),
            victim.standing_priority.to_string(),
            score.unwrap_or_default(),
            if victim.head_start { "goes anyway" } else { "" }.to_owned(),
            victim.fate.clone(),
        ]
    });
    let header = ["VICTIM", "PRIORITY", "SCORE", "HEAD START", "FATE"];
    "\n".to_owned() + &columns(&header, rows) + &more(victims.left_out, "")
}

fn machines(explained: &TableRecord) -> String {
    let rows = explained.candidates.iter().map(|alike| {
        let mut names = alike.machines.join(" ");
        if alike.machines.len() < alike.count {
            names += " …";
        }
        vec![
            alike.why.clone(),
            alike.state.clone(),
            alike.kind.clone(),
            alike.count.to_string(),
            names,
        ]
    });
    let text = columns(&["FATE", "STATE", "KIND", "COUNT", "MACHINES"], rows);
    let left_out = &explained.candidates_left_out;
    text + &more(
        left_out.groups,
        &format!(
            " with {}",
            model::counted(left_out.machines, "machine", "machines")
        ),
    )
}
