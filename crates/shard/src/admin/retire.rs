//! RetireMachine: a Failed machine that its provider keeps showing is forgotten (AD-2).

use bigfleet_shard_core::Event;
use bigfleet_wire::v1alpha1::{RetireMachineRequest, RetireMachineResponse};
use tonic::Status;

use super::{Admin, checks};
use crate::read::machine_message;

pub(super) async fn retire(
    admin: &Admin,
    request: &RetireMachineRequest,
) -> Result<RetireMachineResponse, Status> {
    let machine = checks::machine_id(&request.machine_id)?;
    checks::reason(&request.reason)?;
    let id = machine.clone();
    let asked = admin
        .hub
        .ask(move |core| (core.machine_view(&id), core.may_retire(&id)));
    let (view, against) = asked.await?;
    let Some(view) = view else {
        let why = format!("machine {machine} is not known to this shard");
        return Err(Status::not_found(why));
    };
    if let Some(why) = against {
        return Err(Status::failed_precondition(why));
    }
    if !request.dry_run {
        let (event, id) = (
            Event::RetireMachine {
                machine: machine.clone(),
            },
            machine,
        );
        let kept = admin.hub.submit_durably(event, move |core| {
            core.machine(&id).and_then(|_| core.may_retire(&id))
        });
        if let Some(why) = kept.await? {
            return Err(Status::failed_precondition(why));
        }
    }
    let machine = Some(machine_message(&view, &admin.info));
    Ok(RetireMachineResponse { machine })
}
