//! Answers as they are written down: objects with the names of the message, so that what reads the audit
//! log reads them without knowing how this program prints its values.

use bigfleet_wire::v1alpha1::{
    DrainMachinesResponse, MachineDrain, PauseResponse, PauseView, ReleaseClusterResponse,
    ResumeResponse, RetireMachineResponse, UndrainMachinesResponse,
};
use serde_json::{Value, json};

/// Pauses of an answer that are named.
const MOST_PAUSES: usize = 100;
/// Machines of an answer that are named.
const MOST_MACHINES: usize = 20;

/// An answer that can be written down.
pub(super) trait Written {
    fn written(&self) -> Value;
}

impl Written for PauseResponse {
    fn written(&self) -> Value {
        json!({
            "pause": self.pause.as_ref().map(pause),
            "work_paused": self.work_paused,
        })
    }
}

impl Written for ResumeResponse {
    fn written(&self) -> Value {
        let all =
            |of: &[PauseView]| -> Vec<Value> { of.iter().take(MOST_PAUSES).map(pause).collect() };
        json!({ "lifted": all(&self.lifted), "remaining": all(&self.remaining) })
    }
}

impl Written for RetireMachineResponse {
    fn written(&self) -> Value {
        let machine = self.machine.as_ref().and_then(|view| view.machine.as_ref());
        let machine = machine.map(|machine| {
            json!({
                "id": machine.id,
                "state": machine.state().as_str_name(),
                "instance_type": machine.instance_type,
                "zone": machine.zone,
                "last_error": machine.last_error,
            })
        });
        json!({ "machine": machine })
    }
}

impl Written for ReleaseClusterResponse {
    fn written(&self) -> Value {
        json!({ "machines": self.machines, "needs": self.needs })
    }
}

impl Written for DrainMachinesResponse {
    fn written(&self) -> Value {
        json!({ "machines": drains(&self.machines), "moved_groups": self.moved_groups })
    }
}

impl Written for UndrainMachinesResponse {
    fn written(&self) -> Value {
        json!({ "machines": drains(&self.machines) })
    }
}

/// How many machines, and the first of them: each has a line of its own in the log.
fn drains(rows: &[MachineDrain]) -> Value {
    let meant = rows.iter().filter(|row| !row.passed_over);
    let first: Vec<&str> = meant
        .clone()
        .take(MOST_MACHINES)
        .map(|row| row.machine_id.as_str())
        .collect();
    json!({
        "count": meant.count(),
        "passed_over": rows.iter().filter(|row| row.passed_over).count(),
        "first": first,
    })
}

fn pause(view: &PauseView) -> Value {
    json!({
        "pause_id": view.pause_id,
        "origin": view.origin().as_str_name(),
        "requested_by": view.requested_by,
        "reason": view.reason,
        "started_unix_nanos": view.started_unix_nanos,
        "expires_unix_nanos": view.expires_unix_nanos,
        "withheld_total": view.withheld_total,
    })
}
