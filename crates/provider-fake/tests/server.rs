//! Around the six calls: health, reflection, metrics, a stop in good order.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_provider_fake::{FakeBackend, Knobs, Lies, Substrate, conventional};
use bigfleet_provider_kit::{Provider, Settings, start};
use bigfleet_wire::v1alpha1 as wire;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use wire::capacity_provider_client::CapacityProviderClient;

async fn provider(state: Option<PathBuf>) -> (Provider, Channel) {
    let knobs = Knobs::default();
    let lies = Arc::new(Lies::new(&knobs));
    let substrate = Substrate::new("fake", conventional("fake", 12), knobs, true);
    let backend = Arc::new(FakeBackend::new(substrate, true, true));
    let origin = std::time::Instant::now();
    let settings = Settings {
        metrics_addr: Some("127.0.0.1:0".to_owned()),
        clock: Some(Arc::new(move || origin.elapsed())),
        state,
        ..Settings::new("fake", "127.0.0.1:0")
    };
    let provider = start(backend, lies, settings).await.unwrap();
    let endpoint = Channel::from_shared(format!("http://{}", provider.addr())).unwrap();
    let channel = endpoint.connect().await.unwrap();
    (provider, channel)
}

async fn fetch(addr: SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn first(client: &mut CapacityProviderClient<Channel>) -> wire::Machine {
    let list = client.list(wire::ListFilter::default()).await.unwrap();
    list.into_inner().machines.remove(0)
}

async fn created(client: &mut CapacityProviderClient<Channel>) -> wire::Machine {
    let machine_id = first(client).await.id;
    let request = wire::CreateRequest {
        machine_id: machine_id.clone(),
        ..Default::default()
    };
    client.create(request).await.unwrap();
    let reference = wire::MachineRef { id: machine_id };
    let idle = async {
        loop {
            let machine = client.get(reference.clone()).await.unwrap().into_inner();
            if machine.state() == wire::MachineState::Idle {
                return machine;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), idle)
        .await
        .unwrap()
}

#[tokio::test]
async fn it_is_healthy_and_can_be_reflected() {
    let (provider, channel) = provider(None).await;
    let mut health = HealthClient::new(channel.clone());
    for service in ["", "bigfleet.v1alpha1.CapacityProvider"] {
        let service = service.to_owned();
        let status = health.check(HealthCheckRequest { service }).await.unwrap();
        assert_eq!(status.into_inner().status, 1);
    }
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::{ServerReflectionRequest, server_reflection_request};
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(server_reflection_request::MessageRequest::ListServices(
            String::new(),
        )),
    };
    let mut reflection = ServerReflectionClient::new(channel);
    let requests = tokio_stream::iter([request]);
    let mut answers = reflection
        .server_reflection_info(requests)
        .await
        .unwrap()
        .into_inner();
    let answer = format!("{:?}", answers.message().await.unwrap());
    assert!(
        answer.contains("bigfleet.v1alpha1.CapacityProvider"),
        "{answer}"
    );
    provider.stop().await;
}

#[tokio::test]
async fn its_metrics_and_probes_answer() {
    let (provider, channel) = provider(None).await;
    let mut client = CapacityProviderClient::new(channel);
    created(&mut client).await;
    client.get(wire::MachineRef::default()).await.unwrap_err();
    let addr = provider.metrics_addr().unwrap();
    let text = fetch(addr, "/metrics").await;
    for line in [
        "bigfleet_fake_grpc_requests_total{method=\"Create\",code=\"OK\"} 1",
        "bigfleet_fake_grpc_requests_total{method=\"Get\",code=\"InvalidArgument\"} 1",
        "bigfleet_fake_grpc_request_duration_seconds_count{method=\"Create\"} 1",
        "bigfleet_fake_machines{state=\"Idle\"} 1",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    assert!(fetch(addr, "/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(fetch(addr, "/readyz").await.starts_with("HTTP/1.1 200"));
    assert!(fetch(addr, "/secrets").await.starts_with("HTTP/1.1 404"));
    provider.stop().await;
}

#[tokio::test]
async fn a_stop_finishes_what_is_under_way_and_keeps_it() {
    let folder = std::env::temp_dir().join(format!("bigfleet-stop-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let state = folder.join("state");
    let (before, channel) = provider(Some(state.clone())).await;
    let mut client = CapacityProviderClient::new(channel);
    let machine = created(&mut client).await;
    let request = wire::ConfigureRequest {
        machine_id: machine.id.clone(),
        cluster_id: "fault-dwell-300".to_owned(),
        ..Default::default()
    };
    client.configure(request).await.unwrap();
    drop(client);
    before.stop().await;
    let (after, channel) = provider(Some(state)).await;
    let mut client = CapacityProviderClient::new(channel);
    let found = client
        .get(wire::MachineRef { id: machine.id })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(found.state(), wire::MachineState::Configured);
    assert_eq!(found.cluster, "fault-dwell-300");
    drop(client);
    after.stop().await;
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn the_additions_are_there_for_those_who_ask() {
    let (provider, channel) = provider(None).await;
    let mut client = CapacityProviderClient::new(channel);
    let mut filter = wire::ListFilter {
        page_size: 5,
        ..Default::default()
    };
    let mut seen = std::collections::BTreeSet::new();
    for size in [5, 5, 2] {
        let page = client.list(filter.clone()).await.unwrap().into_inner();
        assert_eq!(
            (page.machines.len(), page.is_full, page.total_machines),
            (size, true, 12)
        );
        assert!(page.features.iter().any(|feature| feature == "paging.v1"));
        seen.extend(page.machines.into_iter().map(|machine| machine.id));
        filter.page_token = page.next_page_token;
    }
    assert_eq!((seen.len(), filter.page_token.is_empty()), (12, true));
    let request = wire::CreateRequest {
        machine_id: seen.pop_first().unwrap(),
        shard_metadata: [("k".to_owned(), "v".to_owned())].into(),
        ..Default::default()
    };
    let first = client.create(request.clone()).await.unwrap().into_inner();
    let again = client.create(request).await.unwrap().into_inner();
    assert_eq!((first.replayed, again.replayed), (false, true));
    assert_eq!(again.machine.unwrap().shard_metadata["k"], "v");
    provider.stop().await;
}
