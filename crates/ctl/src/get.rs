//! `get`: lists of what a shard holds and does.
//!
//! ```text
//! kind, names, cluster, -l ─▶ asked as narrowly as the shard can ─▶ the rest sieved here ─▶ list
//! ```

use bigfleet_model::State;
use bigfleet_wire::v1alpha1 as wire;

use crate::client::Client;
use crate::output::{Answer, Form, Shown, Style, Taken, json, list, yaml};
use crate::record::{
    ActionRecord, ClusterRecord, MachineRecord, NeedRecord, PauseRecord, WorkRecord,
};
use crate::select::Selector;
use crate::shown::Shortfall;
use crate::trouble::Trouble;
use crate::when::moment;

/// What can be listed; one or several, or a short name, as with kubectl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
pub enum Kind {
    /// The clusters the shard serves.
    #[cfg_attr(feature = "flags", value(aliases = ["cluster", "cl"]))]
    Clusters,
    /// What they need, and whether they have it.
    #[cfg_attr(feature = "flags", value(aliases = ["need", "nd"]))]
    Needs,
    /// The machines the shard holds.
    #[cfg_attr(feature = "flags", value(aliases = ["machine", "ma"]))]
    Machines,
    /// What is under way, and what it waits for, oldest first.
    #[cfg_attr(feature = "flags", value(aliases = ["operation", "operations", "wo"]))]
    Work,
    /// What it decided lately, newest first.
    #[cfg_attr(feature = "flags", value(aliases = ["action", "ac"]))]
    Actions,
    /// Needs that are short, and why.
    #[cfg_attr(feature = "flags", value(aliases = ["shortfall", "sf"]))]
    Shortfalls,
    /// The pauses in force.
    #[cfg_attr(feature = "flags", value(aliases = ["pause", "pa"]))]
    Pauses,
}

/// Which of them.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only those that are called so; empty for all.
    pub names: Vec<String>,
    /// Only what concerns this cluster; empty for all.
    pub cluster: String,
    /// Only what this admits.
    pub selector: Selector,
    /// At most so many; 0 for all.
    pub limit: usize,
}

/// Asks for a list, and writes it.
pub async fn get(
    client: &Client,
    kind: Kind,
    wanted: &Wanted,
    style: Style,
) -> Result<Answer, Trouble> {
    match kind {
        Kind::Clusters => {
            let (items, taken) = clusters(client, wanted).await?;
            answer(items, &taken, wanted, style)
        }
        Kind::Needs => {
            let (items, taken) = needs(client, wanted).await?;
            answer(items, &taken, wanted, style)
        }
        Kind::Shortfalls => {
            let (items, taken) = needs(client, wanted).await?;
            let short = items.into_iter().filter(|need| !need.satisfied);
            answer(short.map(Shortfall).collect(), &taken, wanted, style)
        }
        Kind::Machines => {
            let (items, taken) = machines(client, wanted).await?;
            answer(items, &taken, wanted, style)
        }
        Kind::Work => {
            let (items, taken) = work(client, wanted).await?;
            answer(items, &taken, wanted, style)
        }
        Kind::Actions => {
            let (items, taken) = actions(client, wanted, "").await?;
            answer(items, &taken, wanted, style)
        }
        Kind::Pauses => {
            let (items, taken) = pauses(client).await?;
            answer(items, &taken, wanted, style)
        }
    }
}

/// Sieves, cuts and writes.
fn answer<T: Shown>(
    items: Vec<T>,
    taken: &Taken,
    wanted: &Wanted,
    style: Style,
) -> Result<Answer, Trouble> {
    let mut items = items;
    items.retain(|item| is_wanted(item, wanted));
    let missing = |name: &&String| !items.iter().any(|item| item.is_called(name));
    if let Some(name) = wanted.names.iter().find(missing) {
        return Err(not_found::<T>(name, taken));
    }
    let mut notes = Vec::new();
    let total = taken.total.unwrap_or(items.len());
    if 0 < wanted.limit && wanted.limit < total {
        notes.push(format!("{} of {total} {}", wanted.limit, T::MANY));
        items.truncate(wanted.limit);
    }
    if items.is_empty() {
        notes.push(nothing::<T>(taken));
    }
    // One that was named is shown by itself, as kubectl does.
    let single = match (items.as_slice(), wanted.names.len()) {
        ([one], 1) => Some(one),
        _ => None,
    };
    let text = match (single, style.form) {
        (Some(one), Form::Json) => json(one),
        (Some(one), Form::Yaml) => yaml(one),
        _ => list(&items, taken, style),
    };
    Ok(Answer { text, notes })
}

fn is_wanted<T: Shown>(item: &T, wanted: &Wanted) -> bool {
    let named = wanted.names.is_empty() || wanted.names.iter().any(|name| item.is_called(name));
    named && wanted.selector.admits(|key| item.fact(key))
}

fn nothing<T: Shown>(taken: &Taken) -> String {
    match taken.cycle {
        0 => format!("no {} yet: the shard has not run a cycle", T::MANY),
        _ => format!("no {} found", T::MANY),
    }
}

pub(crate) fn not_found<T: Shown>(name: &str, taken: &Taken) -> Trouble {
    let hint = match taken.cycle {
        0 => "; the shard has not run a cycle yet".to_owned(),
        _ => format!("; `bigfleet get {}` lists what there is", T::MANY),
    };
    Trouble::NotFound {
        kind: T::ONE,
        name: name.to_owned(),
        hint,
    }
}

impl From<wire::InspectHeader> for Taken {
    fn from(header: wire::InspectHeader) -> Self {
        Self {
            shard: crate::record::some(&header.shard_id),
            cycle: header.cycle,
            computed_at: moment(header.computed_at_unix_nanos),
            total: None,
        }
    }
}

impl Wanted {
    /// The limit, if the shard can apply it: where nothing is sieved here. 0 is none.
    fn limit_there(&self) -> i32 {
        let all = self.names.is_empty() && self.selector == Selector::default();
        if all {
            i32::try_from(self.limit).unwrap_or(0)
        } else {
            0
        }
    }

    /// What was taken, with how many there were before the limit.
    fn taken(&self, header: wire::InspectHeader) -> Taken {
        let total = usize::try_from(header.total).ok();
        Taken {
            total: total.filter(|_| self.limit_there() != 0),
            ..header.into()
        }
    }
}

/// The clusters, or the one that is meant.
pub(crate) async fn clusters(
    client: &Client,
    wanted: &Wanted,
) -> Result<(Vec<ClusterRecord>, Taken), Trouble> {
    let only = match (wanted.cluster.as_str(), wanted.names.as_slice()) {
        ("", [one]) => one,
        (cluster, _) => cluster,
    };
    let (header, views) = client.clusters(only).await?;
    let items = views.iter().map(ClusterRecord::from).collect();
    Ok((items, header.into()))
}

/// The Needs of a cluster or of all.
pub(crate) async fn needs(
    client: &Client,
    wanted: &Wanted,
) -> Result<(Vec<NeedRecord>, Taken), Trouble> {
    let mut items = Vec::new();
    let each = |view: wire::NeedView| {
        let need = NeedRecord::from(&view);
        if is_wanted(&need, wanted) {
            items.push(need);
        }
    };
    let header = client.needs(&wanted.cluster, each).await?;
    let taken = Taken {
        shard: None,
        cycle: header.cycle,
        computed_at: moment(header.computed_at_unix_nanos),
        total: None,
    };
    Ok((items, taken))
}

/// Machines. What the shard can sieve by itself it is asked to.
pub(crate) async fn machines(
    client: &Client,
    wanted: &Wanted,
) -> Result<(Vec<MachineRecord>, Taken), Trouble> {
    let selector = &wanted.selector;
    let one = |keys: &[&str]| match selector.wanted(keys) {
        Some([one]) => one.clone(),
        _ => String::new(),
    };
    let states = selector.wanted(&["state"]).unwrap_or_default().iter();
    let states: Option<Vec<i32>> = states.map(|word| state(word)).collect();
    let request = wire::InspectMachinesRequest {
        cluster_id: wanted.cluster.clone(),
        machine_ids: wanted.names.clone(),
        instance_type: one(&["type", "instance-type", bigfleet_model::INSTANCE_TYPE_KEY]),
        zone: one(&["zone", bigfleet_model::ZONE_KEY]),
        // A state there is none of is found in no machine; the sieve here says so.
        states: states.unwrap_or_default(),
        limit: wanted.limit_there(),
        ..wire::InspectMachinesRequest::default()
    };
    let mut items = Vec::new();
    let each = |view: wire::MachineView| {
        let machine = MachineRecord::from(&view);
        if is_wanted(&machine, wanted) {
            items.push(machine);
        }
    };
    let header = client.machines(request, each).await?;
    Ok((items, wanted.taken(header)))
}

fn state(word: &str) -> Option<i32> {
    let known = State::ALL.into_iter();
    let mut called = known.filter(|state| state.word().eq_ignore_ascii_case(word));
    called.next().map(State::number)
}

/// Operations in flight, oldest first.
pub(crate) async fn work(
    client: &Client,
    wanted: &Wanted,
) -> Result<(Vec<WorkRecord>, Taken), Trouble> {
    let request = wire::InspectWorkRequest {
        cluster_id: wanted.cluster.clone(),
        limit: wanted.limit_there(),
        ..wire::InspectWorkRequest::default()
    };
    let (header, views) = client.work(request).await?;
    let items = views.iter().map(WorkRecord::from).collect();
    Ok((items, wanted.taken(header)))
}

/// Decisions, newest first; of one machine only, if one is named so.
pub(crate) async fn actions(
    client: &Client,
    wanted: &Wanted,
    machine: &str,
) -> Result<(Vec<ActionRecord>, Taken), Trouble> {
    let request = wire::InspectActionsRequest {
        cluster_id: wanted.cluster.clone(),
        machine_id: machine.to_owned(),
        limit: wanted.limit_there(),
        ..wire::InspectActionsRequest::default()
    };
    let (header, views) = client.actions(request).await?;
    let items = views.iter().map(ActionRecord::from).collect();
    Ok((items, wanted.taken(header)))
}

/// The pauses in force.
pub(crate) async fn pauses(client: &Client) -> Result<(Vec<PauseRecord>, Taken), Trouble> {
    let rails = client.rails().await?;
    let items = rails.pauses.iter().map(PauseRecord::from).collect();
    Ok((items, rails.header.unwrap_or_default().into()))
}
