//! Group: replicas of a coordinator as processes, and whoever of them leads.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use bigfleet_net::{Dial, MAX_MESSAGE_BYTES};
use bigfleet_wire::v1alpha1 as wire;
use tonic::transport::Channel;
use wire::coordinator_admin_client::CoordinatorAdminClient;
use wire::coordinator_client::CoordinatorClient;

use crate::processes::process::Process;
use crate::processes::report::NotMeasured;
use crate::processes::scene::Folder;

/// A group that has no leader for longer will not have one.
const LED_WITHIN: Duration = Duration::from_secs(60);
/// Between two tries while nobody leads: much less than what is measured.
const LOOK: Duration = Duration::from_millis(5);
/// One try.
const TRIED_FOR: Duration = Duration::from_millis(500);

pub(super) struct Group {
    program: PathBuf,
    folder: PathBuf,
    ports: Vec<(SocketAddr, SocketAddr)>,
    channels: Vec<Channel>,
    running: Vec<Option<Process>>,
}

pub(super) fn refused(status: tonic::Status) -> NotMeasured {
    NotMeasured::Wrong(format!("the coordinator refused: {status}"))
}

/// An address that nobody else has: replicas must know their addresses before they listen.
fn own() -> SocketAddr {
    static PORT: AtomicU16 = AtomicU16::new(9_000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, 64 + (high & 63), middle, low);
    SocketAddr::from((host, PORT.fetch_add(1, Ordering::Relaxed)))
}

impl Group {
    pub(super) async fn start(
        program: &Path,
        folder: &Folder,
        name: &str,
        replicas: usize,
    ) -> Result<Self, NotMeasured> {
        let ports: Vec<(SocketAddr, SocketAddr)> = (0..replicas).map(|_| (own(), own())).collect();
        let dial = |(at, _): &(SocketAddr, SocketAddr)| {
            let channel = Dial::unknown(None).channel(&at.to_string());
            channel.map_err(|why| NotMeasured::Wrong(why.to_string()))
        };
        let channels: Result<Vec<Channel>, NotMeasured> = ports.iter().map(dial).collect();
        let mut group = Self {
            program: program.to_owned(),
            folder: folder.data().join(name),
            channels: channels?,
            ports,
            running: (0..replicas).map(|_| None).collect(),
        };
        for nth in 0..replicas {
            group.restart(nth).await?;
        }
        group.whole().await?;
        Ok(group)
    }

    pub(super) async fn restart(&mut self, nth: usize) -> Result<(), NotMeasured> {
        let (grpc, raft) = self.ports[nth];
        let all: Vec<String> = self.ports.iter().map(|(at, _)| at.to_string()).collect();
        let flags = vec![
            format!("--id=coordinator-{nth}"),
            format!("--listen={grpc}"),
            format!("--raft-bind={raft}"),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            format!("--data-dir={}", self.folder.join(nth.to_string()).display()),
            format!("--replicas={}", all.len()),
            format!("--join-addr={}", all.join(",")),
        ];
        let started = Process::start(&self.program, "coordinator", &["coordinator"], flags).await?;
        self.running[nth] = Some(started);
        Ok(())
    }

    pub(super) fn kill(&mut self, nth: usize) {
        self.running[nth] = None;
    }

    pub(super) fn pid(&self, nth: usize) -> Result<u32, NotMeasured> {
        let process = self.running[nth].as_ref();
        let gone = || NotMeasured::Wrong("a replica does not run".to_owned());
        process.map(Process::pid).ok_or_else(gone)
    }

    pub(super) fn client(&self, nth: usize) -> Result<CoordinatorClient<Channel>, NotMeasured> {
        let channel = self.channels[nth].clone();
        Ok(CoordinatorClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES))
    }

    /// Asks one replica after the other until one answers.
    async fn led<T>(
        &self,
        ask: impl AsyncFn(Channel) -> Result<tonic::Response<T>, tonic::Status>,
    ) -> Result<T, NotMeasured> {
        let until = Instant::now() + LED_WITHIN;
        loop {
            let mut last = None;
            for (channel, running) in self.channels.iter().zip(&self.running) {
                if running.is_none() {
                    continue;
                }
                match tokio::time::timeout(TRIED_FOR, ask(channel.clone())).await {
                    Ok(Ok(answer)) => return Ok(answer.into_inner()),
                    Ok(Err(status)) => last = Some(status),
                    Err(_) => {}
                }
            }
            if until <= Instant::now() {
                let last = last.map(|status| status.to_string()).unwrap_or_default();
                return Err(NotMeasured::Wrong(format!("nobody leads: {last}")));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn replicas(&self) -> Result<Vec<wire::Replica>, NotMeasured> {
        let ask = async |channel| {
            let mut admin = CoordinatorAdminClient::new(channel);
            admin.list_replicas(wire::ListReplicasRequest {}).await
        };
        Ok(self.led(ask).await?.replicas)
    }

    /// Waits until every replica votes.
    pub(super) async fn whole(&self) -> Result<(), NotMeasured> {
        let until = Instant::now() + LED_WITHIN;
        loop {
            let voters = self.replicas().await?.into_iter().filter(|one| one.voter);
            if voters.count() == self.ports.len() {
                return Ok(());
            }
            if until <= Instant::now() {
                let problem = "the group does not become whole";
                return Err(NotMeasured::Wrong(problem.to_owned()));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(super) async fn leader(&self) -> Result<usize, NotMeasured> {
        let replicas = self.replicas().await?;
        let leads = replicas.into_iter().find(|one| one.leader);
        let at = leads.map(|one| one.address);
        let mut ports = self.ports.iter();
        let found = ports.position(|(grpc, _)| Some(grpc.to_string()) == at);
        found.ok_or_else(|| NotMeasured::Wrong("nobody leads".to_owned()))
    }

    pub(super) async fn report(
        &self,
        report: impl Fn() -> wire::ShardReport,
    ) -> Result<wire::ReportAck, NotMeasured> {
        self.led(async |channel| {
            let mut client =
                CoordinatorClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
            client.report_shard(report()).await
        })
        .await
    }

    pub(super) async fn assign(&self, rack: &str, shard: &str) -> Result<(), NotMeasured> {
        let request = wire::AssignDomainRequest {
            topology_key: "rack".to_owned(),
            topology_value: rack.to_owned(),
            shard_id: shard.to_owned(),
        };
        let ask = async |channel| {
            let mut client = CoordinatorClient::new(channel);
            client.assign_domain(request.clone()).await
        };
        self.led(ask).await.map(drop)
    }

    pub(super) async fn change(&self, changes: Vec<wire::DomainChange>) -> Result<(), NotMeasured> {
        let mut admin = CoordinatorAdminClient::new(self.channels[0].clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let request = wire::ChangeDomainsRequest {
            changes,
            dry_run: false,
        };
        admin.change_domains(request).await.map_err(refused)?;
        Ok(())
    }

    /// A snapshot, received whole; how many bytes it has.
    pub(super) async fn snapshot(&self) -> Result<usize, NotMeasured> {
        let mut client = self.client(0)?;
        let asked = client.snapshot_save(wire::SnapshotSaveRequest {}).await;
        let mut frames = asked.map_err(refused)?.into_inner();
        let mut bytes = 0;
        while let Some(frame) = frames.message().await.map_err(refused)? {
            use wire::snapshot_save_chunk::Payload;
            if let Some(Payload::Data(data)) = frame.payload {
                bytes += data.len();
            }
        }
        Ok(bytes)
    }

    /// How many domains are on record.
    pub(super) async fn domains(&self) -> Result<usize, NotMeasured> {
        let ask = async |channel| {
            let mut client =
                CoordinatorClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
            let request = wire::ListDomainAssignmentsRequest {};
            client.list_domain_assignments(request).await
        };
        Ok(self.led(ask).await?.assignments.len())
    }
}
