//! Health: what the probes answer (OP-12), and which permission is missing.

use crate::lease::Hold;
use bigfleet_k8s::Refused;
use bigfleet_net::{Answer, ListenRefused, Probes, listen};
use bigfleet_operator_core::Alert;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A session may be away for so long.
const SESSION_WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Known {
    is_leading: bool,
    is_whole: bool,
    needs_session: bool,
    in_session: bool,
    last_session: Option<Instant>,
    /// What the API server forbids, by what was asked.
    forbidden: BTreeMap<String, String>,
    calls: BTreeMap<u16, u64>,
    alerts: BTreeMap<&'static str, u64>,
}

/// What is known of a process.
#[derive(Clone, Debug)]
pub struct Health {
    known: Arc<Mutex<Known>>,
    hold: Hold,
}

impl Health {
    pub(crate) fn new(hold: Hold) -> Self {
        let known = Known {
            needs_session: true,
            ..Known::default()
        };
        Self {
            known: Arc::new(Mutex::new(known)),
            hold,
        }
    }

    /// Of a process that talks to no shard.
    pub(crate) fn without_session(hold: Hold) -> Self {
        let health = Self::new(hold);
        health.known().needs_session = false;
        health
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn core(&self, is_leading: bool, is_whole: bool) {
        let mut known = self.known();
        (known.is_leading, known.is_whole) = (is_leading, is_whole);
    }

    pub(crate) fn session(&self, is_open: bool) {
        let mut known = self.known();
        if is_open || known.in_session {
            known.last_session = Some(Instant::now());
        }
        known.in_session = is_open;
    }

    pub(crate) fn is_in_session(&self) -> bool {
        self.known().in_session
    }

    /// How a call ended: well, or with this.
    pub(crate) fn answered(&self, what: &str, refused: Option<&Refused>) {
        let mut known = self.known();
        let code = refused.map_or(200, |refused| refused.code().unwrap_or_default());
        *known.calls.entry(code).or_default() += 1;
        match refused {
            Some(Refused::Said(said)) if said.code == 403 => {
                let said = said.message.clone();
                if known
                    .forbidden
                    .insert(what.to_owned(), said.clone())
                    .is_none()
                {
                    tracing::error!(%said, "a permission is missing");
                }
            }
            Some(_) => {}
            None => drop(known.forbidden.remove(what)),
        }
    }

    pub(crate) fn calls(&self) -> BTreeMap<u16, u64> {
        self.known().calls.clone()
    }

    pub(crate) fn alert(&self, alert: &Alert) {
        let name = match alert {
            Alert::RollUpDefect(_) => "roll-up-defect",
            Alert::RollUpRejected(_) => "roll-up-rejected",
            Alert::WithdrawalHeld => "withdrawal-held",
            Alert::StrangeShard => "strange-shard",
            Alert::SpareRecordUnreadable(_) => "spare-record-unreadable",
            Alert::TemplateRefused(_) => "template-refused",
            Alert::SessionRefused(_) => "session-refused",
            Alert::WriteRefused(_) => "write-refused",
            Alert::TokenRefused(_) => "token-refused",
        };
        *self.known().alerts.entry(name).or_default() += 1;
    }

    pub(crate) fn alerts(&self) -> BTreeMap<&'static str, u64> {
        self.known().alerts.clone()
    }

    /// Ready, or the one line that says why not.
    pub fn ready(&self) -> Result<(), String> {
        let known = self.known();
        if let Some((_, said)) = known.forbidden.iter().next() {
            return Err(format!("a permission is missing: {said}"));
        }
        if let Some(why) = self.hold.why_not() {
            return Err(why);
        }
        if !known.is_leading {
            return Ok(()); // a follower is as ready as it can be
        }
        if !known.is_whole {
            return Err("the cluster is still being listed".to_owned());
        }
        let is_recent = |at: Instant| at.elapsed() < SESSION_WITHIN;
        if known.needs_session && !known.in_session && !known.last_session.is_some_and(is_recent) {
            return Err("no session with the shard".to_owned());
        }
        Ok(())
    }
}

/// Answers probes on these addresses until the process ends; an address that cannot be had is an error.
pub async fn serve_probes(
    addrs: &[String],
    health: Health,
    metrics: impl Fn() -> Answer + Send + Sync + 'static,
) -> Result<Vec<SocketAddr>, ListenRefused> {
    let probes = Probes {
        ready: Arc::new(move || health.ready()),
        metrics: Arc::new(metrics),
    };
    let mut served = Vec::new();
    for addr in addrs
        .iter()
        .filter(|addr| !["", "0"].contains(&addr.as_str()))
    {
        let refused = |source| ListenRefused {
            addr: addr.clone(),
            source,
        };
        let (addr, _) = probes.clone().serve(listen(addr).await?).map_err(refused)?;
        served.push(addr);
    }
    Ok(served)
}
