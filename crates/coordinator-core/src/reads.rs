//! Reads: what people and dashboards ask a leader, in order, as copies.
//!
//! Checked like everything else: leader, then certificate. What only this leader knows is empty after an election until shards
//! report again; [`Shown::began`] lets a page say "not heard yet" instead of zero.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::{ClusterId, MachineId, Time};

use crate::{
    Caller, CoordinatorCore, Domain, DomainRow, Instruction, MachineRow, Refused, ShardId,
    ShardRow, Shortfall, Summary, Transfer, TransferId,
};

/// A registered shard, and when it was last heard of in this reign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownShard {
    /// The shard.
    pub shard: ShardId,
    /// Its row.
    pub row: ShardRow,
    /// The last report; `None` if this reign has none.
    pub last_report: Option<Time>,
    /// Whether this reign knows what it holds.
    pub is_heard: bool,
}

/// The newest report of a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownReport {
    /// The shard.
    pub shard: ShardId,
    /// Counts the reports of its process.
    pub cycle: u64,
    /// When it came.
    pub received: Time,
    /// It is older than three intervals.
    pub is_stale: bool,
    /// What the shard takes part in.
    pub capabilities: BTreeSet<String>,
    /// What the shard has, in counts.
    pub summary: Summary,
    /// What is short there.
    pub shortfalls: Vec<Shortfall>,
}

/// A cluster and who serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownCluster {
    /// The cluster.
    pub cluster: ClusterId,
    /// The shard it was first seen at.
    pub shard: ShardId,
    /// Others that serve it too, which none should.
    pub also_at: Vec<ShardId>,
}

/// How the domains stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainCounts {
    /// Had by whom they are meant for.
    pub held: usize,
    /// Meant for a shard that does not have them yet.
    pub waiting: usize,
    /// Had by a shard that is to let them go.
    pub leaving: usize,
}

/// Everything a leader is asked, in one read.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    core: &'a CoordinatorCore,
}

impl CoordinatorCore {
    /// What this leader knows, for a reader.
    pub fn read(&self, caller: &Caller) -> Result<Shown<'_>, Refused> {
        self.leading()?;
        caller.check_reader()?;
        Ok(Shown { core: self })
    }
}

impl<'a> Shown<'a> {
    /// When this reign began.
    pub fn began(self) -> Option<Time> {
        let leading = self.core.leading().ok()?;
        Some(leading.began)
    }

    /// Registered shards, by id.
    pub fn shards(self) -> Vec<ShownShard> {
        let leading = self.core.leading().ok();
        let shards = self.core.tables().registry().shards();
        let shown = |(shard, row): (&ShardId, &ShardRow)| {
            let session = leading.and_then(|leading| leading.session(shard));
            ShownShard {
                shard: shard.clone(),
                row: row.clone(),
                last_report: session.map(|session| session.received),
                is_heard: session.is_some_and(|session| session.is_heard),
            }
        };
        shards.map(shown).collect()
    }

    /// Domains and who shall have them, by shard, key and value.
    pub fn assignments(self) -> Vec<(ShardId, Domain)> {
        let rows = self.core.tables().domains().rows();
        let desired = rows.filter_map(|(domain, row)| {
            let shard = row.desired.clone()?;
            Some((shard, domain.clone()))
        });
        let mut assignments: Vec<_> = desired.collect();
        assignments.sort_unstable();
        assignments
    }

    /// A domain, if it is on record.
    pub fn domain(self, domain: &Domain) -> Option<&'a DomainRow> {
        self.core.tables().domains().row(domain)
    }

    /// Every domain on record, with who shall have it and who has it.
    pub fn domains(self) -> impl Iterator<Item = (&'a Domain, &'a DomainRow)> {
        self.core.tables().domains().rows()
    }

    /// How the domains stand.
    pub fn domain_counts(self) -> DomainCounts {
        let mut counts = DomainCounts::default();
        for (_, row) in self.domains() {
            match (&row.desired, &row.holder) {
                (Some(desired), Some(holder)) if desired == holder => counts.held += 1,
                (Some(_), Some(_)) => {
                    counts.waiting += 1;
                    counts.leaving += 1;
                }
                (Some(_), None) => counts.waiting += 1,
                (None, _) => counts.leaving += 1,
            }
        }
        counts
    }

    /// The newest report of every shard, or of one, by id. A shard that is not known has none.
    pub fn reports(self, now: Time, only: Option<&str>) -> Vec<ShownReport> {
        let stale_after = self.core.settings().report_interval.saturating_mul(3);
        let leading = self.core.leading().ok().into_iter();
        let sessions = leading.flat_map(|leading| leading.sessions());
        let wanted = sessions.filter(|(shard, _)| only.is_none_or(|only| shard.as_str() == only));
        let shown = wanted.map(|(shard, session)| ShownReport {
            shard: shard.clone(),
            cycle: session.cycle(),
            received: session.received,
            is_stale: stale_after < now.duration_since(session.received),
            capabilities: session.capabilities.clone(),
            summary: session.summary.clone(),
            shortfalls: session.shortfalls.clone(),
        });
        shown.collect()
    }

    /// Clusters and who serves them, by id.
    pub fn clusters(self) -> Vec<ShownCluster> {
        let mut served: BTreeMap<&ClusterId, Vec<&ShardId>> = BTreeMap::new();
        let leading = self.core.leading().ok().into_iter();
        for (shard, session) in leading.flat_map(|leading| leading.sessions()) {
            for cluster in &session.clusters {
                served.entry(cluster).or_default().push(shard);
            }
        }
        let clusters = self.core.tables().clusters().iter();
        let shown = clusters.map(|(cluster, shard)| {
            let at = served.get(cluster).into_iter().flatten();
            let also_at = at
                .filter(|other| **other != shard)
                .map(|other| (*other).clone());
            ShownCluster {
                cluster: cluster.clone(),
                shard: shard.clone(),
                also_at: also_at.collect(),
            }
        });
        shown.collect()
    }

    /// Orders that were given and not answered, by shard and number.
    pub fn instructions(self) -> Vec<(ShardId, Instruction)> {
        let leading = self.core.leading().ok().into_iter();
        let sessions = leading.flat_map(|leading| leading.sessions());
        let pending = sessions.flat_map(|(shard, session)| {
            let pending = session.pending().into_iter();
            pending.map(|one| (shard.clone(), one))
        });
        pending.collect()
    }

    /// Machines that do not follow their domain, by id.
    pub fn machines(self) -> impl Iterator<Item = (&'a MachineId, &'a MachineRow)> {
        self.core.tables().ledger().rows()
    }

    /// Transfers under way, by id.
    pub fn transfers(self) -> impl Iterator<Item = (&'a TransferId, &'a Transfer)> {
        self.core.tables().ledger().transfers()
    }

    /// Providers of which two shards or more say that everything is their own (CO-32).
    pub fn everything_conflicts(self) -> usize {
        let registry = self.core.tables().registry();
        let leading = self.core.leading().ok().into_iter();
        let sessions = leading.flat_map(|leading| leading.sessions());
        let claims = sessions.filter(|(_, session)| session.holds_everything);
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        for (shard, _) in claims {
            if let Some(provider) = registry.provider(shard) {
                *counts.entry(provider).or_default() += 1;
            }
        }
        counts.into_values().filter(|count| 1 < *count).count()
    }
}
