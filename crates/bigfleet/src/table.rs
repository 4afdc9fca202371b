//! A decision for people.

use bigfleet_model::{
    Action, Amounts, Decision, MachineId, NeedKey, Verdict, quantity::format_milli, shown,
};
use comfy_table::{Table, presets::NOTHING};

/// Actions, then Needs, then what else there is to say.
pub(crate) fn decision(decision: &Decision) -> String {
    let mut text = String::new();
    match decision.actions.is_empty() {
        true => text += "Nothing to do.\n",
        false => text += &actions(&decision.actions),
    }
    if !decision.needs.is_empty() {
        text += "\n";
        text += &needs(&decision.needs);
    }
    text += "\n";
    text += &ids("held until a replacement serves", &decision.held);
    text += &ids("intents that ended", &decision.ended_intents);
    let restamps = decision.restamps.iter().map(|to| &to.machine);
    text += &ids("committed to another Need", restamps);
    text += &format!("digest {}\n", decision.digest());
    text
}

/// Columns without lines, as other command line tools print them.
pub(crate) fn columns(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(header);
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

/// Names come from files: none may move the cursor.
fn printable(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
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

fn needs(needs: &[Verdict]) -> String {
    let row = |verdict: &Verdict| {
        let row = &verdict.need.row;
        let verdict_word = match (verdict.satisfied, verdict.parked) {
            (true, _) => "satisfied".to_owned(),
            (false, true) => "short, parked".to_owned(),
            (false, false) => format!("short {}", amounts(&verdict.residual)),
        };
        let why = match verdict.satisfied {
            true => String::new(),
            false => verdict.unmet_reason.text().to_owned(),
        };
        vec![
            name(&verdict.need.key()),
            row.profile.priority().to_string(),
            amounts(&row.aggregate),
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

/// What people call a Need: its cluster and its gang. The fingerprint is for `--explain`.
pub(crate) fn name(need: &NeedKey) -> String {
    let cluster = shown(need.cluster.as_str());
    match need.group.as_str() {
        "" => cluster,
        group => format!("{cluster}/{}", shown(group)),
    }
}

/// `cpu=4 memory=16Gi`.
pub(crate) fn amounts(amounts: &Amounts) -> String {
    let word = |(name, milli): (&bigfleet_model::Dimension, i128)| {
        format!("{}={}", shown(name.as_str()), short(milli))
    };
    let words: Vec<String> = amounts.iter().map(word).collect();
    words.join(" ")
}

/// The amount as people write it: `16Gi`, not 17179869184.
fn short(milli: i128) -> String {
    for (suffix, unit) in [("Gi", 1_i128 << 30), ("Mi", 1 << 20)] {
        let unit = unit * 1000;
        if unit <= milli && milli % unit == 0 {
            return format!("{}{suffix}", milli / unit);
        }
    }
    format_milli(milli)
}

fn ids<'a>(what: &str, ids: impl IntoIterator<Item = &'a MachineId>) -> String {
    let words: Vec<String> = ids.into_iter().map(|id| shown(id.as_str())).collect();
    match words.is_empty() {
        true => String::new(),
        false => format!("{what}: {}\n", words.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_as_short_as_people_write_them() {
        assert_eq!(short(17_179_869_184_000), "16Gi");
        assert_eq!(short(12_582_912_000), "12Mi");
        assert_eq!(short(4_000), "4");
        assert_eq!(short(1_500), "1500m");
        assert_eq!(short(0), "0");
    }

    #[test]
    fn no_name_moves_the_cursor() {
        let text = columns(&["A"], [vec!["x\u{1b}[2Jy".to_owned()]]);
        assert!(text.contains("x\\u{1b}[2Jy"), "{text}");
    }
}
