//! Rails: what may leave, and how much of it.
//!
//! | Rail | File | Says |
//! |---|---|---|
//! | reclaim cap (rail 1) | `reclaim_cap` | how many machines may be reclaimed from a cluster |
//! | quarantine (rail 2) | `quarantine`, `peak` | which roll-up is not believed yet |
//! | pauses | `pauses` | which scope is closed, by whom and until when |
//! | dry run, fencing, incidents | here, `stop` | that nothing leaves at all |
//! | breakers | `breaker`, `probes` | what keeps ending badly, and is tried by one machine at a time |
//! | given up | `backoff` | which machine is not reclaimed, or deleted, for a while |
//! | released clusters | here | for which cluster a person has spoken |
//! | admission | `admission` | what a cycle has room for |
//!
//! **Invariant:** a rail never changes what was decided. It lets pass, or holds back and says so; what it
//! holds back derives again.

mod admission;
mod backoff;
mod breaker;
mod pauses;
mod peak;
mod probes;
mod quarantine;
mod reclaim_cap;
mod stop;

pub use breaker::{BreakerKey, JoinStep, KeptBreaker, Pool};
pub use pauses::{KeptPause, Pause, PauseNote, Scope};
pub use quarantine::Baseline;

pub(crate) use admission::admit;
pub(crate) use breaker::{LONGEST_WAIT, Spent};
pub(crate) use probes::InFlight;
pub(crate) use quarantine::{Circumstances, Judgement};

use crate::{
    audit::Outcome, defect::Defect, event::PausedBy, reads::CappedView, record::Record,
    settings::ShardConfig,
};
use backoff::Backoffs;
use bigfleet_model::{Action, ActionKind, ClusterId, MachineId, Time};
use breaker::Breakers;
use pauses::Pauses;
use quarantine::Quarantine;
use reclaim_cap::{Capped, ReclaimCap};
use std::{collections::BTreeSet, time::Duration};
use stop::Stop;

/// First and longest backoff of a reclaim or Delete that was given up (SH-14, SH-23).
const FIRST_GIVEN_UP: Duration = Duration::from_secs(600);
pub(crate) const LONGEST_GIVEN_UP: Duration = Duration::from_secs(7200);

/// Everything that limits or stops a shard.
#[derive(Clone, Debug)]
pub(crate) struct RailSet {
    provider: String,
    dry_run: bool,
    stop: Stop,
    pauses: Pauses,
    reclaim_cap: ReclaimCap,
    quarantine: Quarantine,
    breakers: Breakers,
    spent: Spent,
    given_up: Backoffs,
    /// Clusters an admin has released (AD-1).
    released: BTreeSet<ClusterId>,
}

impl RailSet {
    pub(crate) fn new(config: &ShardConfig) -> Self {
        let is_capped = config.defect != Some(Defect::ReclaimCapOff);
        let is_hasty = config.defect == Some(Defect::HastyRollUpGuard);
        let per_million = config.rails.reclaim_cap_per_million;
        let per_million = if is_capped { per_million } else { 0 };
        Self {
            provider: config.provider.clone(),
            dry_run: config.dry_run,
            stop: Stop::default(),
            pauses: Pauses::default(),
            reclaim_cap: ReclaimCap::new(per_million, config.cycle_interval),
            quarantine: Quarantine::new(config.rails.roll_up_guard, is_hasty),
            breakers: Breakers::default(),
            spent: Spent::default(),
            given_up: Backoffs::new(FIRST_GIVEN_UP, LONGEST_GIVEN_UP),
            released: BTreeSet::new(),
        }
    }
}

/// The gate: pauses, dry run, fencing, incidents.
impl RailSet {
    /// Whether everything is paused: by configuration, by an admin, or since the shard has stopped itself.
    pub(crate) fn is_paused(&self) -> bool {
        self.stop.is_stopped() || self.pauses.all(&self.provider)
    }

    /// Whether nothing at all may leave.
    pub(crate) fn is_closed(&self) -> bool {
        self.dry_run || self.is_paused()
    }

    /// Whether nothing may leave that concerns these clusters.
    pub(crate) fn is_closed_for<'c>(
        &self,
        mut clusters: impl Iterator<Item = &'c ClusterId>,
    ) -> bool {
        self.is_closed()
            || (!self.pauses.is_empty() && clusters.any(|cluster| self.is_cluster_paused(cluster)))
    }

    /// Whether one cluster is paused by name.
    pub(crate) fn is_cluster_paused(&self, cluster: &ClusterId) -> bool {
        self.pauses.cluster(cluster)
    }

    /// Whether there is nothing that could suppress an action.
    pub(crate) fn is_open(&self) -> bool {
        !self.stop.is_stopped() && self.pauses.is_empty() && !self.dry_run
    }

    /// Why an action is not committed, if it is not; counted for the pauses that hold it back.
    pub(crate) fn suppress(&mut self, action: &Action) -> Option<Outcome> {
        if self.is_open() {
            return None;
        }
        // SH-18: it only undoes, so nobody who pauses means it.
        if action.kind == ActionKind::Restore && !self.stop.is_stopped() {
            return self.dry_run.then_some(Outcome::DryRun);
        }
        let meant = action.purpose.as_ref().map(|(need, _)| &need.cluster);
        let clusters = action.cluster.iter().chain(meant);
        let is_cluster_paused = || clusters.clone().any(|one| self.pauses.cluster(one));
        if self.is_paused() || is_cluster_paused() {
            self.pauses.withhold(&self.provider, clusters);
            return Some(Outcome::Suppressed);
        }
        self.dry_run.then_some(Outcome::DryRun)
    }

    pub(crate) fn pause(&mut self, by: PausedBy, scope: Scope, kept: KeptPause) {
        self.pauses.pause(by, scope, kept);
    }

    pub(crate) fn resume(&mut self, by: PausedBy, scope: Scope) {
        self.pauses.resume(by, scope);
    }

    /// Drops the pauses that have run out; says whether there were any, with the records of an admin's.
    pub(crate) fn expire_pauses(&mut self, now: Time) -> (bool, Vec<Record>) {
        let over = self.pauses.expire(now);
        let admins = over.iter().filter(|(_, by)| *by == PausedBy::Admin);
        let records = admins.map(|(scope, _)| self.pauses.record(scope)).collect();
        (!over.is_empty(), records)
    }

    /// The next moment a pause runs out.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.pauses.next_expiry()
    }

    /// Everything to remember of an admin's pause of this scope, or that there is none.
    pub(crate) fn pause_record(&self, scope: &Scope) -> Record {
        self.pauses.record(scope)
    }

    /// The pauses in force, oldest first.
    pub(crate) fn pauses(&self) -> Vec<Pause> {
        self.pauses.in_force()
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// FE-4: another process runs this shard.
    pub(crate) fn fence(&mut self) {
        self.stop.fence();
    }

    /// CO-14: another process is on record as this shard.
    pub(crate) fn supersede(&mut self) {
        self.stop.supersede();
    }

    pub(crate) fn is_superseded(&self) -> bool {
        self.stop.is_superseded()
    }

    pub(crate) fn is_fenced(&self) -> bool {
        self.stop.is_fenced()
    }

    /// SH-33: a record shows this epoch of the shard, which is not below ours; says whether it is the first.
    pub(crate) fn note_twin(&mut self, epoch: u64) -> bool {
        self.stop.note_twin(epoch)
    }

    /// The highest of those epochs.
    pub(crate) fn twin(&self) -> Option<u64> {
        self.stop.twin()
    }

    /// Something happened that cannot.
    pub(crate) fn note_incident(&mut self, what: &str) {
        self.stop.note_incident(what);
    }

    /// What that was, the first time.
    pub(crate) fn incident(&self) -> Option<&str> {
        self.stop.incident()
    }

    /// Whether the shard has stopped itself.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }
}

/// Rail 1: the reclaim cap.
impl RailSet {
    /// Leaves the head of each cluster's reclaims among the actions; see [`ReclaimCap::cap`].
    pub(crate) fn cap_reclaims(
        &mut self,
        actions: &mut Vec<Action>,
        configured: impl Fn(&ClusterId) -> u32,
        is_outside: impl Fn(&MachineId) -> bool,
        now: Time,
    ) -> Capped {
        self.reclaim_cap.cap(actions, configured, is_outside, now)
    }

    /// A reclaim was committed, here or by an earlier process that did not finish it.
    pub(crate) fn reclaim_committed(&mut self, cluster: &ClusterId, machine: &MachineId) {
        self.reclaim_cap.committed(cluster, machine);
    }

    /// A reclaim left, or ended without.
    pub(crate) fn reclaim_left(&mut self, cluster: &ClusterId, machine: &MachineId, now: Time) {
        self.reclaim_cap.left(cluster, machine, now);
    }

    /// A reclaim was taken back: as if it had not been.
    pub(crate) fn reclaim_taken_back(&mut self, cluster: &ClusterId, machine: &MachineId) {
        self.reclaim_cap.taken_back(cluster, machine);
    }

    /// When reclaims of an earlier process left.
    pub(crate) fn recall_reclaims(&mut self, cluster: ClusterId, left: &[(Time, u32)], now: Time) {
        self.reclaim_cap.recall(cluster, left, now);
    }

    /// Departures that are not on record yet; see [`ReclaimCap::take_unwritten`].
    pub(crate) fn unwritten_reclaims(&mut self, now: Time) -> Vec<Record> {
        self.reclaim_cap.take_unwritten(now)
    }

    /// Every departure that counts, as records.
    pub(crate) fn reclaim_records(&self, now: Time) -> impl Iterator<Item = Record> {
        self.reclaim_cap.records(now)
    }

    /// The clusters it held reclaims back of in the last cycle.
    pub(crate) fn capped_clusters(&self) -> impl Iterator<Item = CappedView> {
        self.reclaim_cap.capped_clusters()
    }

    /// Reclaims it held back in the last cycle.
    pub(crate) fn reclaims_capped(&self) -> u64 {
        self.reclaim_cap.capped()
    }
}

/// Rail 2: the quarantine of roll-ups.
impl RailSet {
    /// Judges a roll-up of this size; see [`Quarantine::judge`].
    pub(crate) fn judge_roll_up(
        &mut self,
        cluster: &ClusterId,
        new: &Baseline,
        circumstances: &Circumstances,
        now: Time,
    ) -> Judgement {
        self.quarantine.judge(cluster, new, circumstances, now)
    }

    /// The demand last believed is said again; says whether the rail is on.
    pub(crate) fn believe_again(&mut self, cluster: &ClusterId, now: Time) -> bool {
        self.quarantine.believe_again(cluster, now)
    }

    /// The rail, to look at.
    pub(crate) fn quarantine(&self) -> &Quarantine {
        &self.quarantine
    }
}

/// Breakers: what keeps ending badly (SH-22).
impl RailSet {
    /// An acquisition ended badly; returns until when nothing is tried, and whether the breaker has opened.
    pub(crate) fn ended_badly(&mut self, key: &BreakerKey, now: Time, why: &str) -> (Time, bool) {
        self.breakers.fail(key, now, why)
    }

    /// It ended well; says whether there was a breaker to close.
    pub(crate) fn ended_well(&mut self, key: &BreakerKey) -> bool {
        self.breakers.succeed(key)
    }

    pub(crate) fn breakers(&self) -> &Breakers {
        &self.breakers
    }

    pub(crate) fn recall_breaker(&mut self, key: BreakerKey, kept: Option<KeptBreaker>) {
        self.breakers.recall(key, kept);
    }

    /// Drops breakers that nobody has tried for long; returns them.
    pub(crate) fn forget_old_breakers(&mut self, now: Time) -> Vec<BreakerKey> {
        self.breakers.forget_old(now)
    }

    /// The machines that clusters in trouble have used up.
    pub(crate) fn spent(&self) -> &Spent {
        &self.spent
    }

    pub(crate) fn spent_mut(&mut self) -> &mut Spent {
        &mut self.spent
    }

    /// Whether there is no trouble that could limit an acquisition.
    pub(crate) fn is_untroubled(&self) -> bool {
        self.breakers.is_empty() && self.spent.is_empty()
    }

    /// Takes out of a cycle's actions the acquisitions that may not be tried now; returns the clusters
    /// that have used up what they may.
    pub(crate) fn limit_acquisitions(
        &mut self,
        actions: &mut Vec<Action>,
        now: Time,
        in_flight: &InFlight,
        pool_of: impl Fn(&MachineId) -> Option<Pool>,
    ) -> Vec<ClusterId> {
        let (breakers, spent) = (&self.breakers, &mut self.spent);
        probes::limit(actions, breakers, spent, now, in_flight, pool_of)
    }
}

/// Machines that are left alone for a while.
impl RailSet {
    /// The reclaim of a bound machine (SH-14) or the Delete of an Idle one (SH-23) was given up.
    pub(crate) fn give_up(&mut self, machine: &MachineId, now: Time) {
        self.given_up.fail(machine, now);
    }

    /// A machine was drained, bound or deleted, or is gone.
    pub(crate) fn forget_given_up(&mut self, machine: &MachineId) {
        self.given_up.succeed(machine);
    }

    /// Whether the reclaim or Delete of a machine was given up so lately that it is not tried.
    pub(crate) fn is_given_up(&self, machine: &MachineId, now: Time) -> bool {
        self.given_up.waits(machine, now)
    }

    /// How often that was given up in a row, and until when it is not tried.
    pub(crate) fn given_up(&self, machine: &MachineId) -> Option<(u32, Time)> {
        self.given_up.get(machine)
    }

    pub(crate) fn recall_given_up(&mut self, machine: MachineId, given_up: (u32, Time)) {
        self.given_up.recall(machine, given_up);
    }
}

/// Clusters a person has spoken for (AD-1).
impl RailSet {
    /// A person releases a cluster, or the cluster speaks again; says whether that changed anything.
    pub(crate) fn set_released(&mut self, cluster: &ClusterId, is_released: bool) -> bool {
        if is_released {
            self.released.insert(cluster.clone())
        } else {
            self.released.remove(cluster)
        }
    }

    /// Forgets what a cluster was believed to want, and that it was released.
    pub(crate) fn forget_cluster(&mut self, cluster: &ClusterId) {
        self.released.remove(cluster);
        self.quarantine.forget(cluster);
    }

    pub(crate) fn is_released(&self, cluster: &ClusterId) -> bool {
        self.released.contains(cluster)
    }

    pub(crate) fn released(&self) -> impl Iterator<Item = &ClusterId> {
        self.released.iter()
    }
}

/// Records.
impl RailSet {
    /// What of the rails outlives the process, pauses first.
    pub(crate) fn pause_records(&self) -> impl Iterator<Item = Record> {
        self.pauses.records()
    }

    /// What an earlier process believed of a cluster; see [`Quarantine::recall`].
    pub(crate) fn recall_baseline(
        &mut self,
        cluster: ClusterId,
        baseline: Baseline,
        replaced: Vec<(Time, Baseline)>,
        now: Time,
    ) {
        self.quarantine.recall(cluster, baseline, replaced, now);
    }

    /// So many machines serve a cluster, as an earlier process remembered them.
    pub(crate) fn recall_serving(&mut self, cluster: ClusterId, machines: u32) {
        self.quarantine.recall_serving(cluster, machines);
    }

    /// The provider has shown its machines.
    pub(crate) fn forget_serving_at_start(&mut self) {
        self.quarantine.forget_serving_at_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{Fingerprint, Group, NeedKey, Reason, Terms};

    fn cluster(name: &str) -> ClusterId {
        ClusterId::new(name).unwrap()
    }

    /// A Preempt of a machine of `from`, for a Need of `meant`.
    fn preempt(from: &str, meant: &str) -> Action {
        let need = NeedKey {
            cluster: cluster(meant),
            fingerprint: Fingerprint::new("f"),
            group: Group::default(),
        };
        Action {
            kind: ActionKind::Preempt,
            machine: MachineId::new("m1").unwrap(),
            cluster: Some(cluster(from)),
            purpose: Some((need, Terms::default())),
            grace_seconds: 0,
            preemptor_priority: 0,
            reason: Reason::Idle,
        }
    }

    fn pause(rails: &mut RailSet, scope: Scope) {
        let kept = KeptPause {
            since: Time::ZERO,
            until: None,
            note: PauseNote::default(),
        };
        rails.pause(PausedBy::Admin, scope, kept);
    }

    /// SH-16, SR-4, SR-5: who is held back, and as what; a pause wins over a dry run.
    #[test]
    fn an_action_is_held_back_by_whatever_covers_either_cluster() {
        let config = ShardConfig::undamped("s", "p");
        let dry = ShardConfig {
            dry_run: true,
            ..config.clone()
        };
        let held = |rails: &mut RailSet| {
            let suppressed = rails.suppress(&preempt("a", "b"));
            let withheld = rails
                .pauses()
                .iter()
                .map(|pause| pause.withheld)
                .sum::<u64>();
            (suppressed, withheld)
        };
        let mut rails = RailSet::new(&config);
        assert!(rails.is_open() && !rails.is_closed() && !rails.is_dry_run());
        assert_eq!(held(&mut rails), (None, 0));
        pause(&mut rails, Scope::Cluster(cluster("c")));
        assert!(!rails.is_open() && !rails.is_closed());
        assert_eq!(held(&mut rails), (None, 0), "another cluster's pause");
        for scope in [
            Scope::Cluster(cluster("a")),
            Scope::Cluster(cluster("b")),
            Scope::Provider("p".to_owned()),
            Scope::All,
        ] {
            for config in [&config, &dry] {
                let mut rails = RailSet::new(config);
                pause(&mut rails, scope.clone());
                assert_eq!(
                    held(&mut rails),
                    (Some(Outcome::Suppressed), 1),
                    "{scope:?}"
                );
                let both = [cluster("a"), cluster("b")];
                assert!(rails.is_closed_for(both.iter()));
                rails.resume(PausedBy::Admin, scope.clone());
                assert_eq!(rails.is_closed_for(both.iter()), config.dry_run);
            }
        }
        let mut rails = RailSet::new(&dry);
        assert!(rails.is_closed() && !rails.is_paused() && !rails.is_open());
        assert_eq!(held(&mut rails), (Some(Outcome::DryRun), 0));
    }

    /// SH-18: what only undoes is not what somebody pauses; in a dry run and once stopped it is not done.
    #[test]
    fn a_drain_is_taken_back_while_paused() {
        let restore = Action {
            kind: ActionKind::Restore,
            ..preempt("a", "a")
        };
        let mut config = ShardConfig::undamped("s", "p");
        let mut rails = RailSet::new(&config);
        pause(&mut rails, Scope::All);
        pause(&mut rails, Scope::Cluster(cluster("a")));
        assert_eq!(rails.suppress(&restore), None);
        assert!(rails.pauses().iter().all(|pause| pause.withheld == 0));
        rails.fence();
        assert_eq!(rails.suppress(&restore), Some(Outcome::Suppressed));
        config.dry_run = true;
        let mut rails = RailSet::new(&config);
        assert_eq!(rails.suppress(&restore), Some(Outcome::DryRun));
    }

    /// FE-4, SH-21.
    #[test]
    fn a_shard_that_stopped_itself_lets_nothing_pass() {
        for stop in [RailSet::fence as fn(&mut RailSet), |rails| {
            rails.note_incident("x")
        }] {
            let mut rails = RailSet::new(&ShardConfig::undamped("s", "p"));
            assert!(!rails.is_stopped());
            stop(&mut rails);
            assert!(rails.is_stopped() && rails.is_paused() && !rails.is_open());
            assert_eq!(rails.is_fenced(), rails.incident().is_none());
            let action = preempt("a", "b");
            assert_eq!(rails.suppress(&action), Some(Outcome::Suppressed));
        }
    }
}
