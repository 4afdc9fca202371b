//! Clients: ask and change at random, of whichever replica, and write down what came of it.

use super::history::{Asked, Call, Ended, History};
use crate::group::{Group, client};
use crate::processes::until;
use crate::reporter::Reporter;
use bigfleet_seeded::Prng;
use bigfleet_wire::v1alpha1 as wire;
use bigfleet_wire::v1alpha1::coordinator_admin_client::CoordinatorAdminClient;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tonic::{Code, Status};

/// Registers: domains, and a shard that comes and goes.
const RACKS: [&str; 3] = ["r1", "r2", "r3"];
const SHARDS: [&str; 2] = ["shard-a", "shard-b"];
const GUEST: &str = "guest";
/// Clients at once.
const CLIENTS: u64 = 4;
/// Calls on one register: enough to catch a mistake, few enough to judge.
const MOST_CALLS: usize = 90;
/// One that is not answered within this is not waited for.
const ANSWERED_WITHIN: Duration = Duration::from_millis(800);
/// Between two calls of a client.
const PAUSE: Duration = Duration::from_millis(25);

#[derive(Debug, Default)]
struct Shared {
    addresses: Mutex<Vec<SocketAddr>>,
    history: Mutex<History>,
    clock: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn has_room(&self, register: &str) -> bool {
        let history = self.history.lock().unwrap();
        history
            .get(register)
            .is_none_or(|calls| calls.len() < MOST_CALLS)
    }

    fn note(&self, register: &str, call: Call) {
        let mut history = self.history.lock().unwrap();
        history.entry(register.to_owned()).or_default().push(call);
    }
}

pub(super) struct Clients {
    shared: Arc<Shared>,
    running: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Registers the shards that domains are given to, and starts.
    pub(super) async fn start(group: &Group, seed: u64) -> Self {
        for shard in SHARDS {
            group.shard_reports(shard).await;
        }
        let shared: Arc<Shared> = Arc::default();
        let mut clients = Self {
            shared: Arc::clone(&shared),
            running: Vec::new(),
        };
        clients.are_told(group);
        for nth in 0..CLIENTS {
            let mut one = Client {
                shared: Arc::clone(&shared),
                draws: Prng::new(seed.wrapping_mul(1_000).wrapping_add(nth)),
                at: 0,
                guest: Reporter::new(GUEST),
            };
            clients.running.push(tokio::spawn(async move {
                while !one.shared.is_over.load(Ordering::SeqCst) {
                    one.turn().await;
                    tokio::time::sleep(PAUSE).await;
                }
            }));
        }
        clients
    }

    /// Where replicas are by now.
    pub(super) fn are_told(&self, group: &Group) {
        let addresses = (0..3).map(|nth| group.address(nth)).collect();
        *self.shared.addresses.lock().unwrap() = addresses;
    }

    /// Lets them go on until so many calls were answered: a history of few answers would prove little.
    pub(super) async fn are_answered(&self, least: usize) {
        until("calls are answered", async || {
            let history = self.shared.history.lock().unwrap();
            let calls = history.values().flatten();
            let known = calls.filter(|call| call.ended != Ended::Unknown).count();
            (least <= known, known)
        })
        .await;
    }

    /// Stops them, and reads everything once more: what was agreed on must be there.
    pub(super) async fn end(self, group: &Group) -> History {
        self.shared.is_over.store(true, Ordering::SeqCst);
        for one in self.running {
            one.await.unwrap();
        }
        let began = self.shared.tick();
        let leader = group.leader().await;
        let domains = domains(group.address(leader)).await.unwrap();
        let is_there = is_registered(group.address(leader)).await.unwrap();
        let over = self.shared.tick();
        for rack in RACKS {
            let ended = Ended::Saw(found(&domains, rack));
            self.shared.note(
                rack,
                Call {
                    asked: Asked::Read,
                    ended,
                    began,
                    over,
                },
            );
        }
        let ended = Ended::Saw(is_there.then(|| GUEST.to_owned()));
        self.shared.note(
            GUEST,
            Call {
                asked: Asked::Read,
                ended,
                began,
                over,
            },
        );
        std::mem::take(&mut self.shared.history.lock().unwrap())
    }
}

async fn domains(at: SocketAddr) -> Result<Vec<wire::DomainAssignment>, Status> {
    let request = wire::ListDomainAssignmentsRequest {};
    let listed = client(at).list_domain_assignments(request).await?;
    Ok(listed.into_inner().assignments)
}

fn found(domains: &[wire::DomainAssignment], rack: &str) -> Option<String> {
    let mut domains = domains.iter();
    let found = domains.find(|one| one.topology_value == rack)?;
    Some(found.shard_id.clone())
}

async fn is_registered(at: SocketAddr) -> Result<bool, Status> {
    let listed = client(at).list_shards(wire::ListShardsRequest {}).await?;
    let mut shards = listed.into_inner().shards.into_iter();
    Ok(shards.any(|one| one.shard_id == GUEST))
}

/// How a change ended; `None` if it surely was not made, which is no call at all.
fn ended(answer: Result<(), Status>) -> Option<Ended> {
    match answer.map_err(|status| status.code()) {
        Ok(()) => Some(Ended::Done),
        // Not the one to ask: nothing happened.
        Err(Code::FailedPrecondition) => None,
        Err(Code::AlreadyExists) => Some(Ended::Exists),
        Err(Code::NotFound) => Some(Ended::Missing),
        Err(_) => Some(Ended::Unknown),
    }
}

struct Client {
    shared: Arc<Shared>,
    draws: Prng,
    /// The replica it asks.
    at: usize,
    guest: Reporter,
}

impl Client {
    async fn turn(&mut self) {
        let register = match self.draws.below(8) {
            0 => GUEST,
            _ => *self.draws.pick(&RACKS),
        };
        if !self.shared.has_room(register) {
            return;
        }
        let at = self.shared.addresses.lock().unwrap()[self.at];
        let is_read = self.draws.percent(45);
        let began = self.shared.tick();
        let call = async {
            if is_read {
                return self.read(at, register).await;
            }
            if register == GUEST {
                self.register_or_remove(at).await
            } else {
                self.change(at, register).await
            }
        };
        let (asked, ended) = call.await;
        let over = self.shared.tick();
        if ended.is_none_or(|ended| {
            let is_lost = ended == Ended::Unknown;
            // A read that was not answered says nothing.
            if !(is_lost && asked == Asked::Read) {
                let call = Call {
                    asked,
                    ended,
                    began,
                    over,
                };
                self.shared.note(register, call);
            }
            is_lost
        }) {
            // Another replica next time.
            self.at = (self.at + 1 + self.draws.below(2)) % 3;
        }
    }

    async fn read(&mut self, at: SocketAddr, register: &str) -> (Asked, Option<Ended>) {
        let asked = async {
            if register == GUEST {
                let is_there = is_registered(at).await?;
                return Ok(is_there.then(|| GUEST.to_owned()));
            }
            Ok(found(&domains(at).await?, register))
        };
        let answer: Result<Result<_, Status>, _> =
            tokio::time::timeout(ANSWERED_WITHIN, asked).await;
        let ended = match answer {
            Ok(Ok(value)) => Some(Ended::Saw(value)),
            Ok(Err(status)) if status.code() == Code::FailedPrecondition => None,
            Ok(Err(_)) | Err(_) => Some(Ended::Unknown),
        };
        (Asked::Read, ended)
    }

    async fn change(&mut self, at: SocketAddr, rack: &str) -> (Asked, Option<Ended>) {
        let shard = (*self.draws.pick(&SHARDS)).to_owned();
        let asked = match self.draws.below(3) {
            0 => Asked::Clear,
            1 => Asked::Put(shard.clone()),
            _ => Asked::Replace(shard.clone()),
        };
        let (topology_key, topology_value) = ("rack".to_owned(), rack.to_owned());
        let change = async {
            match &asked {
                Asked::Put(_) => {
                    let request = wire::AssignDomainRequest {
                        topology_key,
                        topology_value,
                        shard_id: shard,
                    };
                    client(at).assign_domain(request).await.map(drop)
                }
                Asked::Replace(_) => {
                    let change = wire::DomainChange {
                        topology_key,
                        topology_value,
                        shard_id: shard,
                        r#move: true,
                    };
                    let request = wire::ChangeDomainsRequest {
                        changes: vec![change],
                        dry_run: false,
                    };
                    let mut admin = CoordinatorAdminClient::new(crate::group::channel(at));
                    admin.change_domains(request).await.map(drop)
                }
                Asked::Clear | Asked::Remove | Asked::Read => {
                    let request = wire::UnassignDomainRequest {
                        topology_key,
                        topology_value,
                    };
                    client(at).unassign_domain(request).await.map(drop)
                }
            }
        };
        let answer = tokio::time::timeout(ANSWERED_WITHIN, change).await;
        let ended = answer.map_or(Some(Ended::Unknown), ended);
        (asked, ended)
    }

    /// A shard that reports is registered; an admin removes it.
    async fn register_or_remove(&mut self, at: SocketAddr) -> (Asked, Option<Ended>) {
        if self.draws.percent(50) {
            let request = wire::RemoveShardRequest {
                shard_id: GUEST.to_owned(),
                gone: false,
            };
            let removed = async { client(at).remove_shard(request).await.map(drop) };
            let answer = tokio::time::timeout(ANSWERED_WITHIN, removed).await;
            return (Asked::Remove, answer.map_or(Some(Ended::Unknown), ended));
        }
        // Each client's guest is another process of one shard, so its epoch has to be the highest so far.
        self.guest.epoch = i64::try_from(self.shared.tick()).unwrap() + 1;
        let report = self.guest.report();
        let reported = async { client(at).report_shard(report).await.map(drop) };
        let answer = tokio::time::timeout(ANSWERED_WITHIN, reported).await;
        // A report is agreed on in several steps: whoever refuses the last may have registered it with the first.
        let ended = match answer {
            Ok(Ok(())) => Ended::Done,
            Ok(Err(_)) | Err(_) => Ended::Unknown,
        };
        (Asked::Put(GUEST.to_owned()), Some(ended))
    }
}
