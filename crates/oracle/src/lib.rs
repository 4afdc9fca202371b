//! The oracle: the rules of the decision engine transcribed one by one, for tests only.
//!
//! ```text
//! RF-1 attribution ─▶ RF-12 fold ─▶ RF-1 ended intents ─▶ O-1 order
//!   ─▶ RF-4 pass A ─▶ RF-5, RF-21 pass B ─▶ RF-10 Phase 2 ─▶ RF-18 exchange ─▶ R-1, R-4 Phase 3
//!   ─▶ RF-7 restamps, RF-13 ended intents, VD-1 verdicts, RF-14 emission
//! ```
//!
//! One module per group of rules, each rule named where it is followed. Nothing is indexed, kept or
//! shared between steps: an answer that costs more to get wrong than to compute.
//!
//! # Readings
//!
//! Where the text leaves a choice, this is the one made here.
//!
//! - **O-1** Rows equal in everything named are told apart by their profile, structurally.
//! - **RF-1** Heirs are counted as identities (cluster, text, group): the folded form shared by
//!   several gangs is one row, and so are rows whose texts collide. A text without `|reqs=` has no
//!   heir.
//! - **RF-1, RF-4** Needs whose texts collide share their own; the first in T takes first.
//! - **RF-1, RF-13** An intent whose Need is present ends when that Need does not claim the machine,
//!   whether or not the cluster is ready; with `acquire: false` no intent ends.
//! - **RF-1, RF-5** An intent that the pass leaves unclaimed makes the machine supply from the next
//!   cycle on, not in this one.
//! - **RF-2** Keep order and stamped priority use what is recorded, not the heir's terms.
//! - **RF-4** Only own machines that contribute to the aggregate make a home; without one a gang's
//!   `same_domain` is empty.
//! - **RF-5, RF-6** A gang that B5 took from is short when its turn comes and chooses its domain
//!   then; `same_satisfiable` is that choice's. Own that another Need has claimed is not in `own`.
//! - **RF-6** Victims of a domain contribute to the aggregate (RF-3). Case 1's count is of the total,
//!   case 3's of cred and idle.
//! - **RF-6 case 2** B5 happens only if after it nothing is wanted.
//! - **RF-7** A machine reclaimed this cycle is still restamped if its attribution passed on; so is
//!   an Idle one with a promised Bootstrap. Claimed by another Need than its heir: the claimant.
//! - **RF-8** Covered is judged on all claims; B3's machines are among those given back.
//! - **RF-9** Candidates are those RF-3 admits when the step starts; victims picked count in n.
//! - **RF-10** V-3 does not exclude `not_ready` machines; RF-6's victims do. A gang in case 3 is tried
//!   in its domain like any other. Machines promised there are not pruned.
//! - **RF-10, RF-11** A preempted machine stays in the claims of the Need that had it.
//! - **RF-11** "Configured claims" of the second sentence are all claims in state Configured. As Phase 2
//!   starts no gang has a victim yet, so one that chose by case 2 holds its machines then.
//! - **RF-12** A witness may have an empty value of the Same key. Classes with one folded profile
//!   and aggregate become one row (F-2).
//! - **RF-15** Any Idle or Speculative machine that RM-3 admits and nobody claims counts, also an
//!   unavailable or promised one.
//! - **RF-18** Machines a short Need can use are left out before the dearest is chosen. Holds are
//!   looked at after Phase 2 for the list, and again after the exchange for Phase 3. Machines without a
//!   value of a topology key have the same value of it.
//! - **RF-21** What leaves `now` is reclaimed, so it is nobody's victim either: an intent on it would end before
//!   it is Idle. In Pass A, B0 and B1 machines that stay are one step and those that leave the next, each with
//!   domains of its own (RF-9).
//! - **RF-21, replacing** What a gang claims already counts in its case 1 as what it would be unclaimed, and the
//!   choice is its `same_domain`. A machine is replaced for what it gave, so a Need that is short takes no more
//!   than that. A value is alive per topology key, `not_ready` machines included. What was replaced is
//!   attributed at once: in this cycle it is nobody else's own or leftover. Of claims outside a gang's new domain
//!   only those that leave are attributed to it.
//! - **RF-21, Reclaims** Those that leave come first over all clusters, each word by cluster and keep order.
//! - **RF-20** In the keep order of B1a a machine whose intent has ended has the price and the penalty of the
//!   time it was bound, not the intent's.

mod attribution;
mod commit;
mod domain;
mod emission;
mod exchange;
mod fold;
mod hold;
mod ledger;
mod order;
mod pass_a;
mod pass_b;
mod phase2;
mod phase3;
mod pick;
mod replace;
mod score;
mod steps;
mod verdict;
mod world;

use bigfleet_model::{Amounts, Claim, Decision, Fleet};
use ledger::Ledger;
use std::sync::Arc;
use world::World;

/// What one cycle decides. Pure: the same fleet always gives the same decision (D-1).
pub fn decide(fleet: &Fleet) -> Decision {
    let world = normalise(fleet);
    let mut ledger = Ledger::new(&world);
    pass_a::pass_a(&world, &mut ledger);
    let choices = pass_b::pass_b(&world, &mut ledger);
    let ranks = 0..world.needs.len();
    let residuals: Vec<Amounts> = ranks.clone().map(|rank| ledger.wanted(rank)).collect();
    let phase2 = phase2::phase2(&world, &mut ledger, &choices, &residuals);
    let preempted = &phase2.preempted;
    exchange::exchange(&world, &mut ledger, &choices, preempted, &residuals);

    let reclaims = phase3::reclaims(&world, &ledger, &choices, preempted);
    let releases = phase3::releases(&world, &ledger);
    let mut claims: Vec<Claim> = Vec::new();
    for rank in ranks {
        let need = world.needs[rank].key();
        let claim = |unit: &world::Unit<'_>| Claim {
            machine: unit.id().clone(),
            need: need.clone(),
        };
        claims.extend(ledger.units(rank).into_iter().map(claim));
    }
    claims.sort();
    Decision {
        actions: emission::actions(&world, &ledger, preempted, &reclaims, &releases),
        claims,
        ended_intents: commit::ended_intents(&world, &ledger),
        held: phase3::held(&world, &ledger, &choices, preempted),
        restamps: commit::restamps(&world, &ledger, preempted, &reclaims),
        needs: verdict::verdicts(&world, &ledger, &choices, &residuals, &phase2),
    }
}

/// Attribution, fold and order: everything Phase 1 starts from.
fn normalise(fleet: &Fleet) -> World<'_> {
    let mut units = attribution::attribute(fleet);
    let mut needs = fold::fold(fleet, &units);
    attribution::end_intents(fleet, &mut units, &needs);
    needs.sort_by_cached_key(order::total_order);
    let needs = needs.into_iter().map(Arc::new).collect();
    World {
        fleet,
        units,
        needs,
    }
}
