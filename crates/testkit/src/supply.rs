//! Supply: `m1 Configured a cpu=4 $1 rack=r1 own=web`, one machine or a range of them.

use crate::{
    Fixture,
    demand::is_dimension,
    fixture::{cluster_id, number, time},
};
use bigfleet_model::{
    Amounts, Assignment, CapacityType, ClusterId, Dimension, Disruption, Dollars, Fingerprint,
    FleetMachine, Group, Host, Intent, Leaving, Machine, MachineFacts, NeedKey, Price, Shape,
    State, Terms, Time, quantity::parse_supply,
};
use std::sync::Arc;

/// The machines a line stands for.
pub(crate) fn machines(line: &str, fixture: &Fixture) -> Vec<FleetMachine> {
    let mut words = line.split_whitespace();
    let ids = range(words.next().unwrap_or(""), line);
    let word = words.next().unwrap_or("");
    let state = State::ALL.into_iter().find(|state| state.word() == word);
    let state = state.unwrap_or_else(|| panic!("fixture: \"{word}\" is not a state: {line}"));
    let mut tokens = Tokens::new(line, fixture);
    words.for_each(|word| tokens.read(word));
    ids.iter().map(|id| tokens.machine(id, state)).collect()
}

/// `x1..x3` to x1, x2, x3.
fn range(ids: &str, line: &str) -> Vec<String> {
    let Some((first, last)) = ids.split_once("..") else {
        return vec![ids.to_owned()];
    };
    let prefix = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let count = |id: &str| {
        id.strip_prefix(prefix)
            .and_then(|digits| digits.parse::<u32>().ok())
    };
    match (count(first), count(last)) {
        (Some(from), Some(to)) => (from..=to).map(|n| format!("{prefix}{n}")).collect(),
        _ => panic!("fixture: {ids} is not a range: {line}"),
    }
}

/// What the words of a line say.
struct Tokens<'a> {
    line: &'a str,
    fixture: &'a Fixture,
    cluster: Option<&'a str>,
    shape: Shape,
    price: f64,
    chance: f64,
    owner: Option<NeedKey>,
    raw: Option<(Fingerprint, Group)>,
    raw_cluster: Option<&'a str>,
    terms: Terms,
    stamp: Option<i32>,
    interruption: Option<Dollars>,
    reclamation: Option<Dollars>,
    keep_price: Option<Price>,
    idle_since: Option<Time>,
    not_ready: bool,
    unavailable: bool,
    disruption: Option<Disruption>,
    reversible: bool,
    leaving: Option<Leaving>,
}

impl<'a> Tokens<'a> {
    fn new(line: &'a str, fixture: &'a Fixture) -> Self {
        Self {
            line,
            fixture,
            cluster: None,
            shape: Shape::default(),
            price: 0.0,
            chance: 0.0,
            owner: None,
            raw: None,
            raw_cluster: None,
            terms: Terms::default(),
            stamp: None,
            interruption: None,
            reclamation: None,
            keep_price: None,
            idle_since: None,
            not_ready: false,
            unavailable: false,
            disruption: None,
            reversible: false,
            leaving: None,
        }
    }

    fn read(&mut self, word: &'a str) {
        let line = self.line;
        let tier = CapacityType::ALL
            .into_iter()
            .find(|tier| tier.word() == word);
        match (word.split_once('='), tier) {
            (Some((key, value)), _) => self.read_pair(key, value),
            (None, Some(tier)) => self.shape.capacity_type = tier,
            (None, None) => match word {
                "not-ready" => self.not_ready = true,
                "unavailable" => self.unavailable = true,
                "reversible" => self.reversible = true,
                price if price.starts_with('$') => self.price = number(price, line),
                cluster if self.cluster.is_none() => self.cluster = Some(cluster),
                other => panic!("fixture: \"{other}\" says nothing about a machine: {line}"),
            },
        }
    }

    fn read_pair(&mut self, key: &'a str, value: &'a str) {
        let line = self.line;
        let dollars = || Dollars::new(number(value, line)).expect("dollars");
        match key {
            "p" => self.chance = number(value, line),
            "type" => self.shape.instance_type = value.to_owned(),
            "zone" => self.shape.zone = value.to_owned(),
            "stamp" => self.stamp = Some(value.parse().expect("a priority")),
            "ipenalty" => self.interruption = Some(dollars()),
            "penalty" => self.reclamation = Some(dollars()),
            "keep" => self.keep_price = Some(Price::new(number(value, line)).expect("a price")),
            "disruption" => self.disruption = Disruption::new(number(value, line) as i64),
            "leaving" => self.leaving = Some(Leaving::from_word(value).expect("soon or now")),
            "idle-since" => self.idle_since = Some(time(value, line)),
            "own" => self.own(value),
            "own-raw" => {
                let (fingerprint, group) = value.rsplit_once(',').unwrap_or((value, ""));
                self.raw = Some((Fingerprint::new(fingerprint), Group::new(group)));
            }
            "for" => self.raw_cluster = Some(value),
            dimension if is_dimension(dimension) => self.resource(false, dimension, value),
            key => match (key.strip_prefix("alloc:"), key.strip_prefix("label:")) {
                (Some(dimension), _) => self.resource(true, dimension, value),
                (None, label) => {
                    let label = label.unwrap_or(key).to_owned();
                    self.shape.labels.insert(label, value.to_owned());
                }
            },
        }
    }

    fn own(&mut self, called: &str) {
        let need = self.fixture.need(called);
        self.terms = Terms::of(&need.row.profile);
        self.owner = Some(self.fixture.need_key(called));
    }

    fn resource(&mut self, allocatable: bool, dimension: &str, text: &str) {
        let milli = parse_supply(text);
        let milli = milli.unwrap_or_else(|refused| panic!("fixture: {refused}: {}", self.line));
        let dimension = Dimension::new(dimension).expect("a dimension");
        let more = Amounts::from_entries([(dimension, milli.into())]);
        if allocatable {
            let before = self.shape.allocatable.take().unwrap_or_default();
            self.shape.allocatable = Some(before.add(&more));
        } else {
            self.shape.resources = self.shape.resources.add(&more)
        }
    }

    fn terms(&self) -> Terms {
        Terms {
            priority: self.stamp.unwrap_or(self.terms.priority),
            interruption: self.interruption.unwrap_or(self.terms.interruption),
            reclamation: self.reclamation.unwrap_or(self.terms.reclamation),
        }
    }

    /// The Need the machine is committed to.
    fn need(&self) -> Option<NeedKey> {
        let (fingerprint, group) = match (&self.owner, &self.raw) {
            (Some(owner), _) => return Some(owner.clone()),
            (None, Some(raw)) => raw.clone(),
            (None, None) => return None,
        };
        let cluster: ClusterId =
            cluster_id(self.raw_cluster.or(self.cluster).unwrap_or(""), self.line);
        Some(NeedKey {
            cluster,
            fingerprint,
            group,
        })
    }

    fn machine(&self, id: &str, state: State) -> FleetMachine {
        let mut facts = MachineFacts::new(id, state);
        facts.shape = Arc::new(self.shape.clone());
        facts.price_per_hour = self.price;
        facts.interruption_probability = self.chance;
        facts.cluster = self.cluster.unwrap_or("").to_owned();
        match state {
            State::Speculative => {}
            State::Creating => facts.cluster.clear(),
            State::Failed => facts.last_error = "failed".to_owned(),
            State::Idle | State::Configuring | State::Configured => facts.host = host(id),
            State::Draining | State::Deleting => facts.host = host(id),
        }
        self.commit(&mut facts, state);
        let machine = Machine::new(facts);
        FleetMachine {
            idle_since: self.idle_since,
            not_ready: self.not_ready,
            unavailable: self.unavailable,
            disruption: self.disruption,
            reversible: self.reversible,
            leaving: self.leaving,
            ..machine
                .unwrap_or_else(|refused| panic!("fixture: {refused}: {}", self.line))
                .into()
        }
    }

    /// The commitment: an intent where the state has one, else an assignment.
    fn commit(&self, facts: &mut MachineFacts, state: State) {
        let (terms, keep_price) = (self.terms(), self.keep_price);
        let need = self.need();
        if state.may_hold_intent() && need.is_some() {
            facts.intent = need.map(|need| Intent {
                need,
                terms,
                keep_price,
            });
            return;
        }
        let stated = need.is_some() || terms != Terms::default() || keep_price.is_some();
        assert!(
            !stated || !facts.cluster.is_empty(),
            "fixture: a machine without a cluster stands on no terms: {}",
            self.line
        );
        let (fingerprint, group) = match need {
            None => Default::default(),
            Some(need) => {
                assert_eq!(
                    need.cluster.as_str(),
                    facts.cluster,
                    "fixture: {}",
                    self.line
                );
                (need.fingerprint, need.group)
            }
        };
        facts.assignment = Assignment {
            terms,
            fingerprint,
            group,
            keep_price,
        };
    }
}

fn host(id: &str) -> Host {
    Host {
        provider: "p".to_owned(),
        reference: format!("h-{id}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::fleet;
    use bigfleet_model::{CapacityType, State};

    #[test]
    fn every_state_can_be_written() {
        for state in State::ALL {
            let line = format!("m1 {state} a cpu=4 rack=r1 $2 p=0.5 Spot");
            let machine = &fleet(&line).machines["m1"].machine;
            assert_eq!(machine.state(), state);
            assert_eq!(machine.shape().capacity_type, CapacityType::Spot);
            assert_eq!(machine.shape().resources.get("cpu"), 4000);
            assert_eq!(machine.price().dollars_per_hour(), 2.0);
        }
    }

    #[test]
    fn commitments_by_text_and_marks() {
        let fleet = fleet(
            "d1 Draining b cpu=4 own-raw=f,g for=a penalty=$8 keep=$3
             m1 Configured a alloc:cpu=3 cpu=4 own-raw=f not-ready unavailable
             i1 Idle idle-since=900 label:gpu=x",
        );
        let d1 = &fleet.machines["d1"].machine;
        assert_eq!(d1.attribution().unwrap().to_string(), "a/f/g");
        assert_eq!(d1.keep_price().dollars_per_hour(), 3.0);
        let m1 = &fleet.machines["m1"];
        assert_eq!(m1.machine.attribution().unwrap().to_string(), "a/f");
        assert_eq!(m1.machine.shape().effective().get("cpu"), 3000);
        assert!(m1.not_ready && m1.unavailable);
        assert_eq!(fleet.machines["i1"].idle_since.unwrap().seconds(), 900.0);
        assert_eq!(fleet.machines["i1"].machine.shape().labels["gpu"], "x");
    }

    #[test]
    #[should_panic(expected = "is not a state")]
    fn an_unknown_state_is_refused() {
        fleet("m1 Confgured a");
    }

    #[test]
    #[should_panic(expected = "needs a cluster")]
    fn the_grid_holds_for_fixtures_too() {
        fleet("m1 Configured cpu=4");
    }

    #[test]
    #[should_panic(expected = "is there already")]
    fn a_machine_is_written_once() {
        fleet("m1..m2 Idle\n m2 Idle");
    }
}
