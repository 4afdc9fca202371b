//! Booting: a provider as a process of ours, on a port of its own, killed when we are done with it.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::ListFilter;
use bigfleet_wire::v1alpha1::capacity_provider_client::CapacityProviderClient;
use tonic::transport::{Channel, Endpoint};

/// How long a provider may take until it answers a List.
const READY_WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
/// A full List of many machines is larger than the usual limit.
const MOST_BYTES: usize = 256 << 20;

/// A provider binary, and the arguments that come before the shared flags.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The executable to start.
    pub program: PathBuf,
    /// For example `provider fake`.
    pub args: Vec<OsString>,
}

/// A provider did not come up.
#[derive(Debug, thiserror::Error)]
pub enum BootFailed {
    /// The process did not start.
    #[error("{}: {source}", program.display())]
    Start {
        /// The program that was started.
        program: PathBuf,
        /// What it said, or what the operating system said.
        source: std::io::Error,
    },
    /// It ended before it answered.
    #[error("the provider ended before it answered: {0}")]
    Ended(String),
    /// It did not answer in time.
    #[error("the provider did not answer within {READY_WITHIN:?}: {0}")]
    Silent(String),
}

/// A provider process. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    addr: SocketAddr,
    channel: Channel,
}

impl Binary {
    /// Starts it with the boot contract and these flags, and waits until it lists.
    pub async fn boot(
        &self,
        seeds: usize,
        state: Option<&Path>,
        flags: &[&str],
    ) -> Result<Running, BootFailed> {
        let failed = |source| BootFailed::Start {
            program: self.program.clone(),
            source,
        };
        // Taken and let go: nobody else on this host is likely to take it before the child does.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr());
        let addr = port.map_err(failed)?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .arg(format!("--addr={addr}"))
            .arg("--provider=certify");
        command
            .arg("--use-fake-backend")
            .arg(format!("--seed-count={seeds}"));
        if let Some(state) = state {
            let mut flag = OsString::from("--state=");
            flag.push(state);
            command.arg(flag);
        }
        command
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        let endpoint = Endpoint::from_shared(format!("http://{addr}"));
        let endpoint = endpoint.map_err(|why| BootFailed::Silent(why.to_string()))?;
        let channel = endpoint
            .initial_stream_window_size(8 << 20)
            .initial_connection_window_size(16 << 20)
            .connect_lazy();
        let started = Instant::now();
        loop {
            let mut client = client(&channel);
            let answer = client
                .list(ListFilter {
                    max_results: 1,
                    ..ListFilter::default()
                })
                .await;
            let Err(status) = answer else {
                return Ok(Running {
                    child,
                    addr,
                    channel,
                });
            };
            if let Ok(Some(ended)) = child.try_wait() {
                return Err(BootFailed::Ended(ended.to_string()));
            }
            if READY_WITHIN < started.elapsed() {
                end(&mut child);
                return Err(BootFailed::Silent(status.to_string()));
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

fn client(channel: &Channel) -> CapacityProviderClient<Channel> {
    CapacityProviderClient::new(channel.clone()).max_decoding_message_size(MOST_BYTES)
}

fn end(child: &mut Child) {
    // It may have ended by itself, which is as good.
    drop(child.kill());
    drop(child.wait());
}

impl Running {
    /// The address of its gRPC server.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A client on the shared connection.
    pub fn client(&self) -> CapacityProviderClient<Channel> {
        client(&self.channel)
    }

    /// A client on a connection of its own.
    pub async fn another(&self) -> Result<CapacityProviderClient<Channel>, tonic::Status> {
        let unavailable =
            |why: tonic::transport::Error| tonic::Status::unavailable(why.to_string());
        let endpoint =
            Endpoint::from_shared(format!("http://{}", self.addr)).map_err(unavailable)?;
        Ok(client(&endpoint.connect().await.map_err(unavailable)?))
    }

    /// Ends it without a warning, as a power cut would.
    pub fn kill(&mut self) {
        end(&mut self.child);
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
