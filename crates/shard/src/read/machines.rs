//! InspectMachines: the machines the shard holds, by id.
//!
//! ```text
//! pages of the ledger ─▶ the ids that match: so many are promised ─▶ by id, a page at a time ─▶ reader
//! ```
//!
//! The ids are found first, since the header says how many there are. A machine that is gone when its
//! turn comes, or that no longer matches, is left out.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::{ActionKind, Assignment, ClusterId, Intent, Machine, MachineId, State};
use bigfleet_shard_core::{
    MachineFilter, MachineView, PAGE, Page, ShardCore, Unavailable, WorkView,
};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::inspect_machines_response::Frame;
use bigfleet_wire::v1alpha1::{
    self as wire, Attribution, InspectMachinesRequest, InspectMachinesResponse, MachineState,
    WorkKind,
};
use tonic::Status;

use super::stream::{Cut, Out, limited};
use super::{Reads, ShardInfo, cluster_filter, leaving};
use crate::hub::{Hub, Stopping};

/// Ids one request may name.
const MOST_IDS: usize = 10_000;

/// What is asked for, checked.
#[derive(Clone, Debug)]
pub(super) struct MachinesQuery {
    filter: MachineFilter,
    /// These only, by id; empty is any.
    ids: BTreeSet<MachineId>,
    flagged: bool,
    /// Only those that are to leave.
    leaving: bool,
    after: Option<MachineId>,
    limit: i32,
}

impl MachinesQuery {
    pub(super) fn read(request: InspectMachinesRequest) -> Result<Self, Status> {
        let refused = |field: &str, why: &dyn std::fmt::Display| {
            Status::invalid_argument(format!("{field} {why}"))
        };
        if MOST_IDS < request.machine_ids.len() {
            let why = format!("{} ids, not {MOST_IDS} or less", request.machine_ids.len());
            return Err(refused("machine_ids has", &why));
        }
        let ids = request.machine_ids.iter().map(|id| MachineId::new(id));
        let ids = ids.collect::<Result<_, _>>();
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        let after = text(request.after_id).map(|id| MachineId::new(&id));
        let states = request.states.iter().map(|number| {
            let known = State::ALL.into_iter().find(|one| one.number() == *number);
            known.ok_or_else(|| refused("states", &format!("{number} is no state")))
        });
        Ok(Self {
            filter: MachineFilter {
                cluster: cluster_filter(&request.cluster_id)?,
                states: states.collect::<Result<_, _>>()?,
                instance_type: text(request.instance_type),
                zone: text(request.zone),
                // Decided here: the wire's flags are not quite the core's.
                flagged: false,
            },
            ids: ids.map_err(|why| refused("machine_ids", &why))?,
            flagged: request.flagged_only,
            leaving: request.leaving_only,
            after: after.transpose().map_err(|why| refused("after_id", &why))?,
            limit: request.limit,
        })
    }

    fn admits(&self, view: &MachineView) -> bool {
        let (machine, filter) = (&view.machine, &self.filter);
        let shape = machine.shape();
        let is = |wanted: &Option<String>, text: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == text)
        };
        let meant = machine.intent().map(|intent| &intent.need.cluster);
        let of_cluster =
            |wanted: &ClusterId| machine.cluster() == Some(wanted) || meant == Some(wanted);
        (filter.states.is_empty() || filter.states.contains(&machine.state()))
            && is(&filter.instance_type, &shape.instance_type)
            && is(&filter.zone, &shape.zone)
            && filter.cluster.as_ref().is_none_or(of_cluster)
            && (!self.flagged || is_flagged(view))
            && (!self.leaving || view.leaving.is_some())
    }

    /// The ids that match, by id. Those that are to leave are known by name.
    async fn select(&self, hub: &Hub) -> Result<Vec<MachineId>, Stopping> {
        if self.leaving && self.ids.is_empty() {
            let wanted = self.clone();
            let leaving = hub.ask(move |core| {
                let after = wanted.after.as_ref();
                let ids = core.leaving_machines();
                let ids = ids.filter(|id| after.is_none_or(|after| after < *id));
                let views = ids.filter_map(|id| core.machine_view(id));
                let views = views.filter(|view| wanted.admits(view));
                views.map(|view| view.machine.id().clone()).collect()
            });
            return leaving.await;
        }
        if !self.ids.is_empty() {
            let after = self.after.as_ref();
            let named = self
                .ids
                .iter()
                .filter(|id| after.is_none_or(|after| after < *id));
            return Ok(named.cloned().collect());
        }
        let (mut selected, mut after) = (Vec::new(), self.after.clone());
        loop {
            let wanted = self.clone();
            let page = hub.ask(move |core| wanted.page(core, after.as_ref()));
            let page = page.await?;
            selected.extend(page.entries);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(selected),
            }
        }
    }

    fn page(&self, core: &ShardCore, after: Option<&MachineId>) -> Page<MachineId, MachineId> {
        let page = core.machines_page(&self.filter, after);
        let entries = page.entries.iter();
        let entries = entries.filter(|view| self.admits(view));
        Page {
            entries: entries.map(|view| view.machine.id().clone()).collect(),
            next: page.next,
        }
    }
}

fn is_flagged(view: &MachineView) -> bool {
    view.held || view.not_ready || view.unavailable.is_some() || view.refused.is_some()
}

pub(super) async fn send(
    reads: &Reads,
    wanted: MachinesQuery,
    out: &Out<InspectMachinesResponse>,
) -> Result<(), Cut> {
    let frame = |frame| InspectMachinesResponse { frame: Some(frame) };
    let mut ids = wanted.select(&reads.hub).await?;
    if !wanted.ids.is_empty() {
        // Those that are named are looked up rather than searched for.
        let mut known = Vec::new();
        for ids in ids.chunks(PAGE) {
            let views = views(&reads.hub, ids.to_vec()).await?;
            let views = views.iter().filter(|view| wanted.admits(view));
            known.extend(views.map(|view| view.machine.id().clone()));
        }
        ids = known;
    }
    let (info, total) = (Arc::clone(&reads.info), ids.len());
    let header = reads.hub.ask(move |core| info.header(core, total));
    out.send(frame(Frame::Header(header.await?))).await?;
    ids.truncate(limited(wanted.limit, total));
    for ids in ids.chunks(PAGE) {
        for view in views(&reads.hub, ids.to_vec()).await? {
            if wanted.admits(&view) {
                let view = message(&view, &reads.info);
                out.send(frame(Frame::Machine(view))).await?;
            }
        }
    }
    Ok(())
}

async fn views(hub: &Hub, ids: Vec<MachineId>) -> Result<Vec<MachineView>, Stopping> {
    hub.ask(move |core| ids.iter().filter_map(|id| core.machine_view(id)).collect())
        .await
}

/// A machine as readers see it.
pub(crate) fn message(view: &MachineView, info: &ShardInfo) -> wire::MachineView {
    let machine = &view.machine;
    let unavailable = view.unavailable.map(|why| unavailable(why, machine));
    wire::MachineView {
        machine: Some(wire::Machine {
            shard_metadata: Default::default(),
            ..machine.into()
        }),
        attribution: machine
            .cluster()
            .and_then(|cluster| attribution(cluster, machine.assignment())),
        intent: machine.intent().map(intent),
        state_since_unix_nanos: view.state_since.map_or(0, unix_nanos),
        seen_at_unix_nanos: view.seen_at.map_or(0, unix_nanos),
        node_name: view.node_name.clone(),
        provider_address: info.provider_address.clone(),
        unavailable: unavailable.is_some(),
        unavailable_reason: unavailable.unwrap_or_default(),
        not_ready: view.not_ready,
        held: view.held,
        record_refused: view.refused.is_some(),
        refused_reason: view.refused.clone().unwrap_or_default(),
        reserved_for_transfer: false,
        work: view.work.map_or(WorkKind::Unspecified, kind).into(),
        leaving: leaving::message(view, info.now()),
    }
}

fn unavailable(why: Unavailable, machine: &Machine) -> String {
    match why {
        Unavailable::Unconfirmed => {
            "what its provider shows of it is not confirmed yet (SH-9)".to_owned()
        }
        Unavailable::PoolBackoff => {
            let shape = machine.shape();
            let (kind, zone) = (&shape.instance_type, &shape.zone);
            format!("its pool, type \"{kind}\" in zone \"{zone}\", failed lately (SH-11)")
        }
    }
}

/// What an action does to its machine first.
pub(super) fn kind(action: ActionKind) -> WorkKind {
    match action {
        ActionKind::Provision => WorkKind::Create,
        ActionKind::Bootstrap => WorkKind::Configure,
        ActionKind::Preempt | ActionKind::Reclaim | ActionKind::Restore => WorkKind::Drain,
        ActionKind::Delete => WorkKind::Delete,
    }
}

/// The state as the wire has it.
pub(super) fn state(state: State) -> i32 {
    MachineState::from(state).into()
}

fn attribution(cluster: &ClusterId, assigned: &Assignment) -> Option<Attribution> {
    let need = assigned.need(cluster)?;
    Some(Attribution {
        cluster_id: need.cluster.to_string(),
        profile_fingerprint: need.fingerprint.to_string(),
        group: need.group.to_string(),
        priority: assigned.terms.priority,
        interruption_penalty_dollars: assigned.terms.interruption.dollars(),
        reclamation_penalty_dollars: assigned.terms.reclamation.dollars(),
        keep_price_per_hour: assigned.keep_price.map(|price| price.dollars_per_hour()),
    })
}

fn intent(intent: &Intent) -> Attribution {
    Attribution {
        cluster_id: intent.need.cluster.to_string(),
        profile_fingerprint: intent.need.fingerprint.to_string(),
        group: intent.need.group.to_string(),
        priority: intent.terms.priority,
        interruption_penalty_dollars: intent.terms.interruption.dollars(),
        reclamation_penalty_dollars: intent.terms.reclamation.dollars(),
        keep_price_per_hour: intent.keep_price.map(|price| price.dollars_per_hour()),
    }
}

/// The Need an operation is for, on the terms its machine has.
pub(super) fn purpose(work: &WorkView, machine: Option<&Machine>) -> Option<Attribution> {
    let need = work.need.as_ref()?;
    let meant = machine.and_then(Machine::intent).map(intent);
    let bound = machine.and_then(|known| attribution(known.cluster()?, known.assignment()));
    let is_it = |one: &Attribution| {
        one.cluster_id == need.cluster.as_str()
            && one.profile_fingerprint == need.fingerprint.as_str()
            && one.group == need.group.as_str()
    };
    let found = meant.into_iter().chain(bound).find(is_it);
    Some(found.unwrap_or_else(|| Attribution {
        cluster_id: need.cluster.to_string(),
        profile_fingerprint: need.fingerprint.to_string(),
        group: need.group.to_string(),
        ..Attribution::default()
    }))
}
