//! Machines: in every state, mostly committed to rows that are there.

use super::{Generator, rows::halved};
use crate::fixture::folded_key;
use bigfleet_model::{
    Amounts, Assignment, ClusterId, Disruption, Dollars, Fingerprint, Fleet, FleetMachine, Group,
    Host, Intent, Machine, MachineFacts, Need, NeedKey, Price, Shape, State, Terms, Time,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

impl Generator {
    /// A machine that is not in the fleet yet.
    pub(super) fn machine(&mut self, fleet: &Fleet) -> FleetMachine {
        use State::*;
        let states = [
            (Speculative, 21),
            (Creating, 9),
            (Idle, 18),
            (Configuring, 8),
            (Configured, 32),
            (Draining, 8),
            (Deleting, 2),
            (Failed, 2),
        ];
        let mut at = self.prng.below(100);
        let found = states.iter().find(|(_, weight)| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        });
        let state = found.map_or(Configured, |(state, _)| *state);
        self.machines_made += 1;
        let mut facts = MachineFacts::new(&format!("m{}", self.machines_made), state);
        facts.shape = Arc::new(self.shape());
        facts.price_per_hour = *self.prng.pick(&self.palette.prices);
        facts.interruption_probability = *self.prng.pick(&self.palette.chances);
        let cluster = self.prng.pick(&self.palette.clusters).clone();
        enter(&mut facts, state, &cluster);
        self.commit(&mut facts, state, fleet);
        let machine = Machine::new(facts).expect("a generated machine passes the grid");
        FleetMachine {
            idle_since: self.idle_since(state, fleet.now),
            not_ready: self.prng.percent(8),
            unavailable: self.prng.percent(8),
            disruption: self.disruption(),
            reversible: self.prng.percent(50),
            leaving: self.marks.draw(),
            machine,
        }
    }

    /// What draining a machine would disturb, few of them so that equals meet; or that it is unknown.
    pub(super) fn disruption(&mut self) -> Option<Disruption> {
        let level = *self.prng.pick(&[0, 0, 1, 2, 5, 15]);
        let told = self.prng.percent(self.palette.told);
        Disruption::new(level).filter(|_| told)
    }

    fn shape(&mut self) -> Shape {
        let mut labels = BTreeMap::new();
        if self.prng.percent(85) {
            let rack = self.prng.pick(&self.palette.racks).to_string();
            labels.insert("rack".to_owned(), rack);
        }
        if self.prng.percent(20) {
            labels.insert("tier".to_owned(), "gold".to_owned());
        }
        let resources = self.prng.pick(&self.palette.sizes).clone();
        let allocatable = match self.prng.below(100) {
            0..1 => Some(Amounts::NONE),
            1..6 => Some(halved(&resources)),
            6..12 => Some(resources.scale(2)),
            _ => None,
        };
        let zone = if self.prng.percent(85) {
            self.prng.pick(&self.palette.zones).to_string()
        } else {
            String::new()
        };
        Shape {
            instance_type: self.prng.pick(&self.palette.types).to_string(),
            zone,
            capacity_type: *self.prng.pick(&self.palette.tiers),
            labels,
            resources,
            allocatable,
        }
    }

    pub(super) fn idle_since(&mut self, state: State, now: Time) -> Option<Time> {
        let ago = Duration::from_secs(*self.prng.pick(&[0, 30, 60, 599, 600, 700]));
        let known = state == State::Idle && self.prng.percent(80);
        known.then(|| now - ago)
    }

    /// Commits the machine to a Need, or to none.
    pub(super) fn commit(&mut self, facts: &mut MachineFacts, state: State, fleet: &Fleet) {
        facts.intent = None;
        facts.assignment = Assignment::default();
        let keep_price = self.keep_price();
        if state.is_bound() && self.prng.percent(85) {
            let cluster = ClusterId::new(&facts.cluster).expect("a bound machine has a cluster");
            let (need, terms) = self.purpose(fleet, Some(&cluster));
            facts.assignment = Assignment {
                terms,
                fingerprint: need.fingerprint,
                group: need.group,
                keep_price,
            };
        }
        let chance = match state {
            State::Creating => 80,
            State::Idle => 30,
            State::Draining => 70,
            _ => 0,
        };
        if self.prng.percent(chance) {
            let (need, terms) = self.purpose(fleet, None);
            facts.intent = Some(Intent {
                need,
                terms,
                keep_price,
            });
        }
    }

    fn keep_price(&mut self) -> Option<Price> {
        let price = *self.prng.pick(&self.palette.prices);
        self.prng
            .percent(60)
            .then(|| Price::new(price).expect("a price"))
    }

    /// A Need to be committed to, of this cluster if one is given: mostly a current row or the form
    /// it folds to, sometimes one that was edited, sometimes one that never was.
    pub(super) fn purpose(
        &mut self,
        fleet: &Fleet,
        cluster: Option<&ClusterId>,
    ) -> (NeedKey, Terms) {
        let clusters = fleet.clusters.iter();
        let rows: Vec<&Need> = clusters
            .filter(|(id, _)| cluster.is_none_or(|wanted| *id == wanted))
            .flat_map(|(_, cluster)| cluster.needs())
            .collect();
        if rows.is_empty() || self.prng.percent(4) {
            let any = self.prng.pick(&self.palette.clusters).clone();
            let key = NeedKey {
                cluster: cluster.cloned().unwrap_or(any),
                fingerprint: Fingerprint::new("p=1|ipb=1|rpb=1|reqs=old:3:;|spr="),
                group: Group::default(),
            };
            return (key, self.terms(Terms::default()));
        }
        let need = *self.prng.pick(&rows);
        let mut key = if need.row.profile.same_key().is_some() && self.prng.percent(35) {
            folded_key(need)
        } else {
            need.key()
        };
        if self.prng.percent(12) {
            // The row's priority was another when the machine was committed to it.
            let constraints = key.fingerprint.constraints().unwrap_or("").to_owned();
            key.fingerprint = Fingerprint::new(&format!("p=7|ipb=1|rpb=1{constraints}"));
        }
        (key, self.terms(Terms::of(&need.row.profile)))
    }

    fn terms(&mut self, usual: Terms) -> Terms {
        if self.prng.percent(80) {
            return usual;
        }
        let dollars = [0.0, 4.0, 8.0, f64::INFINITY].map(|d| Dollars::new(d).expect("dollars"));
        Terms {
            priority: *self.prng.pick(&self.palette.priorities),
            interruption: *self.prng.pick(&dollars),
            reclamation: *self.prng.pick(&dollars),
        }
    }
}

/// Puts the facts into a state: host, cluster and commitment as the grid wants them.
pub(super) fn enter(facts: &mut MachineFacts, state: State, cluster: &ClusterId) {
    facts.state = state.into();
    let host = Host {
        provider: "p".to_owned(),
        reference: format!("h-{}", facts.id),
    };
    facts.last_error.clear();
    match state {
        State::Speculative | State::Creating => {
            facts.host = Host::default();
            facts.cluster.clear();
        }
        State::Idle | State::Deleting => {
            facts.host = host;
            facts.cluster.clear();
        }
        State::Configuring | State::Configured | State::Draining => {
            facts.host = host;
            facts.cluster = cluster.to_string();
        }
        State::Failed => facts.last_error = "boom".to_owned(),
    }
    if !state.may_hold_intent() {
        facts.intent = None;
    }
}
