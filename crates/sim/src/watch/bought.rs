//! Bought: nobody acquires what is not missing, judged from the outside, by adding up.
//!
//! ```text
//! own before the decision ── does it cover the Need? ──▶ then nothing is acquired
//! own after it ── does it cover the Need without any one of what is new? ──▶ then one is too many
//! ```
//!
//! It is what a credit that is forgotten, given to the wrong Need or counted late leads to first, at the
//! very decision. New is also what a Need takes over from another of its cluster: the small machine it
//! acquired before that may no longer be needed then, which is how an order one by one goes. Plain Needs
//! only, as in [cover](super::cover).

use super::{Decided, Rule, cover};
use crate::{descriptions, world::World};
use bigfleet_model::{Amounts, Machine, MachineId, NeedKey, Row};
use std::collections::BTreeSet;

impl World {
    /// What one cycle acquired; `touched` are all machines it committed anew.
    pub(crate) fn check_bought(&mut self, decided: &[Decided], touched: &BTreeSet<&MachineId>) {
        let acquired = decided.iter().filter(|one| one.acquires());
        let needs: BTreeSet<&NeedKey> = acquired.filter_map(|one| one.need.as_ref()).collect();
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        let too_much = needs.into_iter().find_map(|need| {
            let row = self.plain_row(need)?;
            let own = core
                .machines()
                .filter(|one| cover::is_attributed(one, need));
            // What never became a node, or is too small by now for the largest Pod, is no use to it.
            let own = own.filter(|one| {
                // Nor is what is to leave: something is acquired in its place.
                !core.is_not_ready(one.id())
                    && core.leaving(one.id()).is_none()
                    && one.shape().serves(&row.profile, &row.min_unit)
            });
            let (new, old): (Vec<_>, Vec<_>) = own.partition(|one| touched.contains(one.id()));
            let without = |left_out: Option<&MachineId>| {
                let all = old.iter().chain(new.iter().filter(|_| left_out.is_some()));
                let all = all.filter(|one| Some(one.id()) != left_out);
                let sizes = all.map(|one| cover::credit(row, one.shape()));
                sizes.fold(Amounts::default(), |sum, size| sum.add(&size))
            };
            let spared = |one: &&Machine| without(Some(one.id())).covers(&row.aggregate);
            let one_too_many = !new.is_empty() && new.iter().all(spared);
            if !one_too_many && !without(None).covers(&row.aggregate) {
                return None;
            }
            let names = |machines: Vec<&Machine>| cover::names(machines.into_iter(), core);
            let (new, old) = (names(new), names(old));
            let (need, wanted) = (
                descriptions::need(need),
                descriptions::amounts(&row.aggregate),
            );
            Some(format!(
                "{need}: wants {wanted}, has {old}, and is given {new}"
            ))
        });
        if let Some(text) = too_much {
            self.watch.broke(Rule::NothingTooMuch, self.now, text);
        }
    }

    /// What a plain Need wants, as the shard was last told.
    fn plain_row(&self, need: &NeedKey) -> Option<&Row> {
        let cluster = self.cluster_named(need.cluster.as_str())?;
        let mut rows = self.watch.demand.of(cluster)?.iter();
        rows.find(|row| {
            cover::is_plain(row)
                && *row.profile.fingerprint() == need.fingerprint
                && row.group == need.group
        })
    }
}
