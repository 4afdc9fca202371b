//! Pass A (RF-4): every Need first keeps what is its own. No Need depends on another here.

use crate::{
    domain::coverage,
    ledger::Ledger,
    steps::Search,
    world::{Unit, World, can_use, credit, credits, domain_of, is_gang},
};
use bigfleet_model::Need;
use std::collections::BTreeMap;

/// RF-1, Own(N): attributed to N, of use to N, and not `not_ready`.
pub(crate) fn own<'w>(world: &'w World<'w>, need: &Need) -> Vec<&'w Unit<'w>> {
    let key = Some(need.key());
    let is_own = |unit: &&Unit<'_>| {
        unit.attribution == key && !unit.ended && can_use(need, unit) && !unit.not_ready()
    };
    world.units.iter().filter(is_own).collect()
}

/// RF-4.
pub(crate) fn pass_a<'w>(world: &'w World<'w>, ledger: &mut Ledger<'w>) {
    for (rank, need) in world.needs.iter().enumerate() {
        match home(world, need) {
            None if is_gang(need) => {}
            home => Search::new(world, rank, &home.unwrap_or_default()).take_own(ledger),
        }
    }
}

/// RF-4: the home of a gang: the domain with the greatest cov(own), then the smallest value.
pub(crate) fn home(world: &World<'_>, need: &Need) -> Option<String> {
    let aggregate = &need.row.aggregate;
    let mut domains: BTreeMap<&str, Vec<&Unit<'_>>> = BTreeMap::new();
    for unit in own(world, need) {
        if let Some(domain) = domain_of(need, unit)
            && credit(need, unit).contributes_to(aggregate)
        {
            domains.entry(domain).or_default().push(unit);
        }
    }
    let mut best: Option<(&str, f64)> = None;
    for (domain, units) in domains {
        let covered = coverage(&credits(need, units), aggregate);
        if best.is_none_or(|(_, most)| most < covered) {
            best = Some((domain, covered));
        }
    }
    best.map(|(domain, _)| domain.to_owned())
}
