//! Prices of a running provider follow the price list, as often as it is told to look.

use std::collections::BTreeMap;

use crate::processes::{Folder, provider, until};
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
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
    let filter = wire::ListFilter {
        since_revision: first.revision.clone(),
        ..Default::default()
    };
    let delta = until("a price that moved", async || {
        let delta = client.list(filter.clone()).await.unwrap().into_inner();
        (!delta.machines.is_empty(), delta)
    })
    .await;
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
