//! What stands beside the core and is not as it should be: records, disk, certificates, coordinator, clock.
//!
//! What the core does not know and nobody else tells: it is looked at when somebody asks, and every second for
//! events (`noticed`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bigfleet_model::{Time, counted, shown};
use bigfleet_shard_core::Value;
use bigfleet_wire::v1alpha1::ProblemSeverity;

use crate::audit::AuditCounts;
use crate::clock::Clock;
use crate::publish::{Beside, Publisher};
use crate::read::shortfall_text::span;
use crate::rpcs::Rpcs;
use crate::settings::Settings;
use crate::trouble::Trouble;

const CERTIFICATE_SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);
const CERTIFICATE_NOW: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// Every machine is shown again within this, and what cannot be read of it too.
const DOUBTED_FOR: Duration = Duration::from_secs(15 * 60);
/// A clock that is off by more than this was set; less may be how clocks are kept in step.
const CLOCK_OFF: f64 = 60.0;
const DISK_LOW: u64 = 512 << 20;
const DISK_FULL: u64 = 64 << 20;

/// What stands beside the core.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(super) publisher: Publisher,
    audit: Arc<AuditCounts>,
    beside: Arc<Beside>,
    tls: Option<Arc<bigfleet_net::Tls>>,
    data_dir: PathBuf,
    coordinator: Option<String>,
    rpcs: Arc<Rpcs>,
    clock: Clock,
    trouble: Trouble,
    shard: String,
    /// Since when what is wrong has been seen so, by topic.
    since: Arc<Mutex<BTreeMap<&'static str, Time>>>,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Noted {
    /// What it is about, the same as long as it lasts: the kind of its event.
    pub(super) topic: &'static str,
    pub(super) severity: ProblemSeverity,
    pub(super) kind: &'static str,
    pub(super) what: String,
    pub(super) since: Option<Time>,
    pub(super) verb: String,
}

impl Noted {
    fn warning(topic: &'static str, kind: &'static str, what: String, verb: String) -> Self {
        Self {
            topic,
            severity: ProblemSeverity::Warning,
            kind,
            what,
            since: None,
            verb,
        }
    }

    fn critical(topic: &'static str, kind: &'static str, what: String, verb: String) -> Self {
        Self {
            severity: ProblemSeverity::Critical,
            ..Self::warning(topic, kind, what, verb)
        }
    }
}

impl Surroundings {
    pub(crate) fn new(metrics: &crate::publish::Metrics, settings: &Settings) -> Self {
        Self {
            publisher: metrics.publisher.clone(),
            audit: Arc::clone(&metrics.audit),
            beside: Arc::clone(&metrics.beside),
            tls: metrics.tls.clone(),
            data_dir: settings.data_dir.clone(),
            coordinator: settings.around.coordinator_addr.clone(),
            rpcs: Arc::clone(&metrics.rpcs),
            clock: metrics.clock,
            trouble: metrics.trouble.clone(),
            shard: settings.core.shard.clone(),
            since: Arc::default(),
        }
    }

    /// Everything that is not as it should be now.
    pub(super) fn noted(&self) -> Vec<Noted> {
        let looked_at = [
            self.records(),
            self.space(),
            self.audit_log(),
            self.certificate(),
            self.refused_certificate(),
            self.coordinator(),
            clock(self.clock.behind(self.trouble.host_clock())),
        ];
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = looked_at.into_iter().flatten().map(|noted| Noted {
            since: noted.since.or_else(|| since.get(noted.topic).copied()),
            ..noted
        });
        noted.collect()
    }

    /// What is wrong has been seen so since: for whoever asks later.
    pub(super) fn remember(&self, topics: &[&'static str], now: Time) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.retain(|topic, _| topics.contains(topic));
        for topic in topics {
            since.entry(topic).or_insert(now);
        }
    }

    /// What a provider says of machines and cannot be read counts as nothing, so a fleet may look smaller than it is.
    fn records(&self) -> Option<Noted> {
        let doubted = self.rpcs.doubted_within(DOUBTED_FOR)?;
        let what = format!(
            "the provider says what cannot be read, and counts for less: {}",
            shown(&doubted)
        );
        let verb = "grep 'provider record read as less' in the shard's log".to_owned();
        Some(Noted::warning("records-doubted", "provider", what, verb))
    }

    fn space(&self) -> Option<Noted> {
        let folder = self.data_dir.display();
        let there = rustix::fs::statvfs(&self.data_dir).ok()?;
        let free = there.f_bavail.saturating_mul(there.f_frsize);
        let left = free >> 20;
        let what =
            format!("{left} MiB are left on the disk of {folder}; once it is full the shard ends");
        let verb = format!("df -h {folder}");
        if free < DISK_FULL {
            Some(Noted::critical("disk-full", "disk", what, verb))
        } else if free < DISK_LOW {
            Some(Noted::warning("disk-low", "disk", what, verb))
        } else {
            None
        }
    }

    fn audit_log(&self) -> Option<Noted> {
        let lost = self.audit.lost.load(Ordering::Relaxed);
        let lines = counted(lost, "line", "lines");
        let what = format!("{lines} of the audit log could not be written");
        let verb = format!("df -h {}", self.data_dir.display());
        (0 < lost).then(|| Noted::warning("audit-lines-lost", "disk", what, verb))
    }

    fn certificate(&self) -> Option<Noted> {
        const KIND: &str = "certificate";
        let counts = self.tls.as_ref()?.counts();
        let verb = format!("bigfleet certs issue shard {}", self.shard);
        let ends = Duration::from_secs(counts.expires_unix_seconds.max(0).unsigned_abs());
        match ends.checked_sub(self.trouble.host_clock()) {
            None => {
                let what = "the shard's certificate has expired: nobody new can connect, and no provider be \
                            called anew";
                Some(Noted {
                    since: Some(Time::ZERO + ends),
                    ..Noted::critical("certificate-expired", KIND, what.to_owned(), verb)
                })
            }
            Some(left) if left < CERTIFICATE_SOON => {
                let what = format!("the shard's certificate ends in {}", days_and_hours(left));
                let noted = Noted::warning("certificate-ends", KIND, what, verb);
                Some(if left < CERTIFICATE_NOW {
                    Noted {
                        severity: ProblemSeverity::Critical,
                        ..noted
                    }
                } else {
                    noted
                })
            }
            Some(_) => None,
        }
    }

    fn refused_certificate(&self) -> Option<Noted> {
        let is_refused = self.tls.as_ref()?.counts().is_refused;
        let what = "changed certificate files cannot be used; the ones before stay in force";
        let verb = format!("bigfleet certs issue shard {}", self.shard);
        is_refused
            .then(|| Noted::warning("certificate-refused", "certificate", what.to_owned(), verb))
    }

    /// It is not needed for anything, but somebody meant it to be there.
    fn coordinator(&self) -> Option<Noted> {
        let address = self.coordinator.as_ref()?;
        let numbers = self.beside.numbers();
        let gauge = |name: &str| {
            let number = numbers.iter().find(|number| number.name == name);
            number.and_then(|number| match number.value {
                Value::Gauge(value) => Some(value),
                Value::Counter(_) | Value::Histogram(_) => None,
            })
        };
        if gauge("bigfleet_shard_coordinator_connected") != Some(0.0) {
            return None;
        }
        let what = format!(
            "the coordinator at {address} is not reached; the shard decides alone meanwhile"
        );
        let last = gauge("bigfleet_shard_coordinator_last_success_timestamp_seconds");
        let last = last.filter(|last| 0.0 < *last);
        let verb = "grep 'coordinator not reached' in the shard's log".to_owned();
        Some(Noted {
            since: last.map(|seconds| Time::ZERO + Duration::from_secs_f64(seconds)),
            ..Noted::warning("coordinator-lost", "coordinator", what, verb)
        })
    }
}

/// A shard keeps its own time from its start on, so that a clock that is set ends no drain and no pause.
fn clock(behind: f64) -> Option<Noted> {
    if behind.abs() < CLOCK_OFF {
        return None;
    }
    let way = if behind < 0.0 { "back" } else { "forward" };
    let off = Duration::from_secs_f64(behind.abs());
    let off = span(Time::ZERO, Time::ZERO + off);
    let what = format!(
        "the host's clock was set {off} {way} since this process began: the moments it tells and logs are off by \
         that, spans are not; restart it when that suits"
    );
    Some(Noted::warning(
        "clock-set",
        "clock",
        what,
        "date -u".to_owned(),
    ))
}

fn days_and_hours(left: Duration) -> String {
    let hours = left.as_secs() / 3600;
    let days = counted(hours / 24, "day", "days");
    format!("{days} {}", counted(hours % 24, "hour", "hours"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_kept_in_step_or_was_set() {
        assert_eq!(clock(59.0), None);
        let what = |behind| clock(behind).unwrap().what;
        assert!(what(7200.0).starts_with("the host's clock was set 2 h forward since"));
        assert!(what(-7200.0).starts_with("the host's clock was set 2 h back since"));
    }

    #[test]
    fn what_is_left_of_a_certificate_is_said_as_people_say_it() {
        let hours = |hours: u64| days_and_hours(Duration::from_secs(hours * 3600 + 5));
        assert_eq!(hours(25), "1 day 1 hour");
        assert_eq!(hours(50), "2 days 2 hours");
        assert_eq!(hours(0), "0 days 0 hours");
    }
}
