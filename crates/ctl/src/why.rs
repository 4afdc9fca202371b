//! `why`: what a shard knows of the Need and the machine that somebody's Pod waits for.
//!
//! ```text
//! fingerprint, groups ─▶ whose Need it is ─▶ explained    machine ─▶ where it stands
//! ```

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_wire::v1alpha1 as wire;

use crate::client::Client;
use crate::error::CtlError;
use crate::explain::request;
use crate::record::{ExplanationRecord, MachineRecord, NeedRecord};
use crate::text::printable;
use crate::when::ago;

/// What is asked about.
#[derive(Clone, Debug, Default)]
pub struct PodQuestion {
    /// The cluster, by the shard's name; empty for the one that has such a Need.
    pub cluster: String,
    /// The text of the Need's profile.
    pub fingerprint: String,
    /// The groups it may be in, the likeliest first.
    pub groups: Vec<String>,
    /// A machine on its way.
    pub machine: Option<String>,
}

/// Where a Need stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeedAnswer {
    /// The cluster.
    pub cluster: String,
    /// Its short name.
    pub name: String,
    /// In a sentence.
    pub summary: String,
    /// Whether all of it serves.
    pub is_served: bool,
    /// Whether nothing is missing or held up.
    pub is_coming: bool,
    /// Why it is short.
    pub causes: Vec<String>,
    /// What would change that.
    pub changes: Vec<String>,
}

/// What the shard knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodAnswer {
    /// The Need, if the shard has one like it.
    pub need: Option<NeedAnswer>,
    /// Where the machine stands, in a sentence.
    pub machine: Option<String>,
}

/// Asks.
pub async fn why(client: &Client, asked: &PodQuestion) -> Result<PodAnswer, CtlError> {
    let machine = match &asked.machine {
        Some(id) => machine(client, id).await?,
        None => None,
    };
    let mut found: BTreeMap<String, (usize, NeedRecord)> = BTreeMap::new();
    let each = |view: wire::NeedView| {
        let need = NeedRecord::from(&view);
        let rank = asked.groups.iter().position(|group| *group == need.group);
        let rank = rank.filter(|_| need.need_fingerprint == asked.fingerprint);
        let Some(rank) = rank else { return };
        let known = found.get(&need.cluster).map(|(known, _)| *known);
        if known.is_none_or(|known| rank < known) {
            found.insert(need.cluster.clone(), (rank, need));
        }
    };
    client.needs(&asked.cluster, each).await?;
    // A machine that is bound says whose it is.
    let whose = machine.as_ref().map(|(_, cluster)| cluster.as_str());
    let of_machine = whose.and_then(|cluster| found.remove(cluster));
    let need = match (of_machine, found.len()) {
        (Some((_, need)), _) => Some(need),
        (None, 0 | 1) => found.into_values().next().map(|(_, need)| need),
        (None, _) => return Err(several(found.keys())),
    };
    let need = match need {
        None => None,
        Some(need) => {
            let explained = client.explain(request(&need)).await?;
            explained.map(|explained| answer(&ExplanationRecord::from(&explained)))
        }
    };
    Ok(PodAnswer {
        need,
        machine: machine.map(|(sentence, _)| sentence),
    })
}

fn several<'a>(clusters: impl Iterator<Item = &'a String>) -> CtlError {
    let names: Vec<String> = clusters.map(|name| printable(name)).collect();
    let names = names.join(", ");
    CtlError::Usage(format!(
        "several clusters of this shard ask for the same: {names}; name yours with --cluster"
    ))
}

fn answer(explained: &ExplanationRecord) -> NeedAnswer {
    let need = &explained.need;
    let useful = explained.changes.iter().filter(|it| it.mark != "no use");
    let tried: Vec<String> = useful
        .map(|it| format!("{}: {}", it.mark, it.text))
        .collect();
    let texts: BTreeSet<&str> = explained
        .changes
        .iter()
        .map(|it| it.text.as_str())
        .collect();
    let is_new = |advice: &&String| !texts.iter().any(|text| advice.starts_with(text));
    let advice = explained.remedies.iter().filter(is_new).cloned();
    NeedAnswer {
        cluster: need.cluster.clone(),
        name: need.need.clone(),
        summary: explained.summary.clone(),
        is_served: need.is_served(),
        is_coming: need.status() == "coming",
        causes: explained.causes.clone(),
        changes: tried.into_iter().chain(advice).collect(),
    }
}

/// Where a machine stands, and whose it is; `None` if the shard does not know it.
async fn machine(client: &Client, id: &str) -> Result<Option<(String, String)>, CtlError> {
    let mut found = None;
    let request = wire::InspectMachinesRequest {
        machine_ids: vec![id.to_owned()],
        ..wire::InspectMachinesRequest::default()
    };
    let each = |view: wire::MachineView| found = Some(MachineRecord::from(&view));
    let header = client.machines(request, each).await?;
    let now = header.answered_at_unix_nanos;
    Ok(found.map(|machine: MachineRecord| {
        let mut text = format!("machine {} is {}", machine.id, machine.state);
        let since = ago(now, machine.state_since);
        if !since.is_empty() {
            text += &format!(" for {since}");
        }
        if let Some(work) = &machine.work {
            text += &format!(", {work} is under way");
        }
        if !machine.last_error.is_empty() {
            text += &format!(", last error: {}", machine.last_error);
        }
        let serves = machine.assigned.as_ref().or(machine.intent.as_ref());
        let cluster = serves.map_or(&machine.cluster, |need| &need.cluster);
        (text, cluster.clone())
    }))
}
