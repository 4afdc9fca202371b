//! The loop: a report at once, and then one per interval; after a failure, less and less often.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bigfleet_net::{Dial, DialRefused, Tls};
use bigfleet_shard::{Hub, Stopping, Task};
use bigfleet_shard_core::Event;
use bigfleet_wire::v1alpha1::ReportAck;
use bigfleet_wire::v1alpha1::coordinator_client::CoordinatorClient;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::Channel;

use crate::words::{self, About};

/// A report that takes longer has not arrived (wire 8.3).
const MOST_PER_REPORT: Duration = Duration::from_secs(10);
/// The longest pause between two tries, unless the interval itself is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Where to report, and as what.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The coordinator: host:port.
    pub coordinator_addr: String,
    /// Where others reach this shard.
    pub advertise_addr: String,
    /// The provider it dials, for tools.
    pub provider_addr: String,
    /// How often to report.
    pub interval: Duration,
    /// Certificates; `None` for plaintext.
    pub tls: Option<Arc<Tls>>,
}

/// The link at work. It ends when it is dropped, or with the shard.
#[derive(Debug)]
pub struct Link(JoinHandle<()>);

impl Drop for Link {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts reporting. Nothing is waited for: a coordinator that is not there is tried again.
pub fn start(hub: Hub, settings: Settings) -> Result<Link, DialRefused> {
    let channel = Dial::unknown(settings.tls.clone()).channel(&settings.coordinator_addr)?;
    let reporter = Reporter {
        hub,
        client: CoordinatorClient::new(channel),
        about: About {
            address: settings.advertise_addr,
            provider: settings.provider_addr,
        },
        within: settings.interval.min(MOST_PER_REPORT),
        reports: 0,
        send_domains: false,
    };
    Ok(Link(tokio::spawn(reporter.run(settings.interval))))
}

struct Reporter {
    hub: Hub,
    client: CoordinatorClient<Channel>,
    about: About,
    within: Duration,
    /// Reports made by this process, whether they arrived or not.
    reports: u64,
    /// The coordinator asked for the domains by name.
    send_domains: bool,
}

impl Reporter {
    async fn run(mut self, interval: Duration) {
        let mut failures = 0;
        loop {
            let hub = self.hub.clone();
            let reported = hub.survive(Task::Link, self.report()).await;
            // One that panicked did not arrive, and the shard never needed it to: the next comes in time.
            let reported =
                reported.unwrap_or_else(|why| Ok(Err(Status::internal(why.to_string()))));
            match reported {
                Ok(Ok(())) => {
                    if 0 < failures {
                        tracing::info!(failures, "coordinator reached again");
                    }
                    failures = 0;
                }
                Ok(Err(status)) => {
                    failures += 1;
                    // Once per failure that changes something, not once per try.
                    if failures == 1 {
                        let reason = status.message();
                        tracing::warn!(code = ?status.code(), reason,
                            "coordinator not reached: the shard goes on alone");
                    }
                }
                Err(Stopping) => return,
            }
            tokio::time::sleep(pause(interval, failures)).await;
        }
    }

    /// One report and what follows from its answer; how it failed, or that the shard is gone.
    async fn report(&mut self) -> Result<Result<(), Status>, Stopping> {
        let report = self.hub.ask(|core| core.report()).await?;
        let acks = report.acks.len();
        self.reports += 1;
        let message = words::report(
            report,
            &self.about,
            self.reports,
            unix_nanos(),
            self.send_domains,
        );
        let call = self.client.report_shard(message);
        let answer = match tokio::time::timeout(self.within, call).await {
            Ok(Ok(answer)) => answer.into_inner(),
            Ok(Err(status)) => return Ok(Err(status)),
            Err(_) => return Ok(Err(Status::deadline_exceeded("no answer in time"))),
        };
        if !answer.acknowledged {
            return Ok(Err(Status::unknown("the report was not acknowledged")));
        }
        self.hub.submit(Event::Reported { acks }, |_| ()).await?;
        self.heard(answer).await?;
        Ok(Ok(()))
    }

    async fn heard(&mut self, answer: ReportAck) -> Result<(), Stopping> {
        self.send_domains = answer.send_domains;
        // A term below zero is none.
        let term = u64::try_from(answer.coordinator_term).unwrap_or_default();
        let instructions = answer.instructions.into_iter().map(words::instruction);
        let instructed = Event::Instructed {
            term,
            instructions: instructions.collect(),
        };
        self.hub.submit(instructed, |_| ()).await
    }
}

/// How long to wait after so many failures in a row.
fn pause(interval: Duration, failures: u32) -> Duration {
    let doubled = interval.saturating_mul(1 << failures.saturating_sub(1).min(10));
    doubled.min(LONGEST_PAUSE.max(interval))
}

fn unix_nanos() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_have_an_end() {
        let seconds = |failures| pause(Duration::from_secs(10), failures).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 99].map(seconds), [10, 10, 20, 40, 60, 60]);
        let slow = Duration::from_secs(90);
        assert_eq!(pause(slow, 5), slow, "never more often than asked");
    }
}
