//! The cloud: the fake provider at the demonstration's pace, behind gRPC on the loopback.
//!
//! ```text
//! shard ── Create, Configure, Drain, Delete, List ──▶ provider kit ─▶ Substrate: a minute to boot,
//! scenario ── interrupt ─────────────────────────────────────────────▶ shrunk by the pace
//! ```
//!
//! It is the cloud of `bigfleet provider fake`, store and fencing included; only its latencies are those of a
//! real one, divided by the speed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bigfleet_model::{CapacityType, State, Time};
use bigfleet_provider_fake::{FakeBackend, Knobs, Latency, Lies, PerTransition, Substrate};
use bigfleet_provider_kit::{
    Event, Instance, Machine, Options, Provider, Retry, Settings, StartRefused, Timeouts, start,
};

use crate::hardware::PROVIDER;
use crate::pace::Pace;

/// How long things take in a cloud.
const LATENCY: PerTransition<Latency> = PerTransition {
    create: Latency::LogNormal {
        median: Duration::from_secs(45),
        sigma: 0.3,
    },
    configure: Latency::LogNormal {
        median: Duration::from_secs(60),
        sigma: 0.3,
    },
    drain: Latency::Uniform(Duration::from_secs(20), Duration::from_secs(40)),
    delete: Latency::Uniform(Duration::from_secs(20), Duration::from_secs(40)),
};
/// How long a broken machine stays as evidence before its slot is offered again.
const CLEAN_UP_AFTER: Duration = Duration::from_secs(15 * 60);
/// However fast the demonstration runs, work on a busy host needs this long.
const LEAST_TIMEOUT: Duration = Duration::from_secs(10);
/// A factor so large that every spot machine is interrupted within a second.
const CERTAIN: f64 = 1e12;

/// The running cloud.
#[derive(Debug)]
pub(crate) struct Cloud {
    provider: Provider,
    backend: Arc<FakeBackend>,
}

impl Cloud {
    /// Starts it with these slots; a state file, if given, says which of them are in use.
    pub(crate) async fn start(
        slots: Vec<Instance>,
        seed: u64,
        pace: Pace,
        state: Option<PathBuf>,
    ) -> Result<Self, StartRefused> {
        let knobs = Knobs {
            seed,
            latency: LATENCY.map(|latency| latency.at_speed(pace.speed())),
            ..Knobs::default()
        };
        let lies = Arc::new(Lies::new(&knobs));
        let substrate = Substrate::new(PROVIDER, slots, knobs, false);
        let backend = Arc::new(FakeBackend::new(substrate, true, false));
        let provider = start(Arc::clone(&backend), lies, settings(pace, state)).await?;
        Ok(Self { provider, backend })
    }

    /// The address of its gRPC server.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.provider.addr()
    }

    /// Interrupts up to this many spot machines that serve; returns their ids.
    pub(crate) async fn interrupt(&self, most: usize) -> Vec<String> {
        let machines = self.provider.machines().await;
        let serves = |machine: &&Arc<Machine>| {
            let spot = machine.offer.capacity_type == CapacityType::Spot;
            spot && machine.state == State::Configured
        };
        let struck: Vec<&Arc<Machine>> = machines.iter().filter(serves).take(most).collect();
        let events = {
            let mut substrate = self.backend.substrate();
            let usual = substrate.knobs_mut().interruption_factor;
            substrate.knobs_mut().interruption_factor = CERTAIN;
            let events = substrate.tick(Time::ZERO, Duration::from_secs(1), struck.into_iter());
            substrate.knobs_mut().interruption_factor = usual;
            events
        };
        let mut broke = Vec::new();
        for event in events {
            if let Event::Broke { machine, .. } = &event {
                broke.push(machine.to_string());
            }
            self.provider.report(event).await;
        }
        broke
    }

    pub(crate) async fn stop(self) {
        self.provider.stop().await;
    }
}

fn settings(pace: Pace, state: Option<PathBuf>) -> Settings {
    let (usual, retry) = (Timeouts::default(), Retry::default());
    let within = |time: Duration| pace.shrink(time).max(LEAST_TIMEOUT);
    let began_at = SystemTime::now().duration_since(UNIX_EPOCH);
    Settings {
        state,
        options: Options {
            timeouts: Timeouts {
                create: within(usual.create),
                configure: within(usual.configure),
                drain: within(usual.drain),
                delete: within(usual.delete),
            },
            retry: Retry {
                first: pace.shrink(retry.first),
                most: pace.shrink(retry.most),
            },
            clean_up_after: Some(pace.shrink(CLEAN_UP_AFTER)),
            ..Options::default()
        },
        reconcile_interval: pace.shrink(Duration::from_secs(120)),
        price_refresh: pace.shrink(Duration::from_secs(30 * 60)),
        clock: Some(Arc::new(move || pace.fleet())),
        // A host whose clock is before 1970 still gets a demonstration.
        clock_began_at: began_at.unwrap_or_default(),
        ..Settings::new(PROVIDER, "127.0.0.1:0")
    }
}
