//! Lists: filters, caps and cursors that lose, repeat or invent machines.

use bigfleet_wire::v1alpha1::{ListFilter, MachineList};
use tonic::Status;

use super::Defect;
use super::Plant::{Filter, Listed};
use crate::mutants::proxy::Memory;

pub(super) static ALL: &[Defect] = &[
    defect!(
        "filter-is-ignored",
        "lists every state",
        ["LIST-01"],
        Filter(no_states)
    ),
    defect!(
        "list-names-twice",
        "names a machine twice",
        ["LIST-01"],
        Listed(twice)
    ),
    defect!(
        "cap-is-exceeded",
        "lists one machine too many",
        ["LIST-02"],
        Filter(one_more)
    ),
    defect!(
        "revision-stands-still",
        "shows the same revision for ever",
        ["LIST-03"],
        Listed(stuck_revision)
    ),
    defect!(
        "head-shows-something",
        "shows a machine since head",
        ["LIST-04"],
        Listed(never_empty)
    ),
    defect!(
        "cursor-skips",
        "leaves the oldest change out of a delta",
        ["LIST-05", "LIST-03"],
        Listed(skips)
    ),
    defect!(
        "junk-cursor-is-refused",
        "refuses a cursor it does not know",
        ["LIST-06"],
        Listed(refuses_junk)
    ),
    defect!(
        "page-loses-the-rest",
        "forgets what a full page had no room for",
        ["LIST-07"],
        Listed(loses_page)
    ),
    defect!(
        "damaged-cursor-is-empty",
        "shows nothing for a damaged cursor",
        ["LIST-09"],
        Listed(empty_for_damaged)
    ),
    defect!(
        "delta-is-too-wide",
        "shows neighbours of what moved",
        ["SCALE-02"],
        Listed(too_wide)
    ),
    defect!(
        "large-page-loses-one",
        "loses a machine on every large page",
        ["SCALE-03"],
        Listed(loses_one)
    ),
];

fn no_states(filter: &mut ListFilter) {
    filter.states.clear();
}

fn one_more(filter: &mut ListFilter) {
    if filter.max_results != 0 {
        filter.max_results += 1;
    }
}

fn twice(_: &ListFilter, mut list: MachineList, _: &mut Memory) -> Result<MachineList, Status> {
    let first = list.machines.first().cloned();
    list.machines.extend(first);
    Ok(list)
}

fn stuck_revision(
    _: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    list.revision = b"1".to_vec();
    Ok(list)
}

fn is_delta(filter: &ListFilter) -> bool {
    !filter.since_revision.is_empty()
}

fn never_empty(
    filter: &ListFilter,
    mut list: MachineList,
    memory: &mut Memory,
) -> Result<MachineList, Status> {
    if !is_delta(filter) {
        memory.machines = list
            .machines
            .iter()
            .take(1)
            .map(|m| (m.id.clone(), m.clone()))
            .collect();
    } else if list.machines.is_empty() {
        list.machines = memory.machines.values().cloned().collect();
    }
    Ok(list)
}

fn skips(
    filter: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    if is_delta(filter) && !list.machines.is_empty() {
        list.machines.remove(0);
    }
    Ok(list)
}

fn refuses_junk(
    filter: &ListFilter,
    list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    if is_delta(filter) && list.is_full {
        return Err(Status::invalid_argument("unknown cursor"));
    }
    Ok(list)
}

fn loses_page(
    filter: &ListFilter,
    mut list: MachineList,
    memory: &mut Memory,
) -> Result<MachineList, Status> {
    // The second page of two is left out; the third is there.
    if is_delta(filter) && filter.max_results == 2 && memory.next() == 2 {
        list.machines.truncate(1);
    }
    Ok(list)
}

fn empty_for_damaged(
    filter: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    if is_delta(filter) && list.is_full {
        list.machines.clear();
    }
    Ok(list)
}

fn too_wide(
    filter: &ListFilter,
    mut list: MachineList,
    memory: &mut Memory,
) -> Result<MachineList, Status> {
    if !is_delta(filter) {
        memory.machines = list
            .machines
            .iter()
            .map(|m| (m.id.clone(), m.clone()))
            .collect();
        return Ok(list);
    }
    let named = |id: &String| list.machines.iter().any(|m| m.id == *id);
    let neighbour = memory.machines.keys().find(|id| !named(id)).cloned();
    let neighbour = neighbour.and_then(|id| memory.machines.get(&id).cloned());
    list.machines.extend(neighbour);
    Ok(list)
}

fn loses_one(
    filter: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    if 100 < filter.max_results {
        list.machines.pop();
    }
    Ok(list)
}
