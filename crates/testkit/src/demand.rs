//! Demand: `need a cpu=16 min:cpu=4 prio=100 rack=Same`, one row of a cluster.

use crate::fixture::{cluster_id, number, time};
use bigfleet_model::{
    Bucket, INSTANCE_TYPE_KEY, Need, Operator, RequirementFacts, RowFacts, SpreadFacts,
    WhenUnsatisfiable, ZONE_KEY,
};

/// Resource dimensions; any other key is an attribute.
const DIMENSIONS: [&str; 7] = [
    "cpu",
    "memory",
    "gpu",
    "disk",
    "pods",
    "ephemeral-storage",
    "nvidia.com/gpu",
];

pub(crate) fn is_dimension(key: &str) -> bool {
    DIMENSIONS.contains(&key)
}

/// The short words for the two attributes with long names.
pub(crate) fn attribute(key: &str) -> &str {
    match key {
        "type" => INSTANCE_TYPE_KEY,
        "zone" => ZONE_KEY,
        other => other,
    }
}

/// A line, and what the fixture calls it.
pub(crate) struct NeedLine {
    pub(crate) name: Option<String>,
    pub(crate) need: Need,
}

impl NeedLine {
    /// Reads the words after `need`.
    pub(crate) fn read<'a>(mut words: impl Iterator<Item = &'a str>, line: &str) -> Self {
        let cluster = cluster_id(words.next().unwrap_or(""), line);
        let mut facts = RowFacts {
            interruption_bucket: 1,
            reclamation_bucket: 1,
            ..RowFacts::default()
        };
        let (mut name, mut arrival, mut parked) = (None, None, false);
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match (key, value) {
                ("parked", "") => parked = true,
                ("whole", "") => facts.whole_units = true,
                ("arrival", value) => arrival = Some(time(value, line)),
                (key, "") => match key.strip_prefix("name:") {
                    Some(called) => name = Some(called.to_owned()),
                    None => panic!("fixture: a need cannot be {key}: {line}"),
                },
                (key, value) => read_fact(&mut facts, key, value, line),
            }
        }
        let row = facts
            .check()
            .unwrap_or_else(|problems| panic!("fixture: {problems:?}: {line}"));
        let need = Need {
            cluster,
            row,
            arrival,
            parked,
        };
        Self { name, need }
    }
}

fn read_fact(facts: &mut RowFacts, key: &str, value: &str, line: &str) {
    let whole = |text: &str| number(text, line) as i64;
    let bucket = |text: &str| i64::from(Bucket::of(number(text, line)).number());
    let quantity = || value.to_owned();
    match key {
        "prio" => facts.priority = value.parse().expect("a priority"),
        "ib" => facts.interruption_bucket = whole(value),
        "rb" => facts.reclamation_bucket = whole(value),
        "ipenalty" => facts.interruption_bucket = bucket(value),
        "penalty" => facts.reclamation_bucket = bucket(value),
        "group" => facts.group = value.to_owned(),
        "spread" => facts.spread.push(spread(value, line)),
        key => match (requirement(key, value), key.strip_prefix("min:")) {
            (Some(requirement), _) => facts.requirements.push(requirement),
            (None, Some(dimension)) => {
                facts.min_unit.insert(dimension.to_owned(), quantity());
            }
            (None, None) if is_dimension(key) => {
                facts.aggregate.insert(key.to_owned(), quantity());
            }
            (None, None) => panic!("fixture: {key}={value} says nothing about a need: {line}"),
        },
    }
}

/// `In(a,b)`, `Same`, `Same(r1)` and so on; `None` if the value is not of that form.
fn requirement(key: &str, value: &str) -> Option<RequirementFacts> {
    let (word, values) = match value.split_once('(') {
        Some((word, rest)) => (word, rest.strip_suffix(')')?),
        None => (value, ""),
    };
    let operator = Operator::ALL
        .into_iter()
        .find(|operator| operator.word() == word)?;
    let values = values
        .split(',')
        .filter(|value| !value.is_empty())
        .map(str::to_owned);
    Some(RequirementFacts {
        key: attribute(key).to_owned(),
        operator: Ok(operator),
        values: values.collect(),
    })
}

/// `zone/1`, `zone/2/soft`.
fn spread(value: &str, line: &str) -> SpreadFacts {
    let (value, when) = match value.strip_suffix("/soft") {
        Some(value) => (value, WhenUnsatisfiable::ScheduleAnyway),
        None => (value, WhenUnsatisfiable::DoNotSchedule),
    };
    let (key, skew) = value.rsplit_once('/').unwrap_or((value, "1"));
    SpreadFacts {
        topology_key: attribute(key).to_owned(),
        max_skew: number(skew, line) as i64,
        when,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Need {
        NeedLine::read(line.split_whitespace(), line).need
    }

    #[test]
    fn a_need_is_read_whole() {
        let need = read("a cpu=6 memory=16Gi rack=Same gpu=NotIn(x) tier=DoesNotExist ib=5 parked");
        assert_eq!(
            need.row.profile.fingerprint().as_str(),
            "p=0|ipb=5|rpb=1|reqs=gpu:2:x;rack:5:;tier:4:;|spr="
        );
        assert_eq!(need.row.aggregate.key(), "cpu=6000;memory=17179869184000;");
        assert!(need.parked);
        let spread = read("a cpu=1 spread=zone/1 penalty=$3");
        assert_eq!(spread.row.profile.hard_spreads().count(), 1);
        assert_eq!(spread.row.profile.reclamation().number(), 5);
    }

    #[test]
    #[should_panic(expected = "says nothing about a need")]
    fn a_word_that_means_nothing_is_refused() {
        read("a cpus=4");
    }

    #[test]
    #[should_panic(expected = "1x")]
    fn a_bad_quantity_is_refused() {
        read("a cpu=1x");
    }
}
