//! Faults: clients ask and change, a seed draws what goes wrong, and in the end one copy of the tables must explain every answer.
//!
//! ```text
//! clients ──▶ three processes ◀── relays: cut, one way only, late, in another order, twice
//!    │             ▲
//!    │             └── killed, frozen, wiped, moved, asked to end
//!    └──▶ history ──▶ linearizable? and: once the faults stop, the group is whole and answers
//! ```
//!
//! Twelve histories are a test; `cargo xtask histories` runs more, from other seeds.

mod client;
mod history;
pub(crate) mod network;

use crate::group::Group;
use crate::processes::until;
use bigfleet_seeded::Prng;
use client::Clients;
use history::{Asked, Call, Ended, broken, is_linearizable};
use network::{Network, Relay};
use std::collections::BTreeSet;
use std::time::Duration;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// The leader, or another one, is cut off from all others.
    CutOff,
    /// Nothing it says arrives; it hears everything.
    Mute,
    /// It hears nothing; all it says arrives.
    Deaf,
    /// It is heard, and no answer comes back to it.
    Unanswered,
    /// Calls overtake one another, and some arrive twice.
    Shaken,
    /// Killed, and started again.
    Killed,
    /// Two of three killed, and started again.
    TwoKilled,
    /// Stopped where it is, and let go on later.
    Frozen,
    /// Killed, its disk lost, and started again.
    Wiped,
    /// Started again at other addresses.
    Moved,
    /// Asked to end, and started again.
    AskedToEnd,
}

const FAULTS: [Fault; 11] = [
    Fault::CutOff,
    Fault::Mute,
    Fault::Deaf,
    Fault::Unanswered,
    Fault::Shaken,
    Fault::Killed,
    Fault::TwoKilled,
    Fault::Frozen,
    Fault::Wiped,
    Fault::Moved,
    Fault::AskedToEnd,
];
/// Faults of one history.
const FAULTS_EACH: usize = 4;
/// How long one lasts, at least and at most: an election takes longer than the one, and not than the other.
const LASTS: (usize, usize) = (200, 1_500);

struct World {
    group: Group,
    network: Network,
    relays: Vec<Relay>,
    draws: Prng,
}

impl World {
    async fn begin(seed: u64) -> Self {
        let network = Network::new(seed);
        let name = format!("coordinator-faults-{seed}");
        let (group, relays) = Group::relayed(&name, 3, &network).await;
        Self {
            group,
            network,
            relays,
            draws: Prng::new(seed),
        }
    }

    async fn last(&mut self) {
        let millis = self.draws.between(LASTS.0, LASTS.1);
        tokio::time::sleep(Duration::from_millis(millis as u64)).await;
    }

    /// The one it happens to: half of the time the leader.
    async fn one(&mut self) -> usize {
        if self.draws.percent(50) {
            return self.group.leader().await;
        }
        self.draws.below(3)
    }

    /// Its number and those of the others.
    async fn sides(&self, nth: usize) -> (Vec<u64>, Vec<u64>) {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for one in 0..3 {
            let side = if one == nth { &mut own } else { &mut others };
            side.extend(self.group.directory(one).await);
        }
        (own, others)
    }

    async fn suffer(&mut self, fault: Fault, clients: &Clients) {
        let nth = self.one().await;
        match fault {
            Fault::CutOff | Fault::Mute | Fault::Deaf | Fault::Unanswered => {
                let (own, others) = self.sides(nth).await;
                if matches!(fault, Fault::CutOff | Fault::Mute) {
                    self.network.lose(&own, &others);
                }
                if matches!(fault, Fault::CutOff | Fault::Deaf) {
                    self.network.lose(&others, &own);
                }
                if fault == Fault::Unanswered {
                    self.network.silence(&own, &others);
                }
                self.last().await;
                self.network.heal();
            }
            Fault::Shaken => {
                self.network.shake(Duration::from_millis(120), 20);
                self.last().await;
                self.network.heal();
            }
            Fault::Killed => self.restart(&[nth], false).await,
            Fault::TwoKilled => self.restart(&[nth, (nth + 1) % 3], false).await,
            Fault::Wiped => {
                // A majority must have kept what was agreed on, or it is lost for good.
                self.group.is_whole().await;
                self.restart(&[nth], true).await;
                self.group.is_whole().await;
            }
            Fault::Frozen => {
                self.group.running[nth].as_ref().unwrap().freeze(true);
                self.last().await;
                self.group.running[nth].as_ref().unwrap().freeze(false);
            }
            Fault::Moved => {
                self.group.kill(nth);
                let relay = self.group.move_relayed(nth, &self.network).await;
                self.group.start(nth);
                self.relays[nth] = relay;
                self.last().await;
            }
            Fault::AskedToEnd => {
                let mut leaving = self.group.running[nth].take().unwrap();
                leaving.ask_to_end();
                assert_eq!(leaving.over().await.code(), Some(0), "{}", leaving.text());
                self.group.start(nth);
            }
        }
        clients.are_told(&self.group);
    }

    async fn restart(&mut self, all: &[usize], is_wiped: bool) {
        for nth in all {
            if is_wiped {
                self.group.wipe(*nth);
            } else {
                self.group.kill(*nth);
            }
        }
        self.last().await;
        all.iter().for_each(|nth| self.group.start(*nth));
    }
}

/// One history: what it suffered, and every call.
async fn run(seed: u64, faults: &[Fault]) -> history::History {
    let mut world = World::begin(seed).await;
    let clients = Clients::start(&world.group, seed).await;
    for fault in faults {
        world.suffer(*fault, &clients).await;
    }
    world.network.heal();
    world.group.is_whole().await;
    clients.are_answered(60).await;
    let history = clients.end(&world.group).await;
    let (calls, overtaken) = world.network.counts();
    let count = |is: fn(&Ended) -> bool| {
        let all = history.values().flatten();
        all.filter(|call| is(&call.ended)).count()
    };
    let (known, unknown) = (
        count(|ended| *ended != Ended::Unknown),
        count(|ended| *ended == Ended::Unknown),
    );
    println!(
        "seed {seed} {faults:?}: {known} calls answered, {unknown} not; {calls} between replicas, {overtaken} overtaken"
    );
    assert_eq!(
        broken(&history),
        Vec::<&str>::new(),
        "seed {seed}, {faults:?}: {history:#?}"
    );
    for process in world.group.running.iter().flatten() {
        assert!(!process.text().contains("panicked"), "{}", process.text());
    }
    history
}

/// What the history of this seed suffers. Neighbouring seeds have what the others lack.
fn drawn(seed: u64) -> Vec<Fault> {
    let mut draws = Prng::new(seed);
    let first = usize::try_from(seed).unwrap() % FAULTS.len();
    let rest = (1..FAULTS_EACH).map(|_| *draws.pick(&FAULTS));
    std::iter::once(FAULTS[first]).chain(rest).collect()
}

/// A number of the environment, for whoever starts this with other ones.
fn given(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(usual, |text| text.parse().unwrap())
}

#[test]
fn every_history_is_one_that_a_single_copy_can_have_written() {
    let first = given("BIGFLEET_HISTORY_SEED", 1);
    let count = given("BIGFLEET_HISTORIES", 12);
    let seeds: Vec<u64> = (first..first + count).collect();
    let suffered: BTreeSet<Fault> = seeds.iter().flat_map(|seed| drawn(*seed)).collect();
    assert_eq!(suffered.len(), FAULTS.len(), "{suffered:?}");
    // A few at a time: what they wait for is mostly elections.
    let next = std::sync::atomic::AtomicUsize::new(0);
    let worker = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut planted = 0;
        while let Some(seed) = seeds.get(next.fetch_add(1, std::sync::atomic::Ordering::SeqCst)) {
            let history = runtime.block_on(run(*seed, &drawn(*seed)));
            planted += u64::from(plant_stale_read(&history));
        }
        planted
    };
    let planted: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|one| one.join().unwrap()).sum()
    });
    // Of most histories one read of what was there before is noticed; of those with few changes between reads, none.
    assert!(
        count <= 4 * planted,
        "a stale read is noticed in {planted} of {count} histories"
    );
}

/// Lets a read see what an earlier one saw, although something changed in between; whether one such is noticed.
fn plant_stale_read(history: &history::History) -> bool {
    history.values().any(|calls| {
        let reads = calls.iter().filter(|call| call.asked == Asked::Read);
        let mut reads: Vec<&Call> = reads.collect();
        reads.sort_by_key(|read| read.began);
        let mut pairs = reads.windows(2);
        pairs.any(|pair| {
            let (earlier, later) = (pair[0], pair[1]);
            if later.began < earlier.over || earlier.ended == later.ended {
                return false;
            }
            // As far as that read: what came later cannot be asked of who reads.
            let until = calls.iter().filter(|call| call.began <= later.began);
            let mut planted: Vec<Call> = until.cloned().collect();
            let read = planted.iter_mut().find(|call| call.began == later.began);
            read.unwrap().ended = earlier.ended.clone();
            !is_linearizable(&planted)
        })
    })
}

/// A leader that is cut off answers no read and takes no change, while the others go on.
#[tokio::test]
async fn a_leader_that_is_cut_off_answers_nothing() {
    let world = World::begin(77).await;
    world.group.shard_reports("shard-a").await;
    world.group.assign("r1", "shard-a").await;
    let old = world.group.leader().await;
    let (own, others) = world.sides(old).await;
    world.network.lose(&own, &others);
    world.network.lose(&others, &own);
    let request = bigfleet_wire::v1alpha1::ListDomainAssignmentsRequest {};
    // The others have another leader, and change what the old one knows.
    until("another leader", async || {
        let mut all = Vec::new();
        for nth in (0..3).filter(|nth| *nth != old) {
            let assign = bigfleet_wire::v1alpha1::AssignDomainRequest {
                topology_key: "rack".to_owned(),
                topology_value: "r2".to_owned(),
                shard_id: "shard-a".to_owned(),
            };
            all.push(
                world
                    .group
                    .client(nth)
                    .assign_domain(assign)
                    .await
                    .map(drop),
            );
        }
        (all.iter().any(Result::is_ok), all)
    })
    .await;
    let read = world
        .group
        .client(old)
        .list_domain_assignments(request)
        .await;
    let refused = read.unwrap_err();
    assert_eq!(
        refused.code(),
        tonic::Code::FailedPrecondition,
        "{refused:?}"
    );
    world.network.heal();
    world.group.is_whole().await;
    assert_eq!(world.group.racks().await, ["r1", "r2"]);
}
