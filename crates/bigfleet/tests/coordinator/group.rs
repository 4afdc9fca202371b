//! A group of coordinators: processes on loopback that differ in id, addresses and data directory.

use crate::faults::network::{Network, Relay};
use crate::processes::{Folder, Process, WITHIN};
use crate::reporter::Reporter;
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1::coordinator_admin_client::CoordinatorAdminClient;
use bigfleet_wire::v1alpha1::coordinator_client::CoordinatorClient;
use bigfleet_wire::v1alpha1::{
    AssignDomainRequest, InspectReplicaRequest, ListDomainAssignmentsRequest, ListReplicasRequest,
    Replica, ShardReport, ShardSummary,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tonic::{Status, transport::Channel};

/// How often a caller asks again that was refused or not answered.
const AGAIN_AFTER: Duration = Duration::from_millis(20);

pub(crate) struct Group {
    folder: Folder,
    /// Where each is called, and where others call it.
    ports: Vec<(SocketAddr, SocketAddr)>,
    /// Where others are told that it is, if something is in between.
    relayed: Vec<Option<SocketAddr>>,
    /// What each is started with beside.
    flags: Vec<String>,
    pub(crate) running: Vec<Option<Process>>,
}

/// An address nobody else has or is given: a group must know its addresses before it listens on them,
/// and a port that was free a moment ago may be the near end of somebody's connection now. So every
/// process of tests has an address of the loopback network to itself, and counts its ports.
pub(crate) fn own() -> SocketAddr {
    static PORT: AtomicU16 = AtomicU16::new(7000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, 64 + high, middle, low);
    SocketAddr::from((host, PORT.fetch_add(1, Ordering::Relaxed)))
}

pub(crate) fn channel(addr: SocketAddr) -> Channel {
    Dial::unknown(None).channel(&addr.to_string()).unwrap()
}

/// Whoever is called there.
pub(crate) fn client(addr: SocketAddr) -> CoordinatorClient<Channel> {
    CoordinatorClient::new(channel(addr))
}

impl Group {
    /// Starts so many replicas, and returns once all of them vote.
    pub(crate) async fn of(name: &str, replicas: usize) -> Self {
        Self::with(name, replicas, |_| Vec::new()).await
    }

    /// The same with flags beside, which may name files of the group's folder.
    pub(crate) async fn with(
        name: &str,
        replicas: usize,
        flags: impl FnOnce(&Folder) -> Vec<String>,
    ) -> Self {
        let folder = Folder::new(name);
        let mut group = Self {
            flags: flags(&folder),
            folder,
            ports: (0..replicas).map(|_| (own(), own())).collect(),
            relayed: vec![None; replicas],
            running: Vec::new(),
        };
        group.form().await;
        group
    }

    /// The same with a relay before each replica's port for the others.
    pub(crate) async fn relayed(
        name: &str,
        replicas: usize,
        network: &Network,
    ) -> (Self, Vec<Relay>) {
        let folder = Folder::new(name);
        let ports: Vec<(SocketAddr, SocketAddr)> = (0..replicas).map(|_| (own(), own())).collect();
        let mut relays = Vec::new();
        for (_, raft) in &ports {
            relays.push(network.relay(*raft).await);
        }
        let mut group = Self {
            folder,
            relayed: relays.iter().map(|relay| Some(relay.addr)).collect(),
            ports,
            flags: Vec::new(),
            running: Vec::new(),
        };
        group.form().await;
        (group, relays)
    }

    async fn form(&mut self) {
        for nth in 0..self.ports.len() {
            let process = self.process(nth);
            self.running.push(Some(process));
        }
        self.is_whole().await;
    }

    fn process(&self, nth: usize) -> Process {
        let (grpc, raft) = self.ports[nth];
        let all: Vec<String> = self.ports.iter().map(|(at, _)| at.to_string()).collect();
        let data = self.folder.file(&format!("data-{nth}"));
        let own = [
            format!("--id=coordinator-{nth}"),
            format!("--listen={grpc}"),
            format!("--raft-bind={raft}"),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            format!("--data-dir={}", data.display()),
            format!("--replicas={}", self.ports.len()),
            format!("--join-addr={}", all.join(",")),
        ];
        let told = self.relayed[nth].map(|at| format!("--raft-advertise={at}"));
        let own = own.into_iter().chain(told);
        let flags: Vec<String> = own.chain(self.flags.iter().cloned()).collect();
        Process::start(&["coordinator"], &flags)
    }

    pub(crate) fn start(&mut self, nth: usize) {
        self.running[nth] = Some(self.process(nth));
    }

    pub(crate) fn kill(&mut self, nth: usize) {
        self.running[nth].take().unwrap().kill();
    }

    /// Its disk is lost too.
    pub(crate) fn wipe(&mut self, nth: usize) {
        self.kill(nth);
        std::fs::remove_dir_all(self.data(nth)).unwrap();
    }

    /// Where what it must keep is.
    pub(crate) fn data(&self, nth: usize) -> std::path::PathBuf {
        self.folder.file(&format!("data-{nth}"))
    }

    /// All addresses, as a flag of a verb.
    pub(crate) fn at(&self) -> String {
        let all: Vec<String> = self.ports.iter().map(|(at, _)| at.to_string()).collect();
        format!("--coordinator={}", all.join(","))
    }

    /// A report of this shard, to whoever leads, and what it is told.
    pub(crate) async fn hears(&self, shard: &mut Reporter) {
        // Each attempt is a report of its own: one that was not answered may have arrived.
        let deadline = Instant::now() + WITHIN;
        loop {
            for nth in self.alive() {
                let report = shard.report();
                if let Ok(answer) = self.client(nth).report_shard(report).await {
                    shard.hear(answer.get_ref());
                    return;
                }
            }
            assert!(Instant::now() < deadline, "nobody hears {}", shard.id);
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// It comes back at other addresses, with its disk.
    pub(crate) fn move_elsewhere(&mut self, nth: usize) {
        self.ports[nth] = (own(), own());
    }

    /// The same behind a relay, which others are told of anew.
    pub(crate) async fn move_relayed(&mut self, nth: usize, network: &Network) -> Relay {
        self.move_elsewhere(nth);
        let relay = network.relay(self.ports[nth].1).await;
        self.relayed[nth] = Some(relay.addr);
        relay
    }

    /// The number of its data directory, if it is there to say.
    pub(crate) async fn directory(&self, nth: usize) -> Option<u64> {
        let mut client = CoordinatorAdminClient::new(channel(self.ports[nth].0));
        let said = client.inspect_replica(InspectReplicaRequest {}).await;
        Some(said.ok()?.into_inner().directory)
    }

    /// Where it is called.
    pub(crate) fn address(&self, nth: usize) -> SocketAddr {
        self.ports[nth].0
    }

    /// A file that is gone with the group.
    pub(crate) fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.file(name)
    }

    fn alive(&self) -> impl Iterator<Item = usize> {
        let running = self.running.iter().enumerate();
        running.filter_map(|(nth, process)| process.is_some().then_some(nth))
    }

    /// What the replicas are, by whoever leads.
    pub(crate) async fn replicas(&self) -> Vec<Replica> {
        for nth in self.alive() {
            let mut client = CoordinatorAdminClient::new(channel(self.ports[nth].0));
            if let Ok(listed) = client.list_replicas(ListReplicasRequest {}).await {
                return listed.into_inner().replicas;
            }
        }
        Vec::new()
    }

    /// Waits until every replica votes where it is called now, and one leads.
    pub(crate) async fn is_whole(&self) {
        let mut expected: Vec<String> = self.ports.iter().map(|(at, _)| at.to_string()).collect();
        expected.sort();
        let look = async || {
            let replicas = self.replicas().await;
            let voting = replicas.iter().filter(|one| one.voter);
            let mut voting: Vec<String> = voting.map(|one| one.address.clone()).collect();
            voting.sort();
            let leaders = replicas.iter().filter(|one| one.leader).count();
            (voting == expected && leaders == 1, replicas)
        };
        let deadline = Instant::now() + WITHIN;
        loop {
            let (is_whole, seen) = look().await;
            if is_whole {
                return;
            }
            assert!(Instant::now() < deadline, "never whole: {seen:?}");
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// Which of them leads.
    pub(crate) async fn leader(&self) -> usize {
        let deadline = Instant::now() + WITHIN;
        loop {
            let leads = self.replicas().await.into_iter().find(|one| one.leader);
            let is_at = |at: &SocketAddr| {
                leads
                    .as_ref()
                    .is_some_and(|it| it.address == at.to_string())
            };
            if let Some(nth) = self.alive().find(|nth| is_at(&self.ports[*nth].0)) {
                return nth;
            }
            assert!(Instant::now() < deadline, "nobody leads");
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// Its group, by its own word.
    pub(crate) async fn cluster_id(&self, nth: usize) -> String {
        let mut client = CoordinatorAdminClient::new(channel(self.ports[nth].0));
        let said = client.inspect_replica(InspectReplicaRequest {}).await;
        said.unwrap().into_inner().cluster_id
    }

    pub(crate) fn client(&self, nth: usize) -> CoordinatorClient<Channel> {
        client(self.ports[nth].0)
    }

    /// A shard that reports once, which puts it on record.
    pub(crate) async fn shard_reports(&self, shard: &str) {
        let report = ShardReport {
            shard_id: shard.to_owned(),
            cycle: 1,
            shard_epoch: 1,
            summary: Some(ShardSummary::default()),
            directory: 7,
            process: "0123456789abcdef".to_owned(),
            ..ShardReport::default()
        };
        let report = &report;
        self.somebody(async |mut client| client.report_shard(report.clone()).await)
            .await;
    }

    /// Gives a rack to a shard, by whoever leads.
    pub(crate) async fn assign(&self, rack: &str, shard: &str) {
        let request = &AssignDomainRequest {
            topology_key: "rack".to_owned(),
            topology_value: rack.to_owned(),
            shard_id: shard.to_owned(),
        };
        self.somebody(async |mut client| client.assign_domain(request.clone()).await)
            .await;
    }

    /// The racks on record, by whoever leads.
    pub(crate) async fn racks(&self) -> Vec<String> {
        let ask = async |mut client: CoordinatorClient<Channel>| {
            let request = ListDomainAssignmentsRequest {};
            client.list_domain_assignments(request).await
        };
        let listed = self.somebody(ask).await.into_inner().assignments;
        listed.into_iter().map(|one| one.topology_value).collect()
    }

    /// Asks one after the other until one answers, as shards and tools do.
    async fn somebody<T>(
        &self,
        ask: impl AsyncFn(CoordinatorClient<Channel>) -> Result<T, Status>,
    ) -> T {
        let deadline = Instant::now() + WITHIN;
        let mut refusals: Vec<String> = Vec::new();
        loop {
            for nth in self.alive() {
                match ask(self.client(nth)).await {
                    Ok(answer) => return answer,
                    Err(status) => refusals.push(format!("coordinator-{nth}: {status}")),
                }
            }
            let last = refusals.last();
            assert!(Instant::now() < deadline, "nobody answered: {last:?}");
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }
}
