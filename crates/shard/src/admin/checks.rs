//! Checks: what every verb requires.

use bigfleet_model::{MachineId, shown};
use bigfleet_shard_core::Scope;
use bigfleet_wire::v1alpha1::{PauseScope, pause_scope};
use tonic::Status;

use crate::read::{ShardInfo, cluster_id};

/// Bytes of a reason: a few sentences.
const MOST_REASON: usize = 4096;

/// A reason must be given: whoever finds a machine gone will want to know.
pub(super) fn reason(text: &str) -> Result<(), Status> {
    let problem = match text.trim().len() {
        0 => "reason is empty; every admin verb requires one".to_owned(),
        bytes if MOST_REASON < bytes => {
            format!("reason has {bytes} bytes, more than the {MOST_REASON} allowed")
        }
        _ => return Ok(()),
    };
    Err(Status::invalid_argument(problem))
}

/// The id of a machine that must be named.
pub(super) fn machine_id(text: &str) -> Result<MachineId, Status> {
    MachineId::new(text).map_err(|why| Status::invalid_argument(format!("machine_id {why}")))
}

/// What a pause covers, which must be said: nothing is not everything.
pub(super) fn scope(scope: Option<&PauseScope>, info: &ShardInfo) -> Result<Scope, Status> {
    let stated = scope.and_then(|scope| scope.scope.as_ref());
    match stated {
        None => Err(Status::invalid_argument(
            "scope is empty; it must be all, cluster_id or provider_address",
        )),
        Some(pause_scope::Scope::All(_)) => Ok(Scope::All),
        Some(pause_scope::Scope::ClusterId(id)) => cluster_id(id).map(Scope::Cluster),
        Some(pause_scope::Scope::ProviderAddress(address)) => match *address {
            _ if *address == info.provider_address => Ok(Scope::Provider(info.provider.clone())),
            _ => Err(Status::not_found(format!(
                "scope.provider_address \"{}\" is not the provider of this shard, \"{}\"",
                shown(address),
                info.provider_address
            ))),
        },
    }
}
