//! The loop: a report at once, and then one per interval; after a failure, less and less often.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bigfleet_model::shown;
use bigfleet_net::{Dial, DialRefused, Tls};
use bigfleet_shard::{Hub, Stopping, Task};
use bigfleet_shard_core::{Disposition, Event, InstructionAck};
use bigfleet_wire::v1alpha1::ReportAck;
use bigfleet_wire::v1alpha1::coordinator_client::CoordinatorClient;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::Channel;

use crate::counts::{Counts, Ended};
use crate::messages::{self, About};

/// A report that takes longer has not arrived (wire 8.3).
const MOST_PER_REPORT: Duration = Duration::from_secs(10);
/// The longest pause between two tries, unless the interval itself is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Different instructions whose refusal is said; beyond that they are only counted.
const MOST_SAID: usize = 256;

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
    let counts = Arc::new(Counts::default());
    let read = Arc::clone(&counts);
    hub.publish(move || read.numbers());
    let reporter = Reporter {
        hub,
        counts,
        said: BTreeSet::new(),
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
    counts: Arc<Counts>,
    /// The instructions of which it was said that they are not done.
    said: BTreeSet<String>,
    /// Reports made by this process, whether they arrived or not.
    reports: u64,
    /// The coordinator asked for the domains by name.
    send_domains: bool,
}

impl Reporter {
    async fn run(mut self, interval: Duration) {
        let (mut failures, mut why) = (0, None);
        loop {
            let hub = self.hub.clone();
            let reported = match hub.survive(Task::Link, self.report()).await {
                Ok(Err(Stopping)) => return,
                Ok(Ok(reported)) => reported,
                // It did not arrive, and the shard never needed it to: the next comes in time.
                Err(panicked) => {
                    let status = Status::internal(panicked.to_string());
                    Err((Ended::Panicked, status))
                }
            };
            let ended = reported
                .as_ref()
                .map_or_else(|(ended, _)| *ended, |()| Ended::Acknowledged);
            self.counts.reported(ended, unix_now().as_secs_f64());
            match reported {
                Ok(()) => {
                    if 0 < failures {
                        tracing::info!(failures, "coordinator reached again");
                    }
                    (failures, why) = (0, None);
                }
                Err((ended, status)) => {
                    failures += 1;
                    // Once per failure that changes something, not once per try. In how many ways nobody
                    // can be reached is no news; why somebody refuses is.
                    let refused = (ended == Ended::Refused).then(|| status.code());
                    let before = why.replace((ended, refused));
                    if before != why {
                        let (code, reason) = (status.code(), shown(status.message()));
                        tracing::warn!(
                            ?code,
                            reason,
                            "coordinator not reached: the shard goes on alone"
                        );
                    }
                }
            }
            tokio::time::sleep(pause(interval, failures)).await;
        }
    }

    /// One report and what follows from its answer; how it failed, or that the shard is gone.
    async fn report(&mut self) -> Result<Result<(), (Ended, Status)>, Stopping> {
        let report = self.hub.ask(|core| core.report()).await?;
        let acks = report.acks.clone();
        self.reports += 1;
        let message = messages::report(
            report,
            &self.about,
            self.reports,
            i64::try_from(unix_now().as_nanos()).unwrap_or(i64::MAX),
            self.send_domains,
        );
        let call = self.client.report_shard(message);
        let answer = match tokio::time::timeout(self.within, call).await {
            Ok(Ok(answer)) => answer.into_inner(),
            Ok(Err(status)) => return Ok(Err((Ended::by_code(status.code()), status))),
            Err(_) => {
                let status = Status::deadline_exceeded("no answer in time");
                return Ok(Err((Ended::Unreachable, status)));
            }
        };
        if !answer.acknowledged {
            let status = Status::unknown("the report was not acknowledged");
            return Ok(Err((Ended::NotAcknowledged, status)));
        }
        self.delivered(&acks);
        let acks = acks.len();
        self.hub.submit(Event::Reported { acks }, |_| ()).await?;
        self.heard(answer).await?;
        Ok(Ok(()))
    }

    /// These answers to instructions have arrived. One that is not done is said, once: it is given again
    /// with every report until somebody up there thinks better of it.
    fn delivered(&mut self, acks: &[InstructionAck]) {
        self.counts.answered(acks);
        for ack in acks {
            let (undone, instruction) = (ack.disposition != Disposition::Accepted, shown(&ack.id));
            if undone && self.said.len() < MOST_SAID && self.said.insert(instruction.clone()) {
                let reason = shown(&ack.reason);
                let disposition = ack.disposition;
                tracing::warn!(
                    instruction,
                    ?disposition,
                    reason,
                    "coordinator instruction refused"
                );
            }
        }
    }

    async fn heard(&mut self, answer: ReportAck) -> Result<(), Stopping> {
        self.send_domains = answer.send_domains;
        // A term below zero is none.
        let term = u64::try_from(answer.coordinator_term).unwrap_or_default();
        let instructions = answer.instructions.into_iter().map(messages::instruction);
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

fn unix_now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
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
