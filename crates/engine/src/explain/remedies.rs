//! Remedies: what would change what a Need gets, each tried by deciding.
//!
//! ```text
//! explanation ─▶ edits that might help ─▶ each applied to the loaded fleet, decided, taken back ─▶ mark
//! ```
//!
//! One loaded fleet serves all edits: one is applied, the engine decides on what changed, and what was
//! before is put back. A mark is the engine's word, so deciding on the edited fleet says the same.

use super::{Explainer, Explanation, Fate, Outranks, VictimFate, folded_key};
use bigfleet_model::{
    Amounts, Dimension, FleetMachine, Machine, MachineFacts, Need, NeedKey, Profile, Requirement,
    Row, Spread, State, WhenUnsatisfiable, ZONE_KEY,
};
use std::{collections::BTreeMap, sync::Arc};

/// Requirements and spreads of a Need that are tried without, each.
const MOST_TRIED: usize = 6;
/// Rows that one edit changes at most: those that folded to the Need.
const MOST_ROWS: usize = 16;

/// Something that could be edited.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// The row asks for this much.
    Aggregate(Amounts),
    /// It accepts machines as small as this.
    MinUnit(Amounts),
    /// The gang agrees on this key instead.
    SameKey(String),
    /// It does without the requirement at this place.
    Drop(usize),
    /// The hard spread at this place becomes a wish.
    Soften(usize),
    /// It has this priority.
    Priority(i32),
    /// There is one more machine.
    Machine(Box<FleetMachine>),
}

/// What an edit brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The Need is covered.
    Served,
    /// Less of it is missing.
    Better,
    /// Nothing.
    NoUse,
}

impl Mark {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Better => "better",
            Self::NoUse => "no use",
        }
    }
}

/// An edit that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// What was edited.
    pub edit: Edit,
    /// The rows it edits, as they are: one, or those that folded to the Need; none for a machine.
    pub rows: Vec<Need>,
    /// What it brings.
    pub mark: Mark,
}

impl Edit {
    /// The row as the edit makes it; `None` if it is not about rows, or does not apply.
    pub fn apply(&self, need: &Need) -> Option<Need> {
        let (row, profile) = (&need.row, &need.row.profile);
        let with = |requirements: Vec<Requirement>, spread: Vec<Spread>, priority: i32| Row {
            profile: Arc::new(Profile::new(
                requirements,
                spread,
                priority,
                profile.interruption(),
                profile.reclamation(),
            )),
            ..row.clone()
        };
        let requirements = || profile.requirements().to_vec();
        let spread = || profile.spread().to_vec();
        let row = match self {
            Self::Aggregate(aggregate) => Row {
                aggregate: aggregate.clone(),
                ..row.clone()
            },
            Self::MinUnit(min_unit) => Row {
                min_unit: min_unit.clone(),
                ..row.clone()
            },
            Self::SameKey(key) => {
                let mut changed = requirements();
                let same = changed.iter_mut().find(|one| is_same(one))?;
                *same = Requirement::new(key.clone(), same.operator(), Vec::new())?;
                with(changed, spread(), profile.priority())
            }
            Self::Drop(at) => {
                let mut changed = requirements();
                (*at < changed.len()).then(|| changed.remove(*at))?;
                with(changed, spread(), profile.priority())
            }
            Self::Soften(at) => {
                let mut changed = spread();
                let one = changed.get_mut(*at)?;
                let soft = WhenUnsatisfiable::ScheduleAnyway;
                *one = Spread::new(one.topology_key().to_owned(), one.max_skew(), soft)?;
                with(requirements(), changed, profile.priority())
            }
            Self::Priority(priority) => with(requirements(), spread(), *priority),
            Self::Machine(_) => return None,
        };
        Some(Need {
            row,
            parked: false, // another row, or another fleet, is tried afresh
            ..need.clone()
        })
    }
}

fn is_same(requirement: &Requirement) -> bool {
    requirement.operator() == bigfleet_model::Operator::Same
}

/// Whether a machine of this fate fits the Need, whoever has it.
fn fits(fate: &Fate) -> bool {
    !matches!(
        fate,
        Fate::Requirement(..) | Fate::BelowMinUnit { .. } | Fate::OffersNothing | Fate::NoDomain(_)
    )
}

impl Explainer<'_> {
    /// What would change what an explained Need gets; nothing for one that is covered, or will be by what is
    /// preempted for it. Each is tried, on the fleet that is loaded.
    pub fn remedies(&mut self, explained: &Explanation) -> Vec<Remedy> {
        let verdict = &explained.verdict;
        let before = verdict.residual.sub(&verdict.capacity_freed);
        if verdict.satisfied || before.is_zero() {
            return Vec::new();
        }
        let key = verdict.need.key();
        let rows = self.rows_of(&key);
        let edits = self.edits(explained, &rows);
        let tried = edits.into_iter().filter_map(|edit| {
            let left = self.attempt(&edit, &rows)?;
            let mark = if left.is_zero() {
                Mark::Served
            } else if left != before && before.covers(&left) {
                Mark::Better
            } else {
                Mark::NoUse
            };
            let rows = match edit {
                Edit::Machine(_) => rows.iter().filter(|row| row.parked).cloned().collect(),
                _ => rows.clone(),
            };
            Some(Remedy { edit, rows, mark })
        });
        let tried = tried.collect();
        // Rows that were put back have other places now.
        self.engine.decide_full(self.fleet.now);
        self.order = self.engine.tables.needs_in_order();
        tried
    }

    /// The rows behind a Need: itself, or the gangs that folded to it.
    fn rows_of(&self, key: &NeedKey) -> Vec<Need> {
        let cluster = self.fleet.clusters.get(&key.cluster);
        let rows = cluster.into_iter().flat_map(|cluster| cluster.needs());
        let is_it = |row: &&Need| {
            row.key() == *key || (row.row.profile.same_key().is_some() && folded_key(row) == *key)
        };
        rows.filter(is_it).cloned().collect()
    }

    /// Edits that might help, the smallest first.
    fn edits(&self, explained: &Explanation, rows: &[Need]) -> Vec<Edit> {
        let mut edits = Vec::new();
        let verdict = &explained.verdict;
        if let [row] = rows {
            let covered = row.row.aggregate.sub(&verdict.residual);
            let covered = if covered.is_zero() {
                let best = verdict.same_candidates.first();
                best.map_or(covered, |best| {
                    part(&row.row.aggregate, best.coverage_per_mille)
                })
            } else {
                covered
            };
            if !covered.is_zero() && covered != row.row.aggregate {
                edits.push(Edit::Aggregate(covered));
            }
        }
        if let Some(row) = rows.first().filter(|_| rows.len() <= MOST_ROWS) {
            edits.extend(smaller_unit(explained, &row.row.min_unit).map(Edit::MinUnit));
            edits.extend(edits_of_profile(explained, &row.row.profile));
        }
        edits.extend(self.one_more(explained).map(Box::new).map(Edit::Machine));
        edits
    }

    /// One more machine like the one that has most of what is missing.
    fn one_more(&self, explained: &Explanation) -> Option<FleetMachine> {
        let missing = &explained.verdict.residual;
        let (dimension, _) = missing.iter().next()?;
        let fitting = explained.machines.iter().filter(|alike| fits(&alike.fate));
        let domain = explained.choice.as_ref();
        let is_outside = |fate: &Fate| domain.is_some() && *fate == Fate::OutsideDomain;
        let best = fitting.max_by(|one, other| {
            let has = |alike: &super::Alike| alike.kind.offers.get(dimension.as_str());
            is_outside(&other.fate)
                .cmp(&is_outside(&one.fate))
                .then_with(|| has(one).cmp(&has(other)))
                .then_with(|| other.machines.cmp(&one.machines))
        })?;
        let like = &self.fleet.machines.get(best.machines.first()?)?.machine;
        let id = (1..).map(|number| format!("one-more-{number}"));
        let is_free = |id: &String| {
            let known = self.fleet.machines.keys();
            known.map(|known| known.as_str()).all(|known| known != id)
        };
        let facts = MachineFacts {
            shape: Arc::clone(like.shape()),
            price_per_hour: like.price().dollars_per_hour(),
            interruption_probability: like.interruption().per_hour(),
            ..MachineFacts::new(&id.into_iter().find(is_free)?, State::Speculative)
        };
        Some(FleetMachine {
            machine: Machine::new(facts).ok()?,
            idle_since: None,
            not_ready: false,
            unavailable: false,
            disruption: None,
            reversible: false,
            leaving: None,
        })
    }

    /// What is missing with an edit; `None` if it cannot be made.
    fn attempt(&mut self, edit: &Edit, rows: &[Need]) -> Option<Amounts> {
        let mut edited = Vec::with_capacity(rows.len());
        for row in rows {
            edited.push(match edit {
                Edit::Machine(_) => Need {
                    parked: false,
                    ..row.clone()
                },
                edit => edit.apply(row)?,
            });
        }
        // A row that becomes the equal of another would be summed up with it.
        let cluster = self.fleet.clusters.get(&rows.first()?.cluster)?;
        let is_taken = |key: &NeedKey| {
            let others = cluster.needs().iter();
            let mut others = others.filter(|other| !rows.contains(other));
            others.any(|other| other.key() == *key)
        };
        if edited.iter().any(|row| is_taken(&row.key())) {
            return None;
        }
        for row in rows {
            self.engine.remove_row(row);
        }
        for row in &edited {
            self.engine.put_row(row);
        }
        if let Edit::Machine(machine) = edit {
            self.engine.put_machine(machine);
        }
        self.engine.decide(self.fleet.now);
        let left = self.left(&edited);
        if let Edit::Machine(machine) = edit {
            self.engine.remove_machine(machine.machine.id());
        }
        for row in &edited {
            self.engine.remove_row(row);
        }
        for row in rows {
            self.engine.put_row(row);
        }
        Some(left)
    }

    /// What the last decision leaves missing of these rows, after what is preempted for them.
    fn left(&self, rows: &[Need]) -> Amounts {
        let mut keys: Vec<NeedKey> = rows.iter().map(Need::key).collect();
        let gangs = rows
            .iter()
            .filter(|row| row.row.profile.same_key().is_some());
        keys.extend(gangs.map(folded_key));
        keys.sort();
        keys.dedup();
        let super::Engine { tables, outcome } = &self.engine;
        let slots = keys.iter().filter_map(|key| tables.find_slot(key));
        let needs = slots.flat_map(|slot| {
            let slot = &tables.slots[slot];
            let folded = slot
                .classes
                .iter()
                .map(|class| tables.classes[*class].folded);
            slot.rows.iter().copied().chain(folded).collect::<Vec<_>>()
        });
        let live = needs.filter(|need| tables.need(*need).is_live());
        live.fold(Amounts::NONE, |sum, need| {
            let verdict = tables.verdict(need, outcome);
            sum.add(&verdict.residual.sub(&verdict.capacity_freed))
        })
    }
}

/// So many thousandths.
fn part(of: &Amounts, per_mille: u32) -> Amounts {
    let part = |(name, milli): (&Dimension, i128)| {
        let part = milli.saturating_mul(per_mille.into()) / 1000;
        (name.clone(), part / 1000 * 1000) // whole units
    };
    Amounts::from_entries(of.iter().map(part))
}

/// The smallest unit lowered to the largest machine that is otherwise fit, if none is large enough.
fn smaller_unit(explained: &Explanation, unit: &Amounts) -> Option<Amounts> {
    let mut largest: BTreeMap<&Dimension, i128> = BTreeMap::new();
    for alike in &explained.machines {
        match &alike.fate {
            Fate::BelowMinUnit { dimension, has, .. } if 0 < *has => {
                let known = largest.entry(dimension).or_default();
                *known = (*known).max(*has);
            }
            fate if fits(fate) => return None,
            _ => {}
        }
    }
    let (dimension, has) = largest.into_iter().next()?;
    let lowered = |(name, milli): (&Dimension, i128)| {
        let milli = if name == dimension {
            milli.min(has)
        } else {
            milli
        };
        (name.clone(), milli)
    };
    Some(Amounts::from_entries(unit.iter().map(lowered)))
}

fn edits_of_profile(explained: &Explanation, profile: &Profile) -> Vec<Edit> {
    let mut edits = Vec::new();
    let is_gang = profile.same_key().is_some();
    if is_gang && profile.same_key() != Some(ZONE_KEY) {
        edits.push(Edit::SameKey(ZONE_KEY.to_owned()));
    }
    let requirements = profile.requirements().iter().enumerate();
    edits.extend(requirements.take(MOST_TRIED).map(|(at, _)| Edit::Drop(at)));
    let spreads = profile.spread().iter().enumerate();
    let hard = spreads.filter(|(_, one)| one.when() == WhenUnsatisfiable::DoNotSchedule);
    edits.extend(hard.take(MOST_TRIED).map(|(at, _)| Edit::Soften(at)));
    edits.extend(above_holders(explained, profile.priority()).map(Edit::Priority));
    edits
}

/// The priority just above whoever holds machines it could use; `None` if nobody of a higher or equal one
/// does: then no priority helps.
fn above_holders(explained: &Explanation, own: i32) -> Option<i32> {
    let victims = explained.preemption.iter().flat_map(|one| &one.victims);
    let held = victims.filter(|victim| victim.fate == VictimFate::NotOutranked);
    let held = held.map(|victim| victim.standing);
    let ahead = explained.ahead.iter().filter(|ahead| 0 < ahead.holds);
    let ahead = ahead.map(|ahead| match ahead.by {
        Outranks::Priority(theirs, _) => theirs,
        _ => own,
    });
    let highest = held.chain(ahead).max()?;
    highest.checked_add(1).filter(|above| own < *above)
}
