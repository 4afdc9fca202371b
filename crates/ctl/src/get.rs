//! `get`: lists of what a shard holds and does.
//!
//! ```text
//! resource, names, cluster, -l ─▶ request, as narrow as the protocol allows ─▶ filtered here ─▶ list
//! ```

use std::time::Duration;

use bigfleet_model::State;
use bigfleet_wire::v1alpha1 as wire;

use crate::client::Client;
use crate::error::CtlError;
use crate::events::events;
use crate::listable::Shortfall;
use crate::output::{Answer, AnswerSource, Form, Listable, Style, json, list, yaml};
use crate::record::{
    ActionRecord, ClusterRecord, MachineRecord, NeedRecord, PauseRecord, WorkRecord, holds,
};
use crate::select::Selector;
use crate::when::moment;

/// What can be listed, by its singular, its plural or a short name, as with kubectl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
pub enum Resource {
    /// The clusters the shard serves.
    #[cfg_attr(feature = "flags", value(aliases = ["cluster", "cl"]))]
    Clusters,
    /// What clusters ask for (their Needs), and whether they have it.
    #[cfg_attr(feature = "flags", value(aliases = ["need", "nd"]))]
    Needs,
    /// The machines the shard manages, those that could be bought included.
    #[cfg_attr(feature = "flags", value(aliases = ["machine", "ma"]))]
    Machines,
    /// Operations in progress and what each waits for, oldest first.
    #[cfg_attr(feature = "flags", value(aliases = ["operation", "operations", "wo"]))]
    Work,
    /// Recent decisions and what came of them, newest first.
    #[cfg_attr(feature = "flags", value(aliases = ["action", "ac"]))]
    Actions,
    /// The Needs of which something is missing or stuck, for how long, and why.
    #[cfg_attr(feature = "flags", value(aliases = ["shortfall", "sf"]))]
    Shortfalls,
    /// The pauses in force: what the shard may not change, until when and why.
    #[cfg_attr(feature = "flags", value(aliases = ["pause", "pa"]))]
    Pauses,
    /// Everything that holds something back now: rails, breakers, pauses; which cluster, since when and why.
    #[cfg_attr(feature = "flags", value(aliases = ["rail"]))]
    Rails,
    /// What changed: sessions, demand, rails, pauses, the provider, machines lost; oldest first.
    #[cfg_attr(feature = "flags", value(aliases = ["event", "ev"]))]
    Events,
}

/// Which entries of a list are meant.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only those with one of these names; empty for all.
    pub names: Vec<String>,
    /// Only what concerns this cluster; empty for all.
    pub cluster: String,
    /// Only those the selector admits.
    pub selector: Selector,
    /// At most this many; 0 for all.
    pub limit: usize,
    /// Of events: only those of so long ago or later; zero for all that are kept.
    pub since: Duration,
}

/// Asks for a list, and writes it.
pub async fn get(
    client: &Client,
    resource: Resource,
    selection: &Selection,
    style: Style,
) -> Result<Answer, CtlError> {
    match resource {
        Resource::Clusters => {
            let (items, source) = clusters(client, selection).await?;
            answer(items, &source, selection, style)
        }
        Resource::Needs => {
            let (items, source) = needs(client, selection).await?;
            answer(items, &source, selection, style)
        }
        Resource::Shortfalls => {
            let (items, source) = needs(client, selection).await?;
            let is_short = |need: &NeedRecord| !need.missing.is_empty() || !need.stuck.is_empty();
            let short = items.into_iter().filter(is_short);
            answer(short.map(Shortfall).collect(), &source, selection, style)
        }
        Resource::Machines => {
            let (items, source) = machines(client, selection).await?;
            answer(items, &source, selection, style)
        }
        Resource::Work => {
            let (items, source) = work(client, selection).await?;
            answer(items, &source, selection, style)
        }
        Resource::Actions => {
            let (items, source) = actions(client, selection, "").await?;
            answer(items, &source, selection, style)
        }
        Resource::Pauses => {
            let (items, source) = pauses(client).await?;
            answer(items, &source, selection, style)
        }
        Resource::Events => {
            let (items, source) = events(client, selection).await?;
            answer(items, &source, selection, style)
        }
        Resource::Rails => {
            let rails = client.rails().await?;
            let items = holds(&rails);
            let source = rails.header.unwrap_or_default().into();
            answer(items, &source, selection, style)
        }
    }
}

/// Filters the entries, applies the limit, writes the list.
fn answer<T: Listable>(
    items: Vec<T>,
    source: &AnswerSource,
    selection: &Selection,
    style: Style,
) -> Result<Answer, CtlError> {
    let mut items = items;
    items.retain(|item| is_selected(item, selection));
    let missing = |name: &&String| !items.iter().any(|item| item.is_called(name));
    if let Some(name) = selection.names.iter().find(missing) {
        return Err(not_found::<T>(name, source));
    }
    let mut notes = Vec::new();
    let total = source.total.unwrap_or(items.len());
    if 0 < selection.limit && selection.limit < total {
        notes.push(format!("{} of {total} {}", selection.limit, T::MANY));
        items.truncate(selection.limit);
    }
    if items.is_empty() {
        notes.push(nothing::<T>(source));
    }
    // One that was named is shown by itself, as kubectl does.
    let single = match (items.as_slice(), selection.names.len()) {
        ([one], 1) => Some(one),
        _ => None,
    };
    let text = match (single, style.form) {
        (Some(one), Form::Json) => json(one),
        (Some(one), Form::Yaml) => yaml(one),
        _ => list(&items, source, style),
    };
    Ok(Answer { text, notes })
}

fn is_selected<T: Listable>(item: &T, selection: &Selection) -> bool {
    let named =
        selection.names.is_empty() || selection.names.iter().any(|name| item.is_called(name));
    named && selection.selector.admits(|key| item.fact(key))
}

fn nothing<T: Listable>(source: &AnswerSource) -> String {
    match source.unready() {
        Some(why) => format!("no {} yet: {why}; ask again in a few seconds", T::MANY),
        None => format!("no {} found", T::MANY),
    }
}

pub(crate) fn not_found<T: Listable>(name: &str, source: &AnswerSource) -> CtlError {
    let hint = match source.unready() {
        Some(why) => format!("; {why}, ask again in a few seconds"),
        None => format!("; `bigfleet get {}` lists what there is", T::MANY),
    };
    CtlError::NotFound {
        kind: T::ONE,
        name: name.to_owned(),
        hint,
    }
}

impl From<wire::InspectHeader> for AnswerSource {
    fn from(header: wire::InspectHeader) -> Self {
        Self {
            shard: crate::record::some(&header.shard_id),
            cycle: header.cycle,
            computed_at: moment(header.computed_at_unix_nanos),
            answered_at: moment(header.answered_at_unix_nanos),
            troubles: header.troubles,
            not_ready: header.not_ready,
            total: None,
        }
    }
}

impl Selection {
    /// The limit the shard may apply for us; 0, which is none, where entries are still filtered here.
    pub(crate) fn limit_there(&self) -> i32 {
        let all = self.names.is_empty() && self.selector == Selector::default();
        if all {
            i32::try_from(self.limit).unwrap_or(0)
        } else {
            0
        }
    }

    /// Who answered, with how many entries there were before the limit.
    pub(crate) fn source(&self, header: wire::InspectHeader) -> AnswerSource {
        let total = usize::try_from(header.total).ok();
        AnswerSource {
            total: total.filter(|_| self.limit_there() != 0),
            ..header.into()
        }
    }
}

/// The clusters, or only the one that is named.
pub(crate) async fn clusters(
    client: &Client,
    selection: &Selection,
) -> Result<(Vec<ClusterRecord>, AnswerSource), CtlError> {
    let only = match (selection.cluster.as_str(), selection.names.as_slice()) {
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
    selection: &Selection,
) -> Result<(Vec<NeedRecord>, AnswerSource), CtlError> {
    let mut items = Vec::new();
    let each = |view: wire::NeedView| {
        let need = NeedRecord::from(&view);
        if is_selected(&need, selection) {
            items.push(need);
        }
    };
    let header = client.needs(&selection.cluster, each).await?;
    let source = AnswerSource {
        shard: crate::record::some(&header.shard_id),
        cycle: header.cycle,
        computed_at: moment(header.computed_at_unix_nanos),
        answered_at: moment(header.answered_at_unix_nanos),
        troubles: header.troubles,
        not_ready: header.not_ready,
        total: None,
    };
    Ok((items, source))
}

/// Machines. The shard filters by what its protocol can express.
pub(crate) async fn machines(
    client: &Client,
    selection: &Selection,
) -> Result<(Vec<MachineRecord>, AnswerSource), CtlError> {
    let selector = &selection.selector;
    let one = |keys: &[&str]| match selector.allowed_values(keys) {
        Some([one]) => one.clone(),
        _ => String::new(),
    };
    let states = selector
        .allowed_values(&["state"])
        .unwrap_or_default()
        .iter();
    let states: Option<Vec<i32>> = states.map(|word| state(word)).collect();
    let request = wire::InspectMachinesRequest {
        cluster_id: selection.cluster.clone(),
        machine_ids: selection.names.clone(),
        instance_type: one(&["type", "instance-type", bigfleet_model::INSTANCE_TYPE_KEY]),
        zone: one(&["zone", bigfleet_model::ZONE_KEY]),
        // A word that is no state matches no machine; the filter on this side makes sure of that.
        states: states.unwrap_or_default(),
        limit: selection.limit_there(),
        ..wire::InspectMachinesRequest::default()
    };
    let mut items = Vec::new();
    let each = |view: wire::MachineView| {
        let machine = MachineRecord::from(&view);
        if is_selected(&machine, selection) {
            items.push(machine);
        }
    };
    let header = client.machines(request, each).await?;
    Ok((items, selection.source(header)))
}

fn state(word: &str) -> Option<i32> {
    let known = State::ALL.into_iter();
    let mut called = known.filter(|state| state.word().eq_ignore_ascii_case(word));
    called.next().map(State::number)
}

/// Operations in flight, oldest first.
pub(crate) async fn work(
    client: &Client,
    selection: &Selection,
) -> Result<(Vec<WorkRecord>, AnswerSource), CtlError> {
    let request = wire::InspectWorkRequest {
        cluster_id: selection.cluster.clone(),
        limit: selection.limit_there(),
        ..wire::InspectWorkRequest::default()
    };
    let (header, views) = client.work(request).await?;
    let items = views.iter().map(WorkRecord::from).collect();
    Ok((items, selection.source(header)))
}

/// Decisions, newest first; only those about `machine`, unless it is empty.
pub(crate) async fn actions(
    client: &Client,
    selection: &Selection,
    machine: &str,
) -> Result<(Vec<ActionRecord>, AnswerSource), CtlError> {
    let request = wire::InspectActionsRequest {
        cluster_id: selection.cluster.clone(),
        machine_id: machine.to_owned(),
        limit: selection.limit_there(),
        ..wire::InspectActionsRequest::default()
    };
    let (header, views) = client.actions(request).await?;
    let items = views.iter().map(ActionRecord::from).collect();
    Ok((items, selection.source(header)))
}

/// The pauses in force.
pub(crate) async fn pauses(client: &Client) -> Result<(Vec<PauseRecord>, AnswerSource), CtlError> {
    let rails = client.rails().await?;
    let items = rails.pauses.iter().map(PauseRecord::from).collect();
    Ok((items, rails.header.unwrap_or_default().into()))
}
