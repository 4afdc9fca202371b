//! Fixture: a fleet written as lines of text.
//!
//! Two walks: demand first, so that a machine may say which Need it is `own=` of wherever its line
//! stands.

use crate::{demand::NeedLine, supply};
use bigfleet_model::{Cluster, ClusterId, Fleet, Group, Holds, Need, NeedKey, Row, Time};
use std::{collections::BTreeMap, time::Duration};

/// The fleet these lines describe.
///
/// | Line | Means |
/// |---|---|
/// | `now 1000` | the moment of the decision |
/// | `holds OnDemand=600 Spot=never` | how long machines may stay idle; a tier not named keeps its default |
/// | `cluster b not-ready no-acquire` | a cluster that has reported, unless it says otherwise |
/// | `need a …` | a row of cluster `a`, which has thereby reported |
/// | `m1 Configured a …` | a machine; `m1..m3` stands for m1, m2, m3 |
///
/// | Token of a need | Means |
/// |---|---|
/// | `name:web` | what `own=` and the lines of an outcome call it |
/// | `cpu=16`, `min:cpu=4` | aggregate and smallest unit, in any dimension |
/// | `prio=100`, `arrival=9`, `group=g1`, `parked` | as they say; all absent by default |
/// | `whole` | it asks for whole units |
/// | `ib=5`, `rb=6` or `ipenalty=$3`, `penalty=$8` | interruption and reclamation bucket; 1 by default |
/// | `rack=Same`, `zone=In(a,b)`, `type=NotIn(x)`, `k=Exists`, `k=DoesNotExist` | requirements |
/// | `spread=zone/1`, `spread=zone/2/soft` | DoNotSchedule, ScheduleAnyway |
///
/// | Token of a machine | Means |
/// |---|---|
/// | `cpu=4 memory=16Gi`, `alloc:cpu=3` | resources, allocatable |
/// | `$1.5`, `p=0.05`, `Spot` | price, interruption probability, capacity type |
/// | `type=m5.large`, `zone=z1`, `rack=r1` | instance type, zone; anything else is a label |
/// | `own=web`, `own=fold:web` | committed to that Need or to its folded form, on its terms |
/// | `own-raw=<fingerprint>,<group>` | committed to a Need by text; `for=b` names another cluster |
/// | `stamp=100`, `ipenalty=$2`, `penalty=$8`, `keep=$2` | the terms, where they are others |
/// | `not-ready`, `unavailable`, `idle-since=900` | as they say |
/// | `disruption=3`, `reversible` | what draining it would disturb; its drain can be taken back |
/// | `leaving=soon`, `leaving=now` | it is to leave |
///
/// A Need is called by its name, or by its cluster where it is the only one there, or by
/// `cluster/group`. `type` and `zone` mean the Kubernetes keys. Hosts are filled in.
///
/// # Panics
///
/// If a line cannot be read; the message quotes it.
pub fn fleet(text: &str) -> Fleet {
    Fixture::read(text).fleet
}

/// A fleet with the names its text gave the Needs.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// The fleet.
    pub fleet: Fleet,
    named: Vec<(Option<String>, Need)>,
}

impl Fixture {
    /// Reads the text; see [`fleet`].
    pub fn read(text: &str) -> Self {
        let lines = || {
            let bare = text
                .lines()
                .map(|line| line.split('#').next().unwrap_or("").trim());
            bare.filter(|line| !line.is_empty())
        };
        let mut fixture = Self {
            fleet: Fleet::default(),
            named: Vec::new(),
        };
        let mut flags = BTreeMap::new();
        for line in lines() {
            fixture.read_demand(line, &mut flags);
        }
        fixture.form_clusters(&flags);
        for line in lines().filter(|line| !is_demand(line)) {
            for machine in supply::machines(line, &fixture) {
                let id = machine.machine.id().clone();
                let twice = fixture.fleet.machines.insert(id, machine).is_some();
                assert!(
                    !twice,
                    "fixture: a machine of this line is there already: {line}"
                );
            }
        }
        fixture
    }

    fn read_demand(&mut self, line: &str, flags: &mut BTreeMap<ClusterId, (bool, bool)>) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("now") => self.fleet.now = time(words.next().unwrap_or(""), line),
            Some("holds") => words.for_each(|word| read_hold(&mut self.fleet.holds, word, line)),
            Some("cluster") => {
                let id = cluster_id(words.next().unwrap_or(""), line);
                let (ready, acquire) = flags.entry(id).or_insert((true, true));
                for word in words {
                    match word {
                        "not-ready" => *ready = false,
                        "no-acquire" => *acquire = false,
                        other => panic!("fixture: a cluster cannot be {other}: {line}"),
                    }
                }
            }
            Some("need") => {
                let NeedLine { name, need } = NeedLine::read(words, line);
                flags.entry(need.cluster.clone()).or_insert((true, true));
                self.named.push((name, need));
            }
            _ => {}
        }
    }

    fn form_clusters(&mut self, flags: &BTreeMap<ClusterId, (bool, bool)>) {
        for (id, (ready, acquire)) in flags {
            let own = self.named.iter().filter(|(_, need)| need.cluster == *id);
            let rows = own.map(|(_, need)| (need.row.clone(), need.arrival, need.parked));
            let mut cluster = Cluster::new(id, rows).expect("sums of a fixture can be counted");
            cluster.ready = *ready;
            cluster.acquire = *acquire;
            self.fleet.clusters.insert(id.clone(), cluster);
        }
    }

    /// The Need called so: `web`, `a`, `a/g1`, or one of these with `fold:` before the last part.
    ///
    /// # Panics
    ///
    /// If there is not exactly one.
    pub fn need(&self, called: &str) -> &Need {
        let plain = called.replacen("fold:", "", 1);
        let by_name = |(name, _): &&(Option<String>, Need)| name.as_deref() == Some(&plain);
        let by_place = |(name, need): &&(Option<String>, Need)| {
            let cluster = need.cluster.as_str();
            let last = |part: &str| plain == format!("{cluster}/{part}");
            let group = need.row.group.as_str();
            plain == cluster || last(group) || name.as_deref().is_some_and(last) || plain == group
        };
        let named: Vec<_> = self.named.iter().filter(by_name).collect();
        let placed: Vec<_> = self.named.iter().filter(by_place).collect();
        match (named.as_slice(), placed.as_slice()) {
            ([(_, need)], _) | ([], [(_, need)]) => need,
            ([], []) => panic!("fixture: no need is called {called}"),
            _ => panic!("fixture: several needs are called {called}"),
        }
    }

    /// The identity of the Need called so; of its folded form (RF-12) where the call says `fold:`.
    pub fn need_key(&self, called: &str) -> NeedKey {
        let need = self.need(called);
        if called.contains("fold:") {
            folded_key(need)
        } else {
            need.key()
        }
    }
}

/// The identity of the row a gang folds to (RF-12), as it is once rows are merged.
pub(crate) fn folded_key(need: &Need) -> NeedKey {
    let rows = Row::merge([need.row.clone()]).expect("sums of a fixture can be counted");
    let aggregate = rows.first().map(|row| row.aggregate.key());
    NeedKey {
        cluster: need.cluster.clone(),
        fingerprint: need.row.profile.folded().fingerprint().clone(),
        group: Group::new(&format!("fold:{}", aggregate.unwrap_or_default())),
    }
}

fn is_demand(line: &str) -> bool {
    let head = line.split_whitespace().next();
    matches!(head, Some("now" | "holds" | "cluster" | "need"))
}

fn read_hold(holds: &mut Holds, word: &str, line: &str) {
    let (tier, text) = word.split_once('=').unwrap_or((word, ""));
    let hold = match text {
        "never" => None,
        seconds => Some(Duration::from_secs_f64(number(seconds, line))),
    };
    match tier {
        "OnDemand" => holds.on_demand = hold,
        "Spot" => holds.spot = hold,
        other => panic!("fixture: {other} is never released: {line}"),
    }
}

pub(crate) fn number(text: &str, line: &str) -> f64 {
    let parsed = text.trim_start_matches('$').parse();
    parsed.unwrap_or_else(|_| panic!("fixture: \"{text}\" is not a number: {line}"))
}

pub(crate) fn time(text: &str, line: &str) -> Time {
    Time::from_seconds(number(text, line)).expect("a finite time")
}

pub(crate) fn cluster_id(text: &str, line: &str) -> ClusterId {
    ClusterId::new(text).unwrap_or_else(|refused| panic!("fixture: {refused}: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{Dollars, State, Terms, ZONE_KEY};

    #[test]
    fn a_fleet_is_read_whole() {
        let fleet = fleet(
            "now 1000            # a comment
             holds Spot=never
             cluster b not-ready no-acquire
             need a name:web cpu=16 min:cpu=4 prio=100 rb=6 zone=In(z2,z1) spread=zone/2/soft
             x1..x3 Configured a cpu=4 memory=1Gi $1.5 zone=z1 rack=r1 Spot own=web
             k1 Creating cpu=4 own=web stamp=7",
        );
        assert_eq!(fleet.now.seconds(), 1000.0);
        assert_eq!(
            (fleet.holds.on_demand, fleet.holds.spot),
            (Holds::default().on_demand, None)
        );
        assert!(!fleet.clusters["b"].ready && !fleet.clusters["b"].acquire);
        let need = &fleet.clusters["a"].needs()[0];
        assert_eq!(need.row.min_unit.get("cpu"), 4000);
        assert_eq!(need.row.profile.requirements()[0].key(), ZONE_KEY);
        assert_eq!(need.row.profile.hard_spreads().count(), 0);
        let ids: Vec<_> = fleet.machines.keys().map(|id| id.as_str()).collect();
        assert_eq!(ids, ["k1", "x1", "x2", "x3"]);
        let x2 = &fleet.machines["x2"].machine;
        assert_eq!(
            (x2.state(), x2.attribution()),
            (State::Configured, Some(need.key()))
        );
        assert_eq!(x2.terms(), Terms::of(&need.row.profile));
        assert_eq!(x2.shape().labels["rack"], "r1");
        let k1 = &fleet.machines["k1"].machine;
        assert_eq!(k1.attribution(), Some(need.key()));
        assert_eq!(
            (k1.terms().priority, k1.terms().reclamation),
            (7, Dollars::new(8.0).unwrap())
        );
    }

    #[test]
    fn a_machine_may_be_own_of_a_folded_form() {
        let fixture = Fixture::read(
            "need a group=g1 cpu=20 rack=Same
             s1 Creating cpu=32 rack=r1 own=fold:g1",
        );
        let key = fixture.need_key("a/fold:g1");
        assert_eq!(key.group.as_str(), "fold:cpu=20000;");
        assert!(key.fingerprint.as_str().ends_with("|reqs=rack:3:;|spr="));
        assert_eq!(
            fixture.fleet.machines["s1"].machine.attribution(),
            Some(key)
        );
    }

    #[test]
    #[should_panic(expected = "no need is called other")]
    fn an_owner_that_is_not_there_is_named() {
        fleet("m1 Configured a own=other");
    }

    #[test]
    #[should_panic(expected = "several needs are called a")]
    fn an_ambiguous_owner_is_refused() {
        fleet("need a cpu=1\n need a cpu=1 prio=2\n m1 Configured a own=a");
    }
}
