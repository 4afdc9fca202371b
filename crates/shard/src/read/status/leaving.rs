//! Drains that are past their deadline, and leaving machines that do not get on (SH-20).

use std::time::Duration;

use bigfleet_shard_core::ShardCore;

use super::Found;
use crate::read::leaving;

/// A leaving machine that is where it is for longer than this is stuck.
const STUCK_FOR: Duration = Duration::from_secs(15 * 60);
/// Machines that are looked at: the core waits meanwhile.
const MOST_LOOKED_AT: usize = 2000;

pub(super) fn of_leaving(core: &ShardCore, found: &mut Found) {
    let now = found.now;
    let ids = core.leaving_machines().take(MOST_LOOKED_AT);
    let views = ids.filter_map(|id| core.machine_view(id));
    let problems = views.filter_map(|view| {
        let what = leaving::problem(&view, STUCK_FOR, now)?;
        let since = view.leaving.and_then(|leaving| leaving.phase_since);
        Some((view.machine.id().clone(), what, since))
    });
    let problems: Vec<_> = problems.collect();
    let verb = "bigfleet get drains";
    found.bounded("drain", verb, problems, |found, (id, what, since)| {
        let verb = format!("bigfleet describe machine {id}");
        found.warning("drain", what, since, verb);
    });
}
