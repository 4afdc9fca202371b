//! Services by name: what reflection lists and what gRPC health knows (wire 2.6).
//!
//! Reflection lists what the port serves and nothing else of the package: whoever looks for a provider here
//! is told that there is none. Health says of the shard what `/readyz` says; reads and administration are
//! answered from the start.

use std::future::Future;

use bigfleet_wire::v1alpha1::{shard_admin_server, shard_read_server, shard_server};
use tokio::sync::watch;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_reflection::server::Builder;

/// What the port serves beside our own services.
const STANDARD: [&str; 3] = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// What reflection answers, to be built in either of its versions.
pub(crate) fn reflected() -> Builder<'static> {
    let ours = [
        shard_server::SERVICE_NAME,
        shard_read_server::SERVICE_NAME,
        shard_admin_server::SERVICE_NAME,
    ];
    let builder = Builder::configure()
        .register_encoded_file_descriptor_set(bigfleet_wire::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET);
    let served = ours.into_iter().chain(STANDARD);
    served.fold(builder, Builder::with_service_name)
}

/// The health service, and the work of keeping it true, which ends with whoever says whether the shard is
/// ready.
pub(crate) async fn health(
    mut readiness: watch::Receiver<bool>,
) -> (HealthServer<impl Health>, impl Future<Output = ()>) {
    let (reporter, service) = tonic_health::server::health_reporter();
    for name in [
        shard_read_server::SERVICE_NAME,
        shard_admin_server::SERVICE_NAME,
    ] {
        let serving = ServingStatus::Serving;
        reporter.set_service_status(name, serving).await;
    }
    let report = async move |is_ready: bool| {
        let status = if is_ready {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        // The empty name is the process as a whole.
        for name in ["", shard_server::SERVICE_NAME] {
            reporter.set_service_status(name, status).await;
        }
    };
    // Before anybody can ask: until the shard is ready it is not.
    report(false).await;
    let reporting = async move {
        loop {
            let is_ready = *readiness.borrow_and_update();
            report(is_ready).await;
            if readiness.changed().await.is_err() {
                return;
            }
        }
    };
    (service, reporting)
}
