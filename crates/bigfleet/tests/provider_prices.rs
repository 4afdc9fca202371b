//! Prices of a running provider follow the price list, as often as it is told to look.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod processes;

use std::collections::BTreeMap;
use std::time::Duration;

use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use processes::{Folder, provider};
use wire::capacity_provider_client::CapacityProviderClient;

#[tokio::test]
async fn a_refreshed_price_is_listed_and_counted() {
    let folder = Folder::new("prices");
    let knobs = folder.file("knobs.json");
    std::fs::write(&knobs, r#"{"price_change_rate": 2.0}"#).unwrap();
    let knobs = format!("--knobs={}", knobs.display());
    let process = provider(&["--seed-count=6", "--price-refresh=50ms", &knobs]);
    let channel = Dial::provider(None).channel(&process.addr.to_string());
    let mut client = CapacityProviderClient::new(channel.unwrap());

    let first = client.list(wire::ListFilter::default()).await.unwrap();
    let first = first.into_inner();
    let prices = |list: &wire::MachineList| -> BTreeMap<String, String> {
        let price = |m: &wire::Machine| (m.id.clone(), m.price_per_hour.to_string());
        list.machines.iter().map(price).collect()
    };
    let before = prices(&first);
    // Only prices move here, and inventories are two minutes apart: what a delta brings is a quote.
    let moved = async {
        let since_revision = first.revision.clone();
        let filter = wire::ListFilter {
            since_revision,
            ..Default::default()
        };
        loop {
            let delta = client.list(filter.clone()).await.unwrap().into_inner();
            if !delta.machines.is_empty() {
                return delta;
            }
            tokio::task::yield_now().await;
        }
    };
    let within = Duration::from_secs(20);
    let delta = tokio::time::timeout(within, moved).await.unwrap();
    for (id, price) in prices(&delta) {
        assert_ne!(price, before[&id]);
        let price: f64 = price.parse().unwrap();
        assert!(price.is_finite() && 0.0 < price, "{id}: {price}");
    }
    assert!(0.0 < process.metric("bigfleet_fake_price_refresh_total{outcome=\"ok\"}"));
    assert!(1e9 < process.metric("bigfleet_fake_price_last_success_timestamp_seconds"));
    drop(client);
    // Off this thread, which has a connection to close meanwhile.
    let ended = tokio::task::spawn_blocking(move || process.terminate());
    assert_eq!(ended.await.unwrap(), Some(0));
}
