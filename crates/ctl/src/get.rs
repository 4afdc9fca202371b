//! `get`: lists of what a shard holds and does.
//!
//! ```text
//! resource, names, cluster, -l ─▶ request, as narrow as the protocol allows ─▶ filtered, sorted ─▶ list
//! ```

use std::str::FromStr;
use std::time::Duration;

use bigfleet_model::State;
use bigfleet_wire::v1alpha1 as wire;
use serde_json::Value;

use crate::client::Client;
use crate::coordinator::{CoordinatorSource, ownership};
use crate::error::CtlError;
use crate::events::events;
use crate::json_path::{Path, PathRefused};
use crate::listable::Shortfall;
use crate::output::{Answer, AnswerSource, Form, ListSource, Listable, Style, list, single, value};
use crate::record::{
    ActionRecord, ClusterOwnerRecord, ClusterRecord, DomainRecord, DrainRecord, InstructionRecord,
    MachineRecord, NeedRecord, PauseRecord, ReplicaRecord, ReportRecord, WorkRecord, holds,
};
use crate::select::{Fact, Selector, Usage};
use crate::text::printable;
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
    /// Machines that are to leave: how far each is, what takes its place, what is in the way.
    #[cfg_attr(feature = "flags", value(aliases = ["drain", "dr"]))]
    Drains,
    /// Everything that holds something back now: rails, breakers, pauses; which cluster, since when and why.
    #[cfg_attr(feature = "flags", value(aliases = ["rail"]))]
    Rails,
    /// What changed: sessions, demand, rails, pauses, the provider, machines lost; oldest first.
    #[cfg_attr(feature = "flags", value(aliases = ["event", "ev"]))]
    Events,
    /// The shards the coordinator knows, and what each has.
    #[cfg_attr(feature = "flags", value(aliases = ["shard", "sh"]))]
    Shards,
    /// The domains (all machines with one value of a label): which shard shall have each, and which has it.
    #[cfg_attr(feature = "flags", value(aliases = ["domain", "dom"]))]
    Domains,
    /// The replicas of the coordinator, and which of them leads.
    #[cfg_attr(feature = "flags", value(aliases = ["replica", "rep"]))]
    Replicas,
    /// What the coordinator told shards to do and they have not answered.
    #[cfg_attr(feature = "flags", value(aliases = ["instruction", "ins"]))]
    Instructions,
    /// The newest report of each shard to the coordinator.
    #[cfg_attr(feature = "flags", value(aliases = ["report"]))]
    Reports,
}

impl Resource {
    /// Whether the coordinator is asked, and no shard.
    pub fn is_of_coordinator(self) -> bool {
        match self {
            Self::Shards | Self::Domains | Self::Replicas | Self::Instructions | Self::Reports => {
                true
            }
            Self::Clusters
            | Self::Needs
            | Self::Machines
            | Self::Work
            | Self::Actions
            | Self::Shortfalls
            | Self::Pauses
            | Self::Drains
            | Self::Rails
            | Self::Events => false,
        }
    }
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
    /// Keys of the selector that have to be columns, and not labels.
    pub columns: Vec<String>,
    /// What comes first.
    pub sort_by: Option<SortKey>,
    /// At most this many; 0 for all.
    pub limit: usize,
    /// Of events: only those of so long ago or later; zero for all that are kept.
    pub since: Duration,
}

/// What a list is sorted by: a path into each entry, or one of the keys it can be selected by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// As in `.price_per_hour` or `{.state}`.
    Path(Path),
    /// As in `price`.
    Key(String),
}

impl FromStr for SortKey {
    type Err = PathRefused;

    fn from_str(text: &str) -> Result<Self, PathRefused> {
        if text.starts_with(['.', '{', '$']) {
            text.parse().map(Self::Path)
        } else {
            Ok(Self::Key(text.to_owned()))
        }
    }
}

/// A list, and each of its entries by name: whoever watches compares them.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) answer: Answer,
    pub(crate) entries: Vec<ListedEntry>,
}

/// One entry: its name, what makes it differ from before, and its lines.
#[derive(Clone, Debug)]
pub(crate) struct ListedEntry {
    pub(crate) name: String,
    pub(crate) state: Value,
}

/// Asks for a list, and writes it.
pub async fn get(
    client: &Client,
    resource: Resource,
    selection: &Selection,
    style: &Style,
) -> Result<Answer, CtlError> {
    Ok(get_listed(client, resource, selection, style).await?.answer)
}

pub(crate) async fn get_listed(
    client: &Client,
    resource: Resource,
    selection: &Selection,
    style: &Style,
) -> Result<Listed, CtlError> {
    let listed = listed(client, resource, selection, style).await?;
    // Nothing of a cluster that is not there is not the same as nothing.
    let is_of_shard = !resource.is_of_coordinator() && client.only_coordinator().is_none();
    if listed.entries.is_empty() && !selection.cluster.is_empty() && is_of_shard {
        let (header, known) = client.clusters(&selection.cluster).await?;
        if known.is_empty() {
            return Err(not_found::<ClusterRecord>(
                &selection.cluster,
                &AnswerSource::from(header),
            ));
        }
    }
    Ok(listed)
}

async fn listed(
    client: &Client,
    resource: Resource,
    selection: &Selection,
    style: &Style,
) -> Result<Listed, CtlError> {
    match resource {
        Resource::Clusters => {
            if let Some(coordinator) = client.only_coordinator() {
                let clusters = coordinator.clusters().await?.into_iter();
                let items: Vec<ClusterOwnerRecord> = clusters.map(Into::into).collect();
                let source = CoordinatorSource::of(coordinator);
                return answer(items, &source, selection, style);
            }
            let (items, source) = clusters(client, selection).await?;
            answer(items, &source, selection, style)
        }
        Resource::Shards => {
            let coordinator = client.coordinator()?;
            let items = ownership(coordinator).await?.shards;
            let source = CoordinatorSource::of(coordinator);
            answer(items, &source, selection, style)
        }
        Resource::Domains => {
            let coordinator = client.coordinator()?;
            let domains = coordinator.domains().await?;
            let items: Vec<DomainRecord> = domains.iter().map(Into::into).collect();
            let source = CoordinatorSource::of(coordinator);
            answer(items, &source, selection, style)
        }
        Resource::Replicas => {
            let coordinator = client.coordinator()?;
            let replicas = coordinator.replicas().await?.into_iter();
            let items: Vec<ReplicaRecord> = replicas.map(Into::into).collect();
            let source = CoordinatorSource::of(coordinator);
            answer(items, &source, selection, style)
        }
        Resource::Instructions => {
            let coordinator = client.coordinator()?;
            let pending = coordinator.instructions().await?.into_iter();
            let items: Vec<InstructionRecord> = pending.map(Into::into).collect();
            let source = CoordinatorSource::of(coordinator);
            answer(items, &source, selection, style)
        }
        Resource::Reports => {
            let coordinator = client.coordinator()?;
            let reports = coordinator.reports().await?;
            let items: Vec<ReportRecord> = reports.iter().map(Into::into).collect();
            let source = CoordinatorSource {
                unready: Some("no shard has reported to this leader"),
                ..CoordinatorSource::of(coordinator)
            };
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
        Resource::Drains => {
            let (items, source) = drains(client, selection).await?;
            answer(items, &source, selection, style)
        }
        Resource::Events => {
            let (items, source) = events(client, selection).await?;
            answer(items, &source, selection, style)
        }
        Resource::Rails => {
            let rails = client.rails().await?;
            let items = holds(&rails);
            let source = AnswerSource::from(rails.header.unwrap_or_default());
            answer(items, &source, selection, style)
        }
    }
}

/// Filters the entries, applies the limit, writes the list.
fn answer<T: Listable>(
    items: Vec<T>,
    source: &impl ListSource,
    selection: &Selection,
    style: &Style,
) -> Result<Listed, CtlError> {
    check::<T>(selection, style)?;
    let mut usage = Usage::of(&selection.selector);
    items
        .iter()
        .for_each(|item| usage.see(|key| item.fact(key)));
    usable::<T>(&usage)?;
    let mut items = items;
    items.retain(|item| is_selected(item, selection));
    let missing = |name: &&String| !items.iter().any(|item| item.is_called(name));
    let missing = selection.names.iter().find(missing);
    let failed = missing.map(|name| not_found::<T>(name, source));
    if let (Some(failed), true) = (&failed, items.is_empty()) {
        return Err(failed.clone());
    }
    if let Some(key) = &selection.sort_by {
        sort(&mut items, key)?;
    }
    let mut notes = Vec::new();
    let total = source.total().unwrap_or(items.len());
    if 0 < selection.limit && selection.limit < total {
        notes.push(format!("{} of {total} {}", selection.limit, T::MANY));
        items.truncate(selection.limit);
    }
    // Where something is wrong with the whole shard, that comes first, and on the same stream.
    let is_table = matches!(style.form, Form::Table | Form::Wide);
    let is_trouble = is_table && !source.first().is_empty();
    let nothing = nothing::<T>(source, selection.is_everything());
    if items.is_empty() && !is_trouble {
        notes.push(nothing.clone());
    }
    // One that was named is shown by itself, as kubectl does.
    let single_item = match (items.as_slice(), selection.names.len()) {
        ([one], 1) => Some(one),
        _ => None,
    };
    let text = match single_item {
        Some(one) => single(one, source, style),
        None if items.is_empty() && is_trouble => list(&items, source, style) + &nothing + "\n",
        None => list(&items, source, style),
    };
    let entry = |item: &T| ListedEntry {
        name: item.name(),
        state: value(item),
    };
    let entries = items.iter().map(entry).collect();
    let answer = Answer {
        text,
        notes,
        failed,
    };
    Ok(Listed { answer, entries })
}

/// Whether every key of --field-selector is a column of this kind.
fn check_columns<T: Listable>(selection: &Selection) -> Result<(), CtlError> {
    let known = |key: &&String| T::KEYS.contains(&key.as_str());
    match selection.columns.iter().find(|key| !known(key)) {
        None => Ok(()),
        Some(key) => Err(CtlError::Usage(format!(
            "--field-selector: no {} has a field \"{key}\"; there is {}",
            T::ONE,
            T::KEYS.join(", ")
        ))),
    }
}

/// Whether records of this kind have what is asked for.
fn check<T: Listable>(selection: &Selection, style: &Style) -> Result<(), CtlError> {
    check_columns::<T>(selection)?;
    let wants_labels = style.show_labels || !style.label_columns.is_empty();
    if wants_labels && !T::HAS_LABELS {
        let many = T::MANY;
        let text = format!("-L and --show-labels: {many} have no labels, machines do");
        return Err(CtlError::Usage(text));
    }
    Ok(())
}

/// Whether every part of a selector can mean something.
fn usable<T: Listable>(usage: &Usage<'_>) -> Result<(), CtlError> {
    match usage.problem(T::ONE, T::KEYS) {
        Some(problem) => Err(CtlError::Usage(format!("-l: {problem}"))),
        None => Ok(()),
    }
}

/// Numbers by size, the rest by text, what has nothing there last.
fn sort<T: Listable>(items: &mut [T], key: &SortKey) -> Result<(), CtlError> {
    let found = |item: &T| match key {
        SortKey::Path(path) => path
            .text(&value(item), ",")
            .map(|text| Fact::Texts(vec![text])),
        SortKey::Key(key) => item.fact(key),
    };
    if !items.is_empty() && items.iter().all(|item| found(item).is_none()) {
        return Err(CtlError::Usage(format!(
            "--sort-by: no {} has that; give a path such as .{} or one of {}",
            T::ONE,
            T::KEYS.first().unwrap_or(&"name"),
            T::KEYS.join(", ")
        )));
    }
    items.sort_by_cached_key(|item| {
        let found = found(item);
        let number = found.as_ref().and_then(Fact::number);
        // Orders like the number itself, and is an Ord.
        let bits = number.map(|number| {
            let bits = number.to_bits().cast_signed();
            bits ^ (((bits >> 63).cast_unsigned() >> 1).cast_signed())
        });
        let text = found.as_ref().map(Fact::shown);
        (text.is_none(), bits.is_none(), bits, text, item.name())
    });
    Ok(())
}

fn is_selected<T: Listable>(item: &T, selection: &Selection) -> bool {
    let named =
        selection.names.is_empty() || selection.names.iter().any(|name| item.is_called(name));
    named && selection.selector.admits(|key| item.fact(key))
}

fn nothing<T: Listable>(source: &impl ListSource, is_everything: bool) -> String {
    match source.unready() {
        Some(why) => format!("no {} yet: {why}; ask again in a few seconds", T::MANY),
        None => match T::NOTHING.filter(|_| is_everything) {
            Some(nothing) => nothing.to_owned(),
            None => format!("no {} found", T::MANY),
        },
    }
}

pub(crate) fn not_found<T: Listable>(name: &str, source: &impl ListSource) -> CtlError {
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
    /// Whether nothing is left out.
    fn is_everything(&self) -> bool {
        self.names.is_empty() && self.cluster.is_empty() && self.selector.is_empty()
    }

    /// The limit the shard may apply for us; 0, which is none, where entries are still filtered here.
    pub(crate) fn limit_there(&self) -> i32 {
        let all =
            self.names.is_empty() && self.selector == Selector::default() && self.sort_by.is_none();
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
    check_columns::<NeedRecord>(selection)?;
    let mut items = Vec::new();
    let mut usage = Usage::of(&selection.selector);
    let each = |view: wire::NeedView| {
        let need = NeedRecord::from(&view);
        usage.see(|key| need.fact(key));
        if is_selected(&need, selection) {
            items.push(need);
        }
    };
    let header = client.needs(&selection.cluster, each).await?;
    usable::<NeedRecord>(&usage)?;
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
    let states: Result<Vec<i32>, CtlError> = states.map(|word| state(word)).collect();
    let request = wire::InspectMachinesRequest {
        cluster_id: selection.cluster.clone(),
        machine_ids: selection.names.clone(),
        instance_type: one(&["type", "instance-type", bigfleet_model::INSTANCE_TYPE_KEY]),
        zone: one(&["zone", bigfleet_model::ZONE_KEY]),
        states: states?,
        limit: selection.limit_there(),
        ..wire::InspectMachinesRequest::default()
    };
    check_columns::<MachineRecord>(selection)?;
    let mut items = Vec::new();
    let mut usage = Usage::of(&selection.selector);
    let each = |view: wire::MachineView| {
        let machine = MachineRecord::from(&view);
        usage.see(|key| machine.fact(key));
        if is_selected(&machine, selection) {
            items.push(machine);
        }
    };
    let header = client.machines(request, each).await?;
    usable::<MachineRecord>(&usage)?;
    Ok((items, selection.source(header)))
}

/// Machines that are to leave.
async fn drains(
    client: &Client,
    selection: &Selection,
) -> Result<(Vec<DrainRecord>, AnswerSource), CtlError> {
    let request = wire::InspectMachinesRequest {
        cluster_id: selection.cluster.clone(),
        limit: selection.limit_there(),
        leaving_only: true,
        ..wire::InspectMachinesRequest::default()
    };
    let mut items = Vec::new();
    let each = |view: wire::MachineView| {
        let machine = MachineRecord::from(&view);
        // A shard that does not know the question shows every machine.
        items.extend(machine.leaving.map(|leaving| DrainRecord {
            machine: machine.id,
            state: machine.state,
            cluster: machine.cluster,
            leaving,
        }));
    };
    let header = client.machines(request, each).await?;
    Ok((items, selection.source(header)))
}

fn state(word: &str) -> Result<i32, CtlError> {
    let known = State::ALL.into_iter();
    let mut called = known.filter(|state| state.word().eq_ignore_ascii_case(word));
    called.next().map(State::number).ok_or_else(|| {
        let words = State::ALL.map(|state| state.word()).join(", ");
        CtlError::Usage(format!(
            "\"{}\" is not a state: there is {words}",
            printable(word)
        ))
    })
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
