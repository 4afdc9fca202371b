//! InspectActions: what was decided lately and what came of it, newest first.
//!
//! Taken from the history the driver keeps, not from the core: a reader of it costs no cycle anything.

use std::sync::Arc;

use bigfleet_model::{ActionKind, ClusterId, MachineId, Reason};
use bigfleet_shard_core::{OperationId, Outcome};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::inspect_actions_response::Frame;
use bigfleet_wire::v1alpha1::{
    self as wire, ActionView, InspectActionsRequest, InspectActionsResponse,
};
use tonic::Status;

use super::stream::{Cut, Out, limited};
use super::{Reads, cluster_filter};
use crate::history::Entry;

/// What is asked for, checked.
pub(super) struct ActionsFilter {
    cluster: Option<ClusterId>,
    machine: Option<MachineId>,
    kinds: Vec<ActionKind>,
    limit: i32,
    after: u64,
}

const KINDS: [(ActionKind, wire::ActionKind); 6] = [
    (ActionKind::Bootstrap, wire::ActionKind::Bootstrap),
    (ActionKind::Provision, wire::ActionKind::Provision),
    (ActionKind::Preempt, wire::ActionKind::Preempt),
    (ActionKind::Reclaim, wire::ActionKind::Reclaim),
    (ActionKind::Delete, wire::ActionKind::Delete),
    (ActionKind::Restore, wire::ActionKind::Restore),
];

impl ActionsFilter {
    pub(super) fn read(request: &InspectActionsRequest) -> Result<Self, Status> {
        let kinds = request.kinds.iter().map(|number| {
            let known = KINDS.iter().find(|(_, on_wire)| *on_wire as i32 == *number);
            let known = known.map(|(kind, _)| *kind);
            known.ok_or_else(|| Status::invalid_argument(format!("kinds {number} is no kind")))
        });
        let machine = Some(&request.machine_id).filter(|id| !id.is_empty());
        let machine = machine.map(|id| MachineId::new(id)).transpose();
        let refused = |why| Status::invalid_argument(format!("machine_id {why}"));
        Ok(Self {
            cluster: cluster_filter(&request.cluster_id)?,
            machine: machine.map_err(refused)?,
            kinds: kinds.collect::<Result<_, _>>()?,
            limit: request.limit,
            after: u64::try_from(request.after_sequence).unwrap_or_default(),
        })
    }

    fn admits(&self, entry: &Entry) -> bool {
        let meant = entry.need.as_ref().map(|need| &need.cluster);
        let of_cluster =
            |wanted: &ClusterId| entry.cluster.as_ref() == Some(wanted) || meant == Some(wanted);
        let of_machine = |wanted: &MachineId| entry.machine == *wanted;
        self.cluster.as_ref().is_none_or(of_cluster)
            && self.machine.as_ref().is_none_or(of_machine)
            && (self.kinds.is_empty() || entry.kind.is_some_and(|kind| self.kinds.contains(&kind)))
    }
}

pub(super) async fn send(
    reads: &Reads,
    wanted: &ActionsFilter,
    out: &Out<InspectActionsResponse>,
) -> Result<(), Cut> {
    let frame = |frame| InspectActionsResponse { frame: Some(frame) };
    let mut entries = reads.history.newest_first(wanted.after);
    entries.retain(|entry| wanted.admits(entry));
    let (info, total) = (Arc::clone(&reads.info), entries.len());
    let header = reads.hub.ask(move |core| info.header(core, total));
    out.send(frame(Frame::Header(header.await?))).await?;
    for entry in entries.drain(..limited(wanted.limit, total)) {
        out.send(frame(Frame::Action(message(&entry)))).await?;
    }
    Ok(())
}

fn message(entry: &Entry) -> ActionView {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let text = |id: Option<&ClusterId>| id.map(ToString::to_string).unwrap_or_default();
    let need = entry.need.as_ref();
    let kind = entry.kind.and_then(|kind| {
        let mut kinds = KINDS.iter();
        let known = kinds.find(|(ours, _)| *ours == kind);
        known.map(|(_, on_wire)| *on_wire)
    });
    ActionView {
        sequence: number(entry.sequence),
        time_unix_nanos: unix_nanos(entry.time),
        cycle: number(entry.cycle),
        decided_cycle: number(entry.decided_cycle),
        kind: kind.unwrap_or(wire::ActionKind::Unspecified).into(),
        machine_id: entry.machine.to_string(),
        cluster_id: text(goes_to(entry)),
        from_cluster_id: text(comes_from(entry)),
        profile_fingerprint: need
            .map(|need| need.fingerprint.to_string())
            .unwrap_or_default(),
        group: need.map(|need| need.group.to_string()).unwrap_or_default(),
        priority: entry.priority,
        outcome: entry.outcome.map_or("committed", Outcome::label).to_owned(),
        reason: entry.reason.map_or("", Reason::text).to_owned(),
        detail: sentence(entry),
        operation_id: entry
            .operation
            .map(|id: OperationId| id.to_string())
            .unwrap_or_default(),
        grace_seconds: entry.grace_seconds.try_into().unwrap_or(i32::MAX),
    }
}

/// The cluster it is for.
fn goes_to(entry: &Entry) -> Option<&ClusterId> {
    let meant = entry.need.as_ref().map(|need| &need.cluster);
    match entry.kind {
        Some(ActionKind::Bootstrap | ActionKind::Provision | ActionKind::Restore) | None => {
            entry.cluster.as_ref().or(meant)
        }
        Some(ActionKind::Preempt) => meant,
        Some(ActionKind::Reclaim | ActionKind::Delete) => None,
    }
}

/// The cluster it is taken from.
fn comes_from(entry: &Entry) -> Option<&ClusterId> {
    match entry.kind {
        Some(ActionKind::Preempt | ActionKind::Reclaim) => entry.cluster.as_ref(),
        Some(
            ActionKind::Bootstrap
            | ActionKind::Provision
            | ActionKind::Delete
            | ActionKind::Restore,
        )
        | None => None,
    }
}

/// What was decided, why, what came of it, and what whoever refused it said.
fn sentence(entry: &Entry) -> String {
    let decided = decided(entry);
    let came = entry.outcome.map_or("committed", outcome);
    let parts = [decided.as_deref(), Some(came), Some(&entry.error)];
    let said = parts.into_iter().flatten().filter(|part| !part.is_empty());
    said.collect::<Vec<_>>().join(": ")
}

fn decided(entry: &Entry) -> Option<String> {
    let name = |id: Option<&ClusterId>| match id {
        Some(id) => format!("cluster {id}"),
        None => "no cluster".to_owned(),
    };
    let (to, from) = (name(goes_to(entry)), name(comes_from(entry)));
    let rank = entry.priority;
    let rank = rank.map_or_else(String::new, |rank| format!(" of priority {rank}"));
    Some(match (entry.kind?, entry.reason) {
        (ActionKind::Bootstrap, Some(Reason::Promised)) => {
            format!("Configure, for the Need{rank} of {to} it was promised to")
        }
        (ActionKind::Bootstrap, _) => {
            format!("Configure, since a Need{rank} of {to} is short and the machine is idle")
        }
        (ActionKind::Provision, _) => {
            format!("Create, since a Need{rank} of {to} is short and nothing idle fits")
        }
        (ActionKind::Preempt, _) => {
            format!("Drain from {from}, to make way for a Need{rank} of {to}")
        }
        (ActionKind::Reclaim, Some(Reason::Leaving)) => {
            format!("Drain from {from}, since the machine is to leave")
        }
        (ActionKind::Reclaim, _) => format!("Drain from {from}, where no Need claims the machine"),
        (ActionKind::Restore, _) => {
            format!("Take the drain back, since a Need{rank} of {to} wants the machine again")
        }
        (ActionKind::Delete, _) => {
            "Delete, since the machine was idle for its whole hold".to_owned()
        }
    })
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "done",
        Outcome::Timeout => "taken back, the operator did not answer in time",
        Outcome::Fenced => "refused, the provider has seen a newer process of this shard",
        Outcome::NoSession => "taken back, no operator of the cluster is connected",
        Outcome::BlobError => "taken back, the operator could not provide user data",
        Outcome::ProviderError => "failed, the provider refused it or the machine failed",
        Outcome::NeverSent => "taken back, it never left",
        Outcome::InventoryMiss => "ended, the machine is gone",
        Outcome::Adopted => "the machine changed by itself, and the provider's word was taken",
        Outcome::Conflict => "ended, the machine is bound to somebody else",
        Outcome::DrainMarked => "an admin has marked the machine to leave",
        Outcome::DrainLifted => "an admin has lifted the mark, and the machine stays",
        Outcome::DrainDeadlinePassed => "the deadline of its drain has passed: it leaves at once",
        Outcome::LeavingAnnounced => "its provider announces to take it away",
        Outcome::LeavingWithdrawn => "its provider does not take it away after all",
        Outcome::DrainBlocked => "given up, the node was not empty at the deadline",
        Outcome::TakenBack => "taken back, since a Need wants the machine again",
        Outcome::Suppressed => "not let out, actuation is paused",
        Outcome::DryRun => "not let out, this is a dry run",
        Outcome::Retired => "the machine was retired by an admin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{Fingerprint, Group, NeedKey, Time};

    fn entry(kind: ActionKind, reason: Reason) -> Entry {
        let cluster = |id| ClusterId::new(id).unwrap();
        Entry {
            sequence: 1,
            time: Time::from_nanos(0),
            cycle: 4,
            decided_cycle: 3,
            kind: Some(kind),
            operation: None,
            machine: MachineId::new("m1").unwrap(),
            cluster: Some(cluster("b")),
            need: Some(NeedKey {
                cluster: cluster("a"),
                fingerprint: Fingerprint::new("f"),
                group: Group::new("g"),
            }),
            priority: Some(1000),
            reason: Some(reason),
            grace_seconds: 30,
            outcome: None,
            error: String::new(),
        }
    }

    #[test]
    fn what_the_provider_said_ends_the_sentence() {
        let failed = Entry {
            outcome: Some(Outcome::ProviderError),
            error: "no capacity in zone-a".to_owned(),
            ..entry(ActionKind::Provision, Reason::Speculative)
        };
        let detail = message(&failed).detail;
        let end = ": failed, the provider refused it or the machine failed: no capacity in zone-a";
        assert!(detail.ends_with(end), "{detail}");
    }

    #[test]
    fn whom_a_preemption_is_for_and_from() {
        let view = message(&entry(ActionKind::Preempt, Reason::Inversion));
        assert_eq!((&*view.cluster_id, &*view.from_cluster_id), ("a", "b"));
        assert_eq!((view.priority, &*view.group), (Some(1000), "g"));
        assert_eq!(
            view.detail,
            "Drain from cluster b, to make way for a Need of priority 1000 of cluster a: committed"
        );
        assert_eq!(
            (&*view.outcome, &*view.reason),
            ("committed", "phase2.inversion")
        );
    }

    #[test]
    fn what_happens_by_itself_is_no_action_and_no_kind_finds_it() {
        let adopted = Entry {
            kind: None,
            reason: None,
            outcome: Some(Outcome::Adopted),
            ..entry(ActionKind::Delete, Reason::Release)
        };
        let view = message(&adopted);
        assert_eq!(view.kind(), wire::ActionKind::Unspecified);
        assert!(
            view.detail.starts_with("the machine changed by itself"),
            "{}",
            view.detail
        );
        let mut request = InspectActionsRequest {
            cluster_id: "a".to_owned(),
            ..InspectActionsRequest::default()
        };
        assert!(ActionsFilter::read(&request).unwrap().admits(&adopted));
        request.kinds = vec![wire::ActionKind::Delete.into()];
        assert!(!ActionsFilter::read(&request).unwrap().admits(&adopted));
        request.kinds = vec![0];
        let refused = ActionsFilter::read(&request).err().unwrap();
        assert_eq!(refused.message(), "kinds 0 is no kind");
    }
}
