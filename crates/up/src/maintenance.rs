//! Maintenance: the scenario takes a rack out of service and brings it back, as a person would.

use std::collections::BTreeSet;

use bigfleet_model::{MachineId, Time};
use bigfleet_shard::{Hub, Stopping};
use bigfleet_shard_core::{DrainMark, Event};
use bigfleet_workloads::RACK_KEY;

const WHO: &str = "the scenario";

/// The machines of a rack, slots included.
async fn rack(hub: &Hub, rack: &'static str) -> Result<BTreeSet<MachineId>, Stopping> {
    hub.ask(move |core| {
        let here = core.machines();
        let here = here.filter(|one| one.shape().attribute(RACK_KEY) == Some(rack));
        here.map(|one| one.id().clone()).collect()
    })
    .await
}

/// Marks a rack to leave.
pub(crate) async fn take_out(hub: &Hub, name: &'static str, now: Time) -> Result<(), Stopping> {
    let machines = rack(hub, name).await?;
    let mark = DrainMark::new(WHO, "new switches", now, None);
    let event = Event::DrainMachines { machines, mark };
    hub.submit(event, |_| ()).await
}

/// Gives it back.
pub(crate) async fn bring_back(hub: &Hub, name: &'static str) -> Result<(), Stopping> {
    let machines = rack(hub, name).await?;
    let (by, reason) = (WHO.to_owned(), "serviced".to_owned());
    let event = Event::UndrainMachines {
        machines,
        by,
        reason,
    };
    hub.submit(event, |_| ()).await
}
