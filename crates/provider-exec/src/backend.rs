//! The backend: the kit's work, each piece as one run of a program.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_provider_kit::{
    Backend, Created, Failure, FailureClass, Instance, Job, Machine, Quote, Readiness, Timeouts,
};

use crate::answers::{Described, Done, HostNames, Priced, read, read_done};
use crate::config::{Config, ProgramKind};
use crate::hands::Hands;
use crate::question::Question;
use crate::slots::{SlotHost, Slots};

/// How often a node that is not Ready yet is asked about.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How much longer than one run a transition may take: waiting for its turn, and trying again.
const TURNS: Duration = Duration::from_secs(30 * 60);

/// Programs as a substrate.
#[derive(Debug)]
pub struct ExecBackend {
    slots: Slots,
    hands: Hands,
    /// The hosts there are, as far as this process knows: without a describe program it is the inventory.
    hosts: Mutex<BTreeMap<String, HostNames>>,
}

impl ExecBackend {
    /// A backend with these slots and the programs of this file.
    pub fn new(config: &Config, slots: Slots) -> Self {
        let exist = slots.iter().filter(|slot| slot.exists);
        let exist = exist.filter_map(|slot| Some((slot.id.clone(), slot.host.as_deref()?)));
        let hosts = exist.map(|(id, host)| (id, HostNames::of(host))).collect();
        Self {
            hands: Hands::new(config),
            hosts: Mutex::new(hosts),
            slots,
        }
    }

    /// How long each transition may take as a whole.
    pub fn timeouts(&self) -> Timeouts {
        let of = |kind| self.hands.deadline(kind).unwrap_or_default();
        let ready = of(ProgramKind::Ready);
        Timeouts {
            create: of(ProgramKind::Create) + TURNS,
            configure: of(ProgramKind::Configure) + ready + TURNS,
            drain: of(ProgramKind::Drain) + TURNS,
            delete: of(ProgramKind::Delete) + TURNS,
        }
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, HostNames>> {
        // No panic can leave it half changed: each change is one insertion or removal.
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the program of this kind for a machine.
    async fn ask(
        &self,
        kind: ProgramKind,
        job: &Job,
        grace: Option<Duration>,
        blob: Option<&[u8]>,
    ) -> Result<Done, Failure> {
        let machine = &*job.machine;
        let id = machine.id.as_str();
        // The record knows which host is meant, also after a restart; only this process knows its node's name.
        let names = machine.host.as_ref().map(|host| {
            let known = self.hosts().get(id).cloned();
            let same = known.filter(|names| names.reference() == host.reference);
            same.unwrap_or_else(|| HostNames::of(&host.reference))
        });
        let slot = self.slots.get(id);
        let question = Question {
            operation: &job.operation,
            machine: Some(machine),
            names: names.as_ref(),
            offering: slot.map_or("", |slot| &self.slots.offering(slot).name),
            called: slot.and_then(|slot| slot.host.as_deref()),
            grace,
            blob,
        };
        let cancelled = Some(job.cancelled.clone());
        let more = grace.unwrap_or_default();
        let printed = self.hands.run(kind, &question, more, cancelled).await?;
        read_done(kind, &printed)
    }

    /// Runs a program that is about everything.
    async fn ask_all(&self, kind: ProgramKind) -> Result<Vec<u8>, Failure> {
        let question = Question::default();
        let answer = self.hands.run(kind, &question, Duration::ZERO, None).await;
        answer.inspect_err(|why| tracing::warn!(%why, "a program did not answer"))
    }

    /// Asks which hosts exist and when they will be gone, and remembers the answer.
    async fn existing(&self) -> Result<BTreeMap<String, SlotHost>, Failure> {
        let described = |names: &HostNames, leaving| SlotHost {
            reference: names.reference().to_owned(),
            leaving,
        };
        if !self.hands.has(ProgramKind::Describe) {
            let hosts = self.hosts();
            let hosts = hosts.iter();
            return Ok(hosts
                .map(|(id, names)| (id.clone(), described(names, None)))
                .collect());
        }
        let printed = self.ask_all(ProgramKind::Describe).await?;
        let printed_hosts: Described = read(ProgramKind::Describe, &printed)
            .inspect_err(|why| tracing::warn!(%why, "a program did not answer"))?;
        let mut existing = BTreeMap::new();
        let mut strangers = 0;
        for host in printed_hosts.hosts()? {
            let machine = host.machine;
            if self.slots.get(&machine).is_none() {
                strangers += 1;
            } else if existing
                .insert(machine.clone(), (host.names, host.leaving))
                .is_some()
            {
                let text = format!("describe: machine {machine} is named twice");
                tracing::warn!(why = text, "a program did not answer");
                return Err(Failure::new(text));
            }
        }
        if strangers != 0 {
            tracing::warn!(strangers, "describe names machines that no offering has");
        }
        let hosts = existing.iter();
        let hosts = hosts.map(|(id, (names, at))| (id.clone(), described(names, *at)));
        let references = hosts.collect();
        // What was known of a node and is not said again stays known.
        let mut hosts = self.hosts();
        for (id, (names, _)) in existing {
            match hosts.get_mut(&id) {
                Some(known) if known.reference() == names.reference() => {
                    known.node_name = names.node_name.or(known.node_name.take());
                }
                _ => drop(hosts.insert(id, names)),
            }
        }
        drop(hosts);
        Ok(references)
    }
}

impl Backend for ExecBackend {
    async fn describe(&self) -> Result<Vec<Instance>, Failure> {
        Ok(self.slots.instances(&self.existing().await?))
    }

    async fn create(&self, job: Job) -> Result<Created, Failure> {
        let done = self.ask(ProgramKind::Create, &job, None, None).await?;
        let (names, allocatable) = done.names()?;
        let host = self.slots.host(names.reference());
        self.hosts()
            .insert(job.machine.id.as_str().to_owned(), names);
        Ok(Created {
            host,
            resources: None,
            allocatable,
        })
    }

    async fn configure(&self, job: Job, blob: Arc<[u8]>) -> Result<(), Failure> {
        let done = self
            .ask(ProgramKind::Configure, &job, None, Some(&blob))
            .await?;
        if let Some(name) = done.node_name()
            && let Some(names) = self.hosts().get_mut(job.machine.id.as_str())
        {
            names.node_name = Some(name);
        }
        Ok(())
    }

    async fn confirm_node_ready(&self, job: Job) -> Result<(), Failure> {
        let deadline = self.hands.deadline(ProgramKind::Ready).unwrap_or_default();
        let asking = async {
            loop {
                match self.ask(ProgramKind::Ready, &job, None, None).await {
                    // Left to the kit it would configure the machine once more.
                    Err(why) if why.class == FailureClass::Passing => {
                        tokio::time::sleep(ASK_AGAIN).await;
                    }
                    other => return other.map(drop),
                }
            }
        };
        let mut cancelled = job.cancelled.clone();
        tokio::select! {
            answer = tokio::time::timeout(deadline, asking) => answer.unwrap_or_else(|_| {
                Err(Failure::retryable(format!("ready: the node was not Ready within {deadline:?}")))
            }),
            () = cancelled.wait() => Err(Failure::retryable("ready: given up")),
        }
    }

    async fn drain(&self, job: Job, grace: Duration) -> Result<(), Failure> {
        self.ask(ProgramKind::Drain, &job, Some(grace), None)
            .await
            .map(drop)
    }

    async fn delete(&self, job: Job) -> Result<(), Failure> {
        self.ask(ProgramKind::Delete, &job, None, None).await?;
        self.hosts().remove(job.machine.id.as_str());
        Ok(())
    }

    async fn prices(&self) -> Result<Vec<Quote>, Failure> {
        let quote = |id: &str, price: f64, chance: f64| Quote {
            id: id.to_owned(),
            price_per_hour: price,
            interruption_probability: chance,
        };
        if !self.hands.has(ProgramKind::Prices) {
            let quotes = self.slots.iter().map(|slot| {
                let offer = &self.slots.offering(slot).offer;
                quote(
                    &slot.id,
                    offer.price_per_hour,
                    offer.interruption_probability,
                )
            });
            return Ok(quotes.collect());
        }
        let printed = self.ask_all(ProgramKind::Prices).await?;
        let priced: Priced = read(ProgramKind::Prices, &printed)
            .inspect_err(|why| tracing::warn!(%why, "a program did not answer"))?;
        let of_offering = priced
            .prices
            .into_iter()
            .map(|price| (price.offering.clone(), price));
        let of_offering: BTreeMap<_, _> = of_offering.collect();
        let quotes = self.slots.iter().filter_map(|slot| {
            let offering = self.slots.offering(slot);
            let price = of_offering.get(&offering.name)?;
            let usual = offering.offer.interruption_probability;
            let chance = price.interruption_probability.unwrap_or(usual);
            Some(quote(&slot.id, price.price_per_hour, chance))
        });
        Ok(quotes.collect())
    }

    /// The same operation twice is the same operation: that is what programs promise.
    fn resumes(&self) -> bool {
        true
    }

    fn deletes(&self) -> bool {
        self.hands.has(ProgramKind::Delete)
    }

    fn readiness(&self) -> Readiness {
        if self.hands.has(ProgramKind::Ready) {
            Readiness::Confirmed
        } else {
            Readiness::BackendWaits
        }
    }

    fn restore(&self, machines: &[Arc<Machine>]) {
        let mut hosts = self.hosts();
        for machine in machines {
            if let Some(host) = &machine.host {
                let names = HostNames::of(&host.reference);
                hosts.insert(machine.id.as_str().to_owned(), names);
            }
        }
    }
}
