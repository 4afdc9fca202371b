//! Why: where a Pod waits on its way to a Node, from what the cluster shows of it.
//!
//! ```text
//! WhyFacts ─▶ pod ─▶ request ─▶ need ─▶ machine ─▶ node ─▶ Account
//!              └──── each says where it stands, and may be where the Pod waits: the first that does ────┘
//! ```
//!
//! Nothing is decided here and nothing remembered: a function of what was read. What could not be read is said to be
//! unknown, never taken for absent. The words are for whoever made the Pod, who need not know how BigFleet works.

mod account;
mod facts;
mod machine;
mod need;
mod node;
mod pod;
mod request;

#[cfg(test)]
mod tests;

pub use account::{Account, Hop, HopName, HopState, Verdict};
pub use facts::{LeaseSeen, NeedSaid, NotRead, ShardSaid, WaitingPod, WhyFacts};
pub use machine::{machine_to_ask, node_to_read};
pub use need::{NeedName, need_name};

use account::Step;
use bigfleet_model::Time;
use pod::Way;
use std::time::Duration;

/// A lease that was not renewed for so long is nobody's; our processes renew theirs every 2 s.
const LEASE_LASTS: Duration = Duration::from_secs(60);

/// What is told about the Pod.
pub fn account(facts: &WhyFacts) -> Account {
    match pod::way(facts) {
        Way::Ends(step) => told(vec![step], HopState::NotNeeded),
        Way::IsHeld(step) => told(vec![step], HopState::Later),
        Way::HasNode(step) => {
            let request = request::of_one_with_a_node(facts);
            let need = need::of_one_with_a_node(facts);
            let machine = machine::of_one_with_a_node(facts);
            let hops = [request, need, machine].map(Step::passed);
            let mut steps = vec![step];
            steps.extend(hops);
            steps.push(node::of_one_with_a_node(facts));
            told(steps, HopState::Later)
        }
        Way::Waits(step) => {
            let mut steps = vec![step, request::step(facts)];
            if let Ok(Some(request)) = &facts.request {
                steps.push(need::step(facts, request));
                steps.push(machine::step(facts, request));
                steps.push(node::step(facts, request));
            }
            told(steps, HopState::Later)
        }
    }
}

/// The Pod waits at the first hop that says so. Hops nobody looked at are as `rest` says.
fn told(steps: Vec<Step>, rest: HopState) -> Account {
    let mut account = Account {
        verdict: Verdict::Unknown,
        waits_at: None,
        sentence: String::new(),
        changes: Vec::new(),
        hops: Vec::new(),
    };
    for Step { mut hop, stop } in steps {
        if let Some(stop) = stop.filter(|_| account.waits_at.is_none() && is_open(&account)) {
            account.verdict = stop.verdict;
            account.sentence = stop.sentence;
            account.changes = stop.changes;
            if !matches!(stop.verdict, Verdict::Runs | Verdict::Over) {
                account.waits_at = Some(hop.name);
                if hop.state != HopState::Unknown {
                    hop.state = HopState::Here;
                }
            }
        }
        account.hops.push(hop);
    }
    for name in HopName::ALL.into_iter().skip(account.hops.len()) {
        account.hops.push(Hop::new(name, rest, ""));
    }
    account
}

/// Whether no hop has said yet how the Pod is.
fn is_open(account: &Account) -> bool {
    account.sentence.is_empty()
}

/// Whether somebody holds one of these leases; `None` where there is none, or they could not be read: a process may also run
/// without one.
fn is_led(leases: &Result<Vec<LeaseSeen>, NotRead>, now: Time) -> Option<bool> {
    let is_fresh = |lease: &LeaseSeen| {
        let renewed = lease.renewed;
        lease.is_held && renewed.is_some_and(|at| now.duration_since(at) < LEASE_LASTS)
    };
    let leases = leases.as_ref().ok().filter(|leases| !leases.is_empty())?;
    Some(leases.iter().any(is_fresh))
}
