//! The loop: a report at once, and then one per interval; after a failure, less and less often.
//!
//! ```text
//! report ─▶ whoever answered last ─▶ not leader, not there ─▶ the next address, with a new report ─▶ … ─▶ pause
//! ```
//!
//! Every attempt is a report of its own: made anew from the core and numbered anew, so that no replica can take a later one for a
//! repetition, and no answer to an earlier one is heard (wire 6.16.8).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bigfleet_model::shown;
use bigfleet_net::{DialRefused, Tls};
use bigfleet_seeded::Prng;
use bigfleet_shard::{Hub, Stopping, Task};
use bigfleet_shard_core::{Disposition, Event, InstructionAck};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::task::JoinHandle;
use tonic::Status;

use crate::counts::{Counts, Ended};
use crate::leader::Leader;
use crate::messages::{self, About};

/// A report that takes longer has not arrived (wire 8.3).
const MOST_PER_REPORT: Duration = Duration::from_secs(10);
/// One replica may take this much of it.
const MOST_PER_ATTEMPT: Duration = Duration::from_secs(5);
/// The longest pause between two tries, unless the interval itself is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Different instructions whose refusal is said; beyond that they are only counted.
const MOST_SAID: usize = 256;
/// How soon a shard reports again that does not know yet what is its own.
const WHILE_UNSAID: Duration = Duration::from_secs(1);

/// Where to report, and as what.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The coordinator's replicas: host:port, several with commas.
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
    let leader = Leader::new(&settings.coordinator_addr, settings.tls.clone())?;
    let counts = Arc::new(Counts::default());
    let read = Arc::clone(&counts);
    hub.publish(move || read.numbers());
    let reporter = Reporter {
        hub,
        counts,
        said: BTreeSet::new(),
        leader,
        dice: Prng::new(drawn()),
        about: About {
            process: drawn(),
            address: settings.advertise_addr,
            provider: settings.provider_addr,
        },
        within: settings.interval.min(MOST_PER_REPORT),
        reports: 0,
        send_domains: false,
        soon: None,
    };
    Ok(Link(tokio::spawn(reporter.run(settings.interval))))
}

struct Reporter {
    hub: Hub,
    leader: Leader,
    /// Spreads the reports of shards that were started together.
    dice: Prng,
    about: About,
    within: Duration,
    counts: Arc<Counts>,
    /// The instructions of which it was said that they are not done.
    said: BTreeSet<String>,
    /// Reports made by this process, whether they arrived or not.
    reports: u64,
    /// The coordinator asked for domains and exceptions by name.
    send_domains: bool,
    /// When the next report is wanted, if that is sooner than usual.
    soon: Option<Duration>,
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
                    // Replicas that answer and have no leader are about to have one.
                    if ended != Ended::NotLeader {
                        failures += 1;
                    }
                    // Once per failure that changes something, not once per try. In how many ways nobody
                    // can be reached is no news; why somebody refuses is.
                    let refused = (ended == Ended::Refused).then(|| status.code());
                    let is_superseded = ended == Ended::Superseded;
                    let before = why.replace((ended, refused));
                    if before != why && is_superseded {
                        let reason = shown(status.message());
                        tracing::error!(
                            reason,
                            "another process is on record as this shard: find it, and stop one of the two"
                        );
                    } else if before != why {
                        let (code, reason) = (status.code(), shown(status.message()));
                        tracing::warn!(
                            ?code,
                            reason,
                            "coordinator not reached: the shard goes on alone"
                        );
                    }
                }
            }
            let mut pause = pause(interval, failures);
            if let Some(soon) = self.soon.take() {
                pause = pause.min(soon);
            }
            let pause = spread(pause, &mut self.dice);
            tokio::time::sleep(pause).await;
        }
    }

    /// One report and what follows from its answer; how it failed, or that the shard is gone.
    async fn report(&mut self) -> Result<Result<(), (Ended, Status)>, Stopping> {
        let until = tokio::time::Instant::now() + self.within;
        let mut round = self.leader.round().await;
        let mut failed = None;
        while let Some(address) = round.next() {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() && failed.is_some() {
                break;
            }
            match self.attempt(&address, left.min(MOST_PER_ATTEMPT)).await? {
                Ok(()) => {
                    self.leader.answered(address);
                    return Ok(Ok(()));
                }
                // Another replica may do better.
                Err((Ended::NotLeader | Ended::Unreachable, status)) => {
                    round.refused(&status);
                    failed = Some(worse(failed, status));
                }
                Err((ended, status)) => {
                    if ended == Ended::Superseded {
                        // On disk before anybody hears of it: no later process of this directory acts.
                        let told = self.hub.submit_durably(Event::Superseded, |_| ());
                        told.await?;
                    }
                    return Ok(Err((ended, status)));
                }
            }
        }
        let status = failed.unwrap_or_else(|| Status::unavailable("no address to report to"));
        Ok(Err((Ended::by_code(status.code()), status)))
    }

    /// One attempt at one replica, with a report of its own.
    async fn attempt(
        &mut self,
        address: &str,
        within: Duration,
    ) -> Result<Result<(), (Ended, Status)>, Stopping> {
        let mut client = match self.leader.client(address) {
            Ok(client) => client,
            Err(refused) => {
                let status = Status::unavailable(refused.to_string());
                return Ok(Err((Ended::Unreachable, status)));
            }
        };
        let wanted = self.hub.submit_durably(Event::ReportWanted, |core| {
            (core.take_report(), core.awaits_scope())
        });
        let (Some(report), awaits_scope) = wanted.await? else {
            let status = Status::internal("what the report speaks of is not on disk");
            return Ok(Err((Ended::Unreachable, status)));
        };
        let acks = report.acks.clone();
        self.reports += 1;
        let message = messages::report(
            report,
            &self.about,
            self.reports,
            i64::try_from(unix_now().as_nanos()).unwrap_or(i64::MAX),
            self.send_domains,
        );
        let call = client.report_shard(message);
        let answer = match tokio::time::timeout(within, call).await {
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
        self.send_domains = answer.send_domains;
        let soon = u64::from(answer.next_report_ms);
        self.soon = (soon != 0).then(|| Duration::from_millis(soon));
        if awaits_scope {
            self.soon = Some(self.soon.unwrap_or(WHILE_UNSAID).min(WHILE_UNSAID));
        }
        let answered = Event::Answered(Box::new(messages::answer(answer)));
        self.hub.submit(answered, |_| ()).await?;
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
}

/// Of two replicas that did not take a report, the one whose words say more: one that is there and does not lead.
fn worse(before: Option<Status>, now: Status) -> Status {
    let is_there = |status: &Status| Ended::by_code(status.code()) == Ended::NotLeader;
    before.filter(is_there).unwrap_or(now)
}

/// A pause, a tenth shorter or longer: shards that lost their coordinator together do not all come back at once.
fn spread(pause: Duration, dice: &mut Prng) -> Duration {
    pause.mul_f64(0.9 + 0.2 * dice.unit())
}

/// Drawn once per process.
fn drawn() -> u64 {
    let mut bytes = [0; 8];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        return u64::try_from(unix_now().as_nanos()).unwrap_or_default();
    }
    u64::from_ne_bytes(bytes)
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

    #[test]
    fn pauses_are_spread_by_a_tenth() {
        let mut dice = Prng::new(1);
        let ten = Duration::from_secs(10);
        let spread: Vec<Duration> = (0..100).map(|_| spread(ten, &mut dice)).collect();
        let within = Duration::from_secs(9)..=Duration::from_secs(11);
        assert!(
            spread.iter().all(|pause| within.contains(pause)),
            "{spread:?}"
        );
        assert!(spread.iter().any(|pause| *pause < ten) && spread.iter().any(|pause| ten < *pause));
    }

    #[test]
    fn one_that_is_there_says_more_than_one_that_is_not() {
        let (away, there) = (Status::unavailable("a"), Status::failed_precondition("b"));
        assert_eq!(worse(Some(there.clone()), away.clone()).message(), "b");
        assert_eq!(worse(Some(away), there).message(), "b");
    }
}
