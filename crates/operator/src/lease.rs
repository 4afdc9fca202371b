//! Lease: which process of several acts (OP-11).
//!
//! ```text
//! look ─▶ ours or nobody's ─▶ write ─▶ held, looked at again in 2 s      somebody's ─▶ wait
//! ```
//!
//! What is written is checked by its version, so two processes cannot both take it. When this process held it last is
//! known to everything that must not act without it.

use crate::clock::Clock;
use crate::settings::Leading;
use bigfleet_k8s::{Call, Cluster, Refused, micros_text};
use bigfleet_model::Time;
use bigfleet_operator_core::{LEASE_DURATION, LeaseStep, LeaseWatch, RENEW_EVERY, RENEW_WITHIN};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A failed look is repeated soon: ten seconds without one, and another process leads.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// When the lease was renewed last; for whatever must not act without it.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    clock: Clock,
    renewed: Arc<AtomicI64>,
    why_not: Arc<Mutex<Option<String>>>,
}

impl Hold {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            renewed: Arc::new(AtomicI64::new(i64::MIN)),
            why_not: Arc::default(),
        }
    }

    /// Whether it was renewed within ten seconds, now.
    pub(crate) fn is_held(&self) -> bool {
        let renewed = Time::from_nanos(self.renewed.load(Ordering::Relaxed));
        self.clock.now().duration_since(renewed) < RENEW_WITHIN
    }

    fn set(&self, renewed: Option<Time>) {
        let nanos = renewed.map_or(i64::MIN, Time::nanos);
        self.renewed.store(nanos, Ordering::Relaxed);
    }

    fn trouble(&self, why: Option<String>) {
        *self.why_not.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Why the lease cannot be looked at, if it cannot.
    pub(crate) fn why_not(&self) -> Option<String> {
        self.why_not
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Lease {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    holder_identity: Option<String>,
    lease_transitions: Option<i64>,
    acquire_time: Option<String>,
}

/// The lease of a process.
pub(crate) struct Election {
    cluster: Cluster,
    leading: Leading,
    hold: Hold,
    watch: LeaseWatch,
    seen: Option<Lease>,
}

impl Election {
    pub(crate) fn new(cluster: Cluster, leading: Leading, hold: Hold) -> Self {
        Self {
            watch: LeaseWatch::new(&leading.holder),
            cluster,
            leading,
            hold,
            seen: None,
        }
    }

    fn folder(&self) -> String {
        format!(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            self.leading.namespace
        )
    }

    fn path(&self) -> String {
        format!("{}/{}", self.folder(), self.leading.lease)
    }

    /// Looks, and writes where that is called for; when it was renewed last if it is ours, and when to look again.
    pub(crate) async fn step(&mut self) -> (Option<Time>, Duration) {
        let now = || self.hold.clock.now();
        if !self.leading.elect {
            let at = now();
            self.hold.set(Some(at));
            return (Some(at), RENEW_EVERY);
        }
        let looked = self.look().await;
        let looked = match looked {
            Ok(()) => match self.watch.step(self.hold.clock.now()) {
                LeaseStep::Write => self.write(&self.leading.holder.clone()).await,
                LeaseStep::WaitUntil(_) => Ok(()),
            },
            refused => refused,
        };
        self.hold
            .trouble(looked.as_ref().err().map(|why| format!("the lease: {why}")));
        let now = self.hold.clock.now();
        let renewed = self.watch.renewed(now);
        self.hold.set(renewed);
        let next = match self.watch.step(now) {
            _ if looked.is_err() => AFTER_FAILURE,
            LeaseStep::Write => AFTER_FAILURE,
            LeaseStep::WaitUntil(at) => at.duration_since(now).min(RENEW_EVERY),
        };
        (renewed, next)
    }

    async fn look(&mut self) -> Result<(), Refused> {
        let looked = self.cluster.call::<Lease>(Call::get(&self.path())).await;
        let now = self.hold.clock.now();
        match looked {
            Ok(lease) => {
                let holder = lease.spec.holder_identity.clone().unwrap_or_default();
                let version = lease.metadata.resource_version.clone();
                self.watch.saw(now, Some((&version, &holder)));
                self.seen = Some(lease);
                Ok(())
            }
            Err(refused) if refused.code() == Some(404) => {
                self.watch.saw(now, None);
                self.seen = None;
                Ok(())
            }
            Err(refused) => Err(refused),
        }
    }

    async fn write(&mut self, holder: &str) -> Result<(), Refused> {
        let began = self.hold.clock.now();
        let call = match &self.seen {
            None => Call::create(&self.folder(), &self.body(holder, began)),
            Some(_) => Call::replace(&self.path(), &self.body(holder, began)),
        };
        match self.cluster.call::<Lease>(call).await {
            Ok(lease) => {
                if holder == self.leading.holder {
                    self.watch.wrote(began, &lease.metadata.resource_version);
                }
                self.seen = Some(lease);
                Ok(())
            }
            // Somebody was faster; the next look shows who.
            Err(refused) if refused.code() == Some(409) => Ok(()),
            Err(refused) => Err(refused),
        }
    }

    fn body(&self, holder: &str, now: Time) -> Value {
        let at = micros_text(now.nanos());
        let spec = self
            .seen
            .as_ref()
            .map(|seen| seen.spec.clone())
            .unwrap_or_default();
        let is_ours = spec.holder_identity.as_deref() == Some(holder);
        let transitions = spec.lease_transitions.unwrap_or(0) + i64::from(!is_ours);
        let acquired = spec.acquire_time.filter(|_| is_ours).unwrap_or(at.clone());
        let mut body = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": self.leading.lease, "namespace": self.leading.namespace },
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": LEASE_DURATION.as_secs(),
                "acquireTime": acquired,
                "renewTime": at,
                "leaseTransitions": transitions,
            },
        });
        if let Some(seen) = &self.seen {
            body["metadata"]["resourceVersion"] = json!(seen.metadata.resource_version);
        }
        body
    }

    /// An orderly stop clears the holder, so that the next process need not wait.
    pub(crate) async fn give_up(&mut self) {
        let is_ours = self.hold.is_held() && self.leading.elect;
        self.hold.set(None);
        if is_ours {
            // Without it the next process waits until the lease is old.
            drop(self.write("").await);
        }
    }
}
