//! Options: what a provider decides about its kit.

use std::time::Duration;

use crate::machine::{FailureClass, Machine};

/// The longest each transition may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Speculative to Idle.
    pub create: Duration,
    /// Idle to Configured, readiness included.
    pub configure: Duration,
    /// Configured to Idle, beyond the grace the caller grants.
    pub drain: Duration,
    /// Idle to Speculative.
    pub delete: Duration,
}

impl Timeouts {
    /// The same for every transition.
    pub fn all(timeout: Duration) -> Self {
        Self {
            create: timeout,
            configure: timeout,
            drain: timeout,
            delete: timeout,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self {
            create: minutes(5),
            configure: minutes(5),
            drain: minutes(10),
            delete: minutes(5),
        }
    }
}

/// What a provider decides about its kit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long each transition may take.
    pub timeouts: Timeouts,
    /// Whether an instance without a zone is refused.
    pub require_zone: bool,
    /// Whether Delete is supported at all. Bare metal is never deleted.
    pub deletes: bool,
    /// What operation ids start with.
    pub prefix: String,
    /// Which tokens the fence accepts.
    pub fencing: Fencing,
    /// When a substrate that asked to come back later is tried again.
    pub retry: Retry,
    /// How long a Failed machine stays as it is before the kit cleans it up; `None` is for ever,
    /// which is what the contract's other consumers expect.
    pub clean_up_after: Option<Duration>,
    /// How long a slot stays Failed whose Create found nothing in stock; then it is offered again.
    pub restock_after: Duration,
    /// Whether Create, Drain and Delete that a restart interrupted are taken up again, with the same
    /// operation id. Only for a backend to which asking twice is asking once.
    pub resumes: bool,
    /// Whether a machine whose Configure a restart interrupted is shown as Idle, to be configured again,
    /// rather than as Failed. Only for a backend to which a second Configure undoes the first.
    pub reconfigures: bool,
}

/// Which tokens the fence accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fencing {
    /// Each pair of shard and machine for itself, as the contract says; no token passes too.
    #[default]
    PerMachine,
    /// Besides, a token is required, and no epoch below the highest its shard has shown anywhere: an
    /// older life of a shard cannot touch even what its successor has not touched yet.
    Strict,
}

/// How often a passing refusal is tried again inside a transition: twice as long each time, until the
/// transition runs out of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Before the second attempt.
    pub first: Duration,
    /// Between any two.
    pub most: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            most: Duration::from_secs(30),
        }
    }
}

impl Retry {
    /// How long to wait after this many attempts. Between half and all of the doubled pause, so that
    /// machines turned away together do not come back together; the same operation always waits the
    /// same.
    pub fn pause(&self, operation: &str, attempts: u32) -> Duration {
        let doubled = 1_u32 << attempts.saturating_sub(1).min(16);
        let pause = self.first.saturating_mul(doubled).min(self.most);
        let mut hash = crc32fast::Hasher::new();
        hash.update(operation.as_bytes());
        hash.update(&attempts.to_be_bytes());
        let share = f64::from(hash.finalize()) / f64::from(u32::MAX);
        pause.mul_f64(0.5 + 0.5 * share)
    }
}

impl Options {
    /// How long this Failed machine stays as it is; `None` is for ever.
    pub fn cool_down(&self, machine: &Machine) -> Option<Duration> {
        match machine.failure {
            FailureClass::NoStock => {
                let sooner = self.clean_up_after.unwrap_or(self.restock_after);
                Some(sooner.min(self.restock_after))
            }
            FailureClass::Unspecified
            | FailureClass::Retryable
            | FailureClass::Permanent
            | FailureClass::Passing => self.clean_up_after,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        let timeouts = Timeouts::default();
        Self {
            timeouts,
            require_zone: true,
            deletes: true,
            prefix: "op".to_owned(),
            fencing: Fencing::default(),
            retry: Retry::default(),
            clean_up_after: None,
            restock_after: Duration::from_secs(60),
            resumes: false,
            reconfigures: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_most_and_differ_between_operations() {
        let retry = Retry::default();
        let seconds = Duration::from_secs_f64;
        for (attempts, pause) in [(1, 1.0), (2, 2.0), (5, 16.0), (6, 30.0), (90, 30.0)] {
            let waits = retry.pause("op-1", attempts);
            assert!(
                (seconds(pause / 2.0)..=seconds(pause)).contains(&waits),
                "{attempts}: {waits:?}"
            );
            assert_eq!(waits, retry.pause("op-1", attempts));
        }
        assert_ne!(retry.pause("op-1", 1), retry.pause("op-2", 1));
    }
}
