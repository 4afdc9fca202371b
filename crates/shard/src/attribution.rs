//! The attribution probe: now and then, whether Phase 3 sheds what Phase 1 wanted (`docs/operating.md`).
//!
//! ```text
//! every 20th cycle: reclaims of the cycle × rows it left short ─▶ one line, and a few samples
//! ```
//!
//! Reads only, and only with its flag on. Two of its numbers must be zero at steady demand: machines
//! reclaimed in the cycle that a row left short would have matched, and of those the ones that fit.

use std::sync::Arc;

use bigfleet_model::{ActionKind, Machine};
use bigfleet_shard_core::{Decided, Effect, NeedView, Record, ShardCore};

/// Cycles from one probe to the next.
const EVERY: u64 = 20;
/// Samples of each kind per probe.
const SAMPLES: usize = 5;

/// What a probe looks at.
pub(crate) struct Probe {
    cycle: u64,
    decided: Arc<Decided>,
    /// Machines whose reclaim the cycle has committed.
    reclaims: Vec<Machine>,
}

impl Probe {
    /// To be called after each cycle, with what it asked for. Answers with what to look at, if this is
    /// the cycle to do so.
    pub(crate) fn of_cycle(core: &mut ShardCore, effects: &[Effect]) -> Option<Self> {
        let cycle = core.cycle();
        if (cycle + 1).is_multiple_of(EVERY) {
            core.want_verdicts();
        }
        if !cycle.is_multiple_of(EVERY) {
            return None;
        }
        // If nothing was decided, the provider has not been seen.
        core.decided_as_of().filter(|(as_of, _)| *as_of == cycle)?;
        let decided = core.decided()?;
        Some(Self {
            cycle,
            decided: Arc::clone(decided),
            reclaims: reclaimed(core, effects),
        })
    }

    /// Compares every reclaim with every row left short, and logs what it finds. Takes time in proportion
    /// to both, so not on the core's thread.
    pub(crate) fn log(&self) {
        log(self.cycle, &self.decided, &self.reclaims);
    }
}

/// Machines whose reclaim this cycle has committed.
fn reclaimed(core: &ShardCore, effects: &[Effect]) -> Vec<Machine> {
    let written = effects.iter().filter_map(|effect| match effect {
        Effect::Persist { records, .. } => Some(records),
        _ => None,
    });
    let ids = written.flatten().filter_map(|record| match record {
        Record::Machine { machine, kept } => {
            let operation = kept.as_ref()?.operation.as_ref()?;
            let now = operation.decided_cycle == core.cycle();
            (now && operation.action == ActionKind::Reclaim).then_some(machine)
        }
        _ => None,
    });
    ids.filter_map(|id| core.machine(id).cloned()).collect()
}

fn log(cycle: u64, decided: &Decided, reclaims: &[Machine]) {
    let is_gang = |view: &&NeedView| view.verdict.need.row.profile.same_key().is_some();
    let short: Vec<&NeedView> = decided
        .needs
        .iter()
        .filter(|view| !view.verdict.satisfied)
        .collect();
    let fate = |machine: &Machine| {
        let rows = short.iter().map(|view| &view.verdict.need.row);
        let matching = rows.filter(|row| machine.shape().matches(&row.profile));
        let fits = |row: &bigfleet_model::Row| machine.shape().effective().covers(&row.min_unit);
        matching.fold((false, false), |(_, fitting), row| {
            (true, fitting || fits(row))
        })
    };
    let fates: Vec<(bool, bool)> = reclaims.iter().map(fate).collect();
    tracing::info!(
        cycle,
        needs_total = decided.needs.len(),
        needs_same = decided.needs.iter().filter(is_gang).count(),
        p1_unsatisfied = short.len(),
        p1_unsatisfied_same = short.iter().filter(|view| is_gang(view)).count(),
        p3_reclaim = reclaims.len(),
        p3_reclaim_matches_unsatisfied = fates.iter().filter(|(matches, _)| *matches).count(),
        p3_reclaim_matches_and_fits = fates.iter().filter(|(_, fits)| *fits).count(),
        "attribution probe"
    );
    for (machine, (matches_unsatisfied, fits)) in reclaims.iter().zip(&fates).take(SAMPLES) {
        let cluster = machine.cluster().map(|id| id.as_str());
        let instance_type = &machine.shape().instance_type;
        tracing::info!(machine = %machine.id(), cluster, instance_type, matches_unsatisfied, fits,
            "attribution probe: reclaim");
    }
    for view in short.iter().filter(|view| is_gang(view)).take(SAMPLES) {
        let verdict = &view.verdict;
        let acquired = verdict.bootstrap + verdict.provision;
        tracing::info!(group = %verdict.need.row.group, cluster = %verdict.need.cluster,
            chosen_domain = verdict.same_domain, acquired, residual = ?verdict.residual,
            parked = verdict.parked, "attribution probe: gang");
    }
}
