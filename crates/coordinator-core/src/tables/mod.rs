//! Tables: everything the replicas agree on, and what each command makes of it.
//!
//! ```text
//! log ─▶ apply(command) ─▶ Tables { registry, domains, clusters, ledger, scalars }
//!                            └──── snapshot ◀─▶ Snapshot, a plain value
//! ```
//!
//! Applying is a function of tables and command. What is refused changes nothing.

mod clusters;
mod domains;
mod draft;
mod heard;
mod ledger;
mod registry;
mod removal;
mod restore;
mod snapshot;

pub(crate) use clusters::Clusters;
pub use domains::DomainRow;
pub(crate) use domains::Domains;
pub(crate) use draft::{Changes, Draft};
pub(crate) use ledger::Ledger;
pub use ledger::{MachineRow, Transfer, TransferState};
pub use registry::{IdentityRow, ShardRow};
pub(crate) use registry::{Registry, Standing};
pub use snapshot::{RowRefused, Snapshot};

use crate::{
    Command, Defect, Domain, Facts, Identity, Refused, ShardId,
    limits::{HIGHEST_REIGN, MOST_ABOVE_REIGN, MOST_DOMAINS},
};

/// What applying a command did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Everything was as the command wants it.
    Nothing,
    /// A table changed.
    Changed,
    /// A reign began.
    Reign(u64),
}

impl Applied {
    fn if_changed(is_changed: bool) -> Self {
        if is_changed {
            Self::Changed
        } else {
            Self::Nothing
        }
    }
}

/// The single values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scalars {
    pub(crate) cluster: Option<String>,
    pub(crate) generation: u64,
    pub(crate) reign: u64,
    pub(crate) restored: bool,
    pub(crate) rebalance_paused: bool,
    /// Counts the commands that changed something.
    pub(crate) revision: u64,
    /// Transfers the tables themselves began in this reign.
    pub(crate) minted: u64,
}

/// What the replicas agree on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    registry: Registry,
    domains: Domains,
    clusters: Clusters,
    ledger: Ledger,
    scalars: Scalars,
}

impl Tables {
    /// Applies one command (CO-17).
    pub(crate) fn apply(
        &mut self,
        command: &Command,
        defect: Option<Defect>,
    ) -> Result<Applied, Refused> {
        let applied = self.carry_out(command, defect)?;
        if applied != Applied::Nothing {
            self.scalars.revision += 1;
        }
        Ok(applied)
    }

    fn carry_out(&mut self, command: &Command, defect: Option<Defect>) -> Result<Applied, Refused> {
        match command {
            Command::AddShard {
                shard,
                address,
                registered_at,
            } => {
                self.registry.add(shard, address, *registered_at)?;
                Ok(Applied::Changed)
            }
            Command::RemoveShard { shard, gone } => self.remove_shard(shard, *gone, defect),
            Command::BindCluster { cluster, shard } => {
                self.check_registered(shard)?;
                let is_changed = self.clusters.bind(cluster, shard)?;
                Ok(Applied::if_changed(is_changed))
            }
            Command::AssignDomain { domain, shard } => self.assign(domain, shard, defect),
            Command::UnassignDomain { domain } => {
                let is_changed = self.domains.desired(domain).is_some();
                self.domains.set_desired(domain, None);
                Ok(Applied::if_changed(is_changed))
            }
            Command::MoveDomain { domain, to } => {
                if self.domains.desired(domain).is_none() {
                    return Err(Refused::DomainUnassigned(domain.clone()));
                }
                self.give(domain, to, defect)
            }
            Command::SetIdentity {
                shard,
                identity,
                has_records,
                address,
                provider,
                registered_at,
            } => {
                self.judge(shard, *identity, *has_records, defect)?;
                let (address, at) = (address.as_str(), *registered_at);
                let registry = &mut self.registry;
                let is_changed = registry.set_identity(shard, *identity, address, provider, at)?;
                Ok(Applied::if_changed(is_changed))
            }
            Command::Heard {
                reign,
                shard,
                identity,
                facts,
            } => {
                let changes = self.plan_heard(*reign, shard, *identity, facts)?;
                Ok(Applied::if_changed(self.commit(changes)))
            }
            Command::BeginReign { floor } => Ok(Applied::Reign(self.begin_reign(*floor, defect))),
            Command::FinishRestore { facts } => {
                let changes = restore::plan(self, facts, defect)?;
                self.commit(changes);
                self.scalars.restored = false;
                Ok(Applied::Changed)
            }
            Command::SetRebalancePaused(paused) => {
                let before = std::mem::replace(&mut self.scalars.rebalance_paused, *paused);
                Ok(Applied::if_changed(before != *paused))
            }
            Command::SetCluster { id, generation } => self.set_cluster(id, *generation),
        }
    }

    fn check_registered(&self, shard: &ShardId) -> Result<(), Refused> {
        if self.registry.is_gone(shard) {
            return Err(Refused::ShardGone(shard.clone()));
        }
        match self.registry.shard(shard) {
            Some(_) => Ok(()),
            None => Err(Refused::UnknownShard(shard.clone())),
        }
    }

    fn assign(
        &mut self,
        domain: &Domain,
        shard: &ShardId,
        defect: Option<Defect>,
    ) -> Result<Applied, Refused> {
        self.check_registered(shard)?;
        match self.domains.desired(domain) {
            Some(assigned) if assigned != shard => Err(Refused::DomainAssigned {
                domain: domain.clone(),
                assigned: assigned.clone(),
                requested: shard.clone(),
            }),
            Some(_) | None => self.give(domain, shard, defect),
        }
    }

    /// Says who shall have a domain. Who has it stays as it is, until that shard says that it let go.
    fn give(
        &mut self,
        domain: &Domain,
        shard: &ShardId,
        defect: Option<Defect>,
    ) -> Result<Applied, Refused> {
        self.check_registered(shard)?;
        self.check_key(domain, shard)?;
        if self.domains.row(domain).is_none() && MOST_DOMAINS <= self.domains.rows().len() {
            let (table, most) = ("domains", MOST_DOMAINS);
            return Err(Refused::Full { table, most });
        }
        let is_changed = self.domains.desired(domain) != Some(shard);
        self.domains.set_desired(domain, Some(shard.clone()));
        if defect == Some(Defect::HolderFollowsDesired) {
            let (desired, holder) = (Some(shard.clone()), Some(shard.clone()));
            self.domains.set(domain, DomainRow { desired, holder });
        }
        Ok(Applied::if_changed(is_changed))
    }

    /// Domains of one provider have one key: a machine has one value of it, and so one owner.
    fn check_key(&self, domain: &Domain, shard: &ShardId) -> Result<(), Refused> {
        let Some(provider) = self.registry.provider(shard) else {
            return Ok(());
        };
        let Some((first, last)) = self.domains.ends(self.registry.on(provider)) else {
            return Ok(());
        };
        let other = [first, last]
            .into_iter()
            .find(|one| one.key() != domain.key());
        let Some(other) = other else { return Ok(()) };
        Err(Refused::OtherKey {
            domain: domain.clone(),
            key: other.key().to_owned(),
            provider: provider.clone(),
        })
    }

    fn begin_reign(&mut self, floor: u64, defect: Option<Defect>) -> u64 {
        let present = self.scalars.reign;
        // A mark this far away was never a reign of this group: nobody may use the numbers up.
        let is_near = floor <= present.saturating_add(MOST_ABOVE_REIGN);
        let is_floor = is_near && defect != Some(Defect::FloorIgnored);
        let above = if is_floor {
            present.max(floor)
        } else {
            present
        };
        let is_raised = defect != Some(Defect::ReignNotRaised) || present == 0;
        let reign = if is_raised {
            above.saturating_add(1)
        } else {
            present
        };
        self.scalars.reign = reign.min(HIGHEST_REIGN);
        self.scalars.minted = 0;
        self.scalars.reign
    }

    fn set_cluster(&mut self, id: &str, generation: u64) -> Result<Applied, Refused> {
        if let Some(present) = &self.scalars.cluster
            && present != id
        {
            return Err(Refused::OtherCluster {
                present: present.clone(),
                requested: id.to_owned(),
            });
        }
        let generation = generation.max(self.scalars.generation);
        let is_changed = self.scalars.cluster.is_none() || generation != self.scalars.generation;
        self.scalars.cluster = Some(id.to_owned());
        self.scalars.generation = generation;
        Ok(Applied::if_changed(is_changed))
    }

    /// What taking in a report would change (CO-20). Nothing, for most reports: then nothing needs to be agreed on.
    pub(crate) fn plan_heard(
        &self,
        reign: u64,
        shard: &ShardId,
        identity: Identity,
        facts: &Facts,
    ) -> Result<Changes, Refused> {
        if reign != self.scalars.reign {
            let present = self.scalars.reign;
            return Err(Refused::ReignOver { reign, present });
        }
        if self.scalars.restored {
            return Err(Refused::Restored);
        }
        let Some(provider) = self.registry.provider(shard) else {
            return Err(Refused::UnknownShard(shard.clone()));
        };
        match self.registry.identity(shard) {
            Some(row) if row == identity => Ok(heard::plan(self, shard, provider, facts)),
            row => Err(Refused::OtherProcess {
                shard: shard.clone(),
                epoch: row.map_or(0, |row| row.epoch),
                why: "it took over",
            }),
        }
    }

    fn commit(&mut self, changes: Changes) -> bool {
        let is_changed = !changes.is_empty();
        for (domain, row) in changes.domains {
            self.domains.set(&domain, row);
        }
        for (provider, holder) in changes.everything {
            self.domains.set_everything(&provider, holder);
        }
        for (machine, row) in changes.rows {
            self.ledger.set_row(&machine, row);
        }
        for (id, transfer) in changes.transfers {
            self.ledger.set_transfer(&id, transfer);
        }
        self.scalars.minted = changes.minted;
        is_changed
    }

    /// CO-13, for a leader that looks before it proposes.
    pub(crate) fn judge(
        &self,
        shard: &ShardId,
        said: Identity,
        has_records: bool,
        defect: Option<Defect>,
    ) -> Result<Standing, Refused> {
        let is_restored = self.scalars.restored;
        self.registry
            .judge(shard, said, has_records, is_restored, defect)
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn domains(&self) -> &Domains {
        &self.domains
    }

    pub(crate) fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The id of the consensus group, once it was named.
    pub fn cluster(&self) -> Option<&str> {
        self.scalars.cluster.as_deref()
    }

    /// Counts the restores of the consensus group.
    pub fn generation(&self) -> u64 {
        self.scalars.generation
    }

    /// Whether rebalancing is paused.
    pub fn is_rebalancing_paused(&self) -> bool {
        self.scalars.rebalance_paused
    }

    /// The reign that began last.
    pub fn reign(&self) -> u64 {
        self.scalars.reign
    }

    /// Whether the tables came from a backup and wait for `finish-restore`.
    pub fn is_restored(&self) -> bool {
        self.scalars.restored
    }

    /// Counts the commands that changed something.
    pub fn revision(&self) -> u64 {
        self.scalars.revision
    }
}
