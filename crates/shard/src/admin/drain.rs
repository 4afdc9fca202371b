//! DrainMachines and UndrainMachines: machines are marked to leave, and the marks lifted (SH-20).
//!
//! ```text
//! ids or labels ─▶ resolved once ─▶ each may be marked? ─┬─ dry run ─▶ the engine, on a copy ─▶ what would be
//!                                                       └─▶ event ─▶ disk ─▶ where each stands
//! ```
//!
//! An id that is not known, or cannot be marked, refuses the call as a whole: whoever typed it meant it. A
//! selector passes over what cannot be marked and says so.

use std::collections::BTreeSet;

use bigfleet_model::{
    CAPACITY_TYPE_KEY, INSTANCE_TYPE_KEY, Leaving, Machine, MachineId, State, Time, ZONE_KEY, shown,
};
use bigfleet_shard_core::{DrainMark, Event, MachineFilter, MachineView, PAGE, ShardCore};
use bigfleet_wire::v1alpha1::{
    DrainMachinesRequest, DrainMachinesResponse, LeavingPhase, MachineDrain,
    UndrainMachinesRequest, UndrainMachinesResponse,
};
use tonic::Status;

use super::drain_plan::plan;
use super::{Admin, checks};
use crate::hub::{Hub, Stopping};
use crate::read::{copy_fleet, leaving};

/// Ids one request may name.
const MOST_IDS: usize = 10_000;
/// Names that a refusal spells out.
const MOST_NAMED: usize = 5;
/// A selector may match one machine in so many without being confirmed.
const UNCONFIRMED_PART: usize = 10;

/// What a call names: ids, or all of these labels.
enum Named {
    Ids(BTreeSet<MachineId>),
    Labels(Vec<(String, String)>),
}

impl Named {
    fn read(ids: &[String], selector: &str) -> Result<Self, Status> {
        let refused = |why: String| Err(Status::invalid_argument(why));
        match (ids, selector.trim()) {
            ([], "") => refused("neither machine_ids nor label_selector is given".to_owned()),
            ([_, ..], text) if !text.is_empty() => {
                refused("machine_ids and label_selector are both given; one is enough".to_owned())
            }
            ([], text) => labels(text).map(Self::Labels),
            (ids, _) if MOST_IDS < ids.len() => {
                let count = ids.len();
                refused(format!(
                    "machine_ids has {count} ids, not {MOST_IDS} or less"
                ))
            }
            (ids, _) => {
                let ids = ids.iter().map(|id| checks::machine_id(id));
                ids.collect::<Result<_, _>>().map(Self::Ids)
            }
        }
    }
}

/// `key=value,…`, each key once.
fn labels(text: &str) -> Result<Vec<(String, String)>, Status> {
    let mut labels: Vec<(String, String)> = Vec::new();
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() || value.is_empty() {
            let part = shown(part);
            return Err(Status::invalid_argument(format!(
                "label_selector: \"{part}\" is not KEY=VALUE; several are joined by commas, as in rack=r7,zone=a"
            )));
        }
        if labels.iter().any(|(known, _)| known == key) {
            let key = shown(key);
            return Err(Status::invalid_argument(format!(
                "label_selector names {key} twice; no machine has two values of one label"
            )));
        }
        labels.push((label_key(key).to_owned(), value.to_owned()));
    }
    Ok(labels)
}

/// What people call the labels that every machine has.
fn label_key(key: &str) -> &str {
    match key {
        "zone" => ZONE_KEY,
        "type" | "instance-type" => INSTANCE_TYPE_KEY,
        "tier" | "capacity-type" => CAPACITY_TYPE_KEY,
        other => other,
    }
}

/// Machines that a selector matches.
struct Matched {
    ids: BTreeSet<MachineId>,
    /// Those that cannot be marked, and what applies instead.
    passed_over: Vec<(MachineId, String)>,
    /// Machines that were looked at.
    total: usize,
}

/// Finds them a page at a time: cycles go on meanwhile.
async fn matching(
    hub: &Hub,
    labels: &[(String, String)],
    judge: impl Fn(&ShardCore, &MachineId) -> Option<String> + Copy + Send + 'static,
) -> Result<Matched, Stopping> {
    let mut matched = Matched {
        ids: BTreeSet::new(),
        passed_over: Vec::new(),
        total: 0,
    };
    let mut after = None::<MachineId>;
    loop {
        let labels = labels.to_vec();
        let page = hub.ask(move |core| {
            let page = core.machines_page(&MachineFilter::default(), after.as_ref());
            let matches = |view: &&MachineView| {
                let shape = view.machine.shape();
                let has =
                    |(key, value): &(String, String)| shape.attribute(key) == Some(value.as_str());
                labels.iter().all(has)
            };
            let found = page.entries.iter().filter(matches);
            let found = found.map(|view| {
                let id = view.machine.id().clone();
                let why = judge(core, &id);
                (id, why)
            });
            (found.collect::<Vec<_>>(), page.entries.len(), page.next)
        });
        let (found, looked, next) = page.await?;
        matched.total += looked;
        for (id, why) in found {
            match why {
                None => drop(matched.ids.insert(id)),
                Some(why) => matched.passed_over.push((id, why)),
            }
        }
        if next.is_none() {
            return Ok(matched);
        }
        after = next;
    }
}

/// The machines that are meant, and those a selector matches and that cannot be meant.
async fn resolve(
    admin: &Admin,
    named: Named,
    accepts_many: bool,
    judge: impl Fn(&ShardCore, &MachineId) -> Option<String> + Copy + Send + 'static,
) -> Result<(BTreeSet<MachineId>, Vec<(MachineId, String)>), Status> {
    let labels = match named {
        Named::Ids(ids) => return judged(admin, ids, judge).await.map(|ids| (ids, Vec::new())),
        Named::Labels(labels) => labels,
    };
    let matched = matching(&admin.hub, &labels, judge).await?;
    let (count, total) = (matched.ids.len(), matched.total);
    if count == 0 {
        return Err(match matched.passed_over.first() {
            Some((_, why)) => Status::failed_precondition(format!(
                "none of the {} machines that match can be meant: {why}",
                matched.passed_over.len()
            )),
            None => Status::not_found(format!(
                "no machine of {total} has all of these labels; `bigfleet describe machine ID` shows what one has"
            )),
        });
    }
    if !accepts_many && total < count * UNCONFIRMED_PART {
        return Err(Status::failed_precondition(format!(
            "the selector matches {count} of {total} machines, more than a tenth; \
             if all of them are meant, repeat it with --yes"
        )));
    }
    Ok((matched.ids, matched.passed_over))
}

/// All of these ids, or why not.
async fn judged(
    admin: &Admin,
    ids: BTreeSet<MachineId>,
    judge: impl Fn(&ShardCore, &MachineId) -> Option<String> + Copy + Send + 'static,
) -> Result<BTreeSet<MachineId>, Status> {
    let asked = ids.clone();
    let against = admin.hub.ask(move |core| {
        let unknown: Vec<MachineId> = asked
            .iter()
            .filter(|id| core.machine(id).is_none())
            .cloned()
            .collect();
        let against: Vec<String> = asked.iter().filter_map(|id| judge(core, id)).collect();
        (unknown, against)
    });
    let (unknown, against) = against.await?;
    if !unknown.is_empty() {
        let names = unknown.iter().take(MOST_NAMED).map(ToString::to_string);
        let names: Vec<String> = names.collect();
        let more = unknown.len().saturating_sub(MOST_NAMED);
        let more = if 0 < more {
            format!(" and {more} more")
        } else {
            String::new()
        };
        return Err(Status::not_found(format!(
            "not known to this shard: {}{more}; nothing was changed",
            names.join(", ")
        )));
    }
    match against.first() {
        Some(why) => Err(Status::failed_precondition(format!(
            "{why}; nothing was changed"
        ))),
        None => Ok(ids),
    }
}

fn may_drain(core: &ShardCore, id: &MachineId) -> Option<String> {
    core.may_drain(id)
}

fn may_undrain(core: &ShardCore, id: &MachineId) -> Option<String> {
    if core.is_drained_by_admin(id) {
        return None;
    }
    Some(match core.leaving(id) {
        Some(_) => format!(
            "machine {id} was announced by its provider to be taken away, and only the provider withdraws that"
        ),
        None => format!("machine {id} is not marked to leave"),
    })
}

pub(super) async fn drain(
    admin: &Admin,
    request: &DrainMachinesRequest,
    by: &str,
) -> Result<DrainMachinesResponse, Status> {
    let named = Named::read(&request.machine_ids, &request.label_selector)?;
    checks::reason(&request.reason)?;
    let (ids, passed_over) = resolve(admin, named, request.accept_many, may_drain).await?;
    let now = admin.info.now();
    let deadline =
        (request.deadline_unix_nanos != 0).then(|| Time::from_nanos(request.deadline_unix_nanos));
    let mark = DrainMark::new(by, &request.reason, now, deadline);
    let mut answer = if request.dry_run {
        let word = if mark.passed {
            Leaving::Now
        } else {
            Leaving::Soon
        };
        let (fleet, _) = copy_fleet(&admin.hub, &admin.info).await?;
        // Deciding twice on a large fleet takes seconds: neither the core's thread nor one that serves.
        let planned = tokio::task::spawn_blocking(move || plan(&fleet, &ids, word));
        planned
            .await
            .map_err(|why| Status::internal(format!("the plan was not made: {why}")))?
    } else {
        let event = Event::DrainMachines {
            machines: ids.clone(),
            mark,
        };
        admin.hub.submit_durably(event, |_| ()).await?;
        DrainMachinesResponse {
            machines: rows(admin, &ids, now).await?,
            moved_groups: Vec::new(),
        }
    };
    let passed_over = passed_over.into_iter().map(|(id, why)| MachineDrain {
        machine_id: id.to_string(),
        sentence: why,
        passed_over: true,
        ..MachineDrain::default()
    });
    answer.machines.extend(passed_over);
    Ok(answer)
}

pub(super) async fn undrain(
    admin: &Admin,
    request: &UndrainMachinesRequest,
    by: &str,
) -> Result<UndrainMachinesResponse, Status> {
    let named = Named::read(&request.machine_ids, &request.label_selector)?;
    checks::reason(&request.reason)?;
    // Lifting a mark disturbs nobody, so many at once need no confirmation.
    let (ids, _) = resolve(admin, named, true, may_undrain).await?;
    let event = Event::UndrainMachines {
        machines: ids.clone(),
        by: by.to_owned(),
        reason: request.reason.clone(),
    };
    admin.hub.submit_durably(event, |_| ()).await?;
    let machines = rows(admin, &ids, admin.info.now()).await?;
    Ok(UndrainMachinesResponse { machines })
}

/// Where each stands, by id.
async fn rows(
    admin: &Admin,
    ids: &BTreeSet<MachineId>,
    now: Time,
) -> Result<Vec<MachineDrain>, Stopping> {
    let ids: Vec<MachineId> = ids.iter().cloned().collect();
    let mut rows = Vec::with_capacity(ids.len());
    for ids in ids.chunks(PAGE) {
        let ids = ids.to_vec();
        let views = admin.hub.ask(move |core| {
            let views = ids.iter().filter_map(|id| core.machine_view(id));
            let priced = views.map(|view| {
                let price = price_of_replacements(core, &view);
                (view, price)
            });
            priced.collect::<Vec<_>>()
        });
        let of = |(view, price): &(MachineView, f64)| row(view, *price, now);
        rows.extend(views.await?.iter().map(of));
    }
    Ok(rows)
}

/// What the machines on their way in the place of one cost together.
fn price_of_replacements(core: &ShardCore, view: &MachineView) -> f64 {
    let ids = view.leaving.iter().flat_map(|marked| &marked.replacements);
    let machines = ids.filter_map(|id| core.machine(id));
    machines
        .map(|one| one.price().dollars_per_hour())
        .fold(0.0, |sum, price| sum + price)
}

/// Where a machine stands that is not marked any more.
fn stays(machine: &Machine) -> &'static str {
    match machine.state() {
        State::Configuring | State::Configured => "it stays where it is",
        State::Draining => "it is being drained, and may be taken back",
        State::Idle => "it is Idle, and may be given to a cluster again",
        State::Speculative => "it may be bought again",
        State::Creating => "it is being made, and may be given to a cluster then",
        State::Deleting | State::Failed => "its mark is lifted",
    }
}

fn row(view: &MachineView, replacement_price: f64, now: Time) -> MachineDrain {
    let marked = view.leaving.as_ref();
    let need = view.machine.attribution();
    let replacements = marked.iter().flat_map(|marked| &marked.replacements);
    let phase = marked.map_or(LeavingPhase::Unspecified, |marked| {
        leaving::phase(marked.phase)
    });
    MachineDrain {
        machine_id: view.machine.id().to_string(),
        phase: phase.into(),
        need_fingerprint: need
            .as_ref()
            .map(|need| need.fingerprint.to_string())
            .unwrap_or_default(),
        group: need.map(|need| need.group.to_string()).unwrap_or_default(),
        replacement_ids: replacements.map(ToString::to_string).collect(),
        sentence: match marked {
            Some(marked) => leaving::sentence(view, marked, now),
            None => stays(&view.machine).to_owned(),
        },
        cluster_id: view
            .machine
            .cluster()
            .map(ToString::to_string)
            .unwrap_or_default(),
        price_per_hour: view.machine.price().dollars_per_hour(),
        replacement_price_per_hour: replacement_price,
        passed_over: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_labels_joined_by_commas() {
        let read = |text: &str| labels(text).map_err(|why| why.message().to_owned());
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            read("rack=r7, zone=a"),
            Ok(vec![pair("rack", "r7"), pair(ZONE_KEY, "a")])
        );
        for bad in ["", "rack", "rack=", "=r7", "rack=r7,", "rack=r7,rack=r8"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(
            read("rack").unwrap_err().contains("rack=r7,zone=a"),
            "an example"
        );
    }

    #[test]
    fn ids_or_labels_and_one_of_the_two() {
        let read = |ids: &[&str], selector: &str| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            let read = Named::read(&ids, selector);
            read.map(drop).map_err(|why| why.code())
        };
        let refused = Err(tonic::Code::InvalidArgument);
        assert_eq!(read(&["m1"], ""), Ok(()));
        assert_eq!(read(&[], "rack=r7"), Ok(()));
        assert_eq!(read(&[], ""), refused);
        assert_eq!(read(&["m1"], "rack=r7"), refused);
        assert_eq!(read(&[""], ""), refused);
        assert_eq!(read(&vec!["m1"; MOST_IDS + 1], ""), refused);
    }
}
