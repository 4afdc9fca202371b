//! The offerings: what there is to have, and what it costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_provider_kit::{CapacityType, Offer};

/// Every machine, by an id that is the same at every start. Those of one kind share their offer.
pub(crate) fn all(provider: &str, count: usize) -> Vec<(String, Arc<Offer>)> {
    let on_demand = Arc::new(offer(CapacityType::OnDemand, 0.40, 0.0));
    // Spot capacity needs a chance of interruption above 0, per hour.
    let spot = Arc::new(offer(CapacityType::Spot, 0.12, 0.05));
    let machine = |index: usize| match index % 3 {
        2 => (format!("{provider}-spot-{index:05}"), Arc::clone(&spot)),
        _ => (
            format!("{provider}-on-demand-{index:05}"),
            Arc::clone(&on_demand),
        ),
    };
    (0..count).map(machine).collect()
}

fn offer(capacity_type: CapacityType, price_per_hour: f64, interruption_probability: f64) -> Offer {
    let quantities = |cpu: &str, memory: &str| {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        BTreeMap::from([pair("cpu", cpu), pair("memory", memory)])
    };
    Offer {
        instance_type: "small".to_owned(),
        zone: "zone-a".to_owned(),
        capacity_type,
        price_per_hour,
        interruption_probability,
        resources: quantities("4", "16Gi"),
        allocatable: quantities("3900m", "15Gi"),
        labels: BTreeMap::new(),
    }
}
