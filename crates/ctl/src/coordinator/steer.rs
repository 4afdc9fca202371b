//! Steering: who shall have which domain, and which shards there are.

use bigfleet_model::counted;
use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{CoordinatorClient, CoordinatorSource, ownership};
use crate::error::CtlError;
use crate::get::not_found;
use crate::output::{Answer, Form, document};
use crate::record::ShardRecord;
use crate::text::printable;

/// A coordinator that was told something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteeredCoordinator {
    address: String,
}

/// What a verb did, for scripts.
#[derive(Serialize)]
struct SteeredRecord<'a> {
    coordinator: &'a str,
    dry_run: bool,
    message: &'a str,
    notes: &'a [String],
}

impl SteeredCoordinator {
    /// Finds out which replica leads: nothing is asked about one that cannot be told anything.
    pub async fn ask(client: &CoordinatorClient) -> Result<Self, CtlError> {
        client.replicas().await?;
        Ok(Self {
            address: client.target(),
        })
    }

    /// The answer of a verb with the replica it acted on: a line on stderr, or fields of the document.
    pub fn sign(&self, answer: Answer, dry_run: bool, form: &Form) -> Result<Answer, CtlError> {
        let record = SteeredRecord {
            coordinator: &self.address,
            dry_run,
            message: answer.text.trim_end(),
            notes: &answer.notes,
        };
        if let Some(text) = document(&record, form)? {
            return Ok(Answer::of(text));
        }
        let mut answer = answer;
        answer.notes.push(format!("on {self}"));
        Ok(answer)
    }
}

impl std::fmt::Display for SteeredCoordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the coordinator at {}", self.address)
    }
}

/// Changes of who shall have domains, in the order they were named.
#[derive(Clone, Debug, Default)]
pub struct DomainChanges(Vec<wire::DomainChange>);

/// Why a line is no change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangesRefused {
    /// Not `key=value`.
    #[error("\"{}\" is not KEY=VALUE, as in zone=eu-1a", printable(.0))]
    Domain(String),
    /// Not a domain and a shard.
    #[error("line {line}: \"{}\" is not KEY=VALUE SHARD", printable(.text))]
    Line {
        /// Counted from 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// Nothing at all.
    #[error("there is no line with a domain")]
    Empty,
}

impl DomainChanges {
    /// One domain for a shard, or for nobody.
    pub fn one(domain: &str, shard: &str, is_move: bool) -> Result<Self, ChangesRefused> {
        let mut changes = Self::default();
        changes.add(domain, shard, is_move)?;
        Ok(changes)
    }

    /// A line each, `KEY=VALUE SHARD`; what follows a # is for people.
    pub fn read(text: &str, is_move: bool) -> Result<Self, ChangesRefused> {
        let mut changes = Self::default();
        for (nth, text) in text.lines().enumerate() {
            let said = text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = said.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                [domain, shard] => changes.add(domain, shard, is_move)?,
                _ => {
                    let (line, text) = (nth + 1, text.to_owned());
                    return Err(ChangesRefused::Line { line, text });
                }
            }
        }
        if changes.0.is_empty() {
            return Err(ChangesRefused::Empty);
        }
        Ok(changes)
    }

    fn add(&mut self, domain: &str, shard: &str, is_move: bool) -> Result<(), ChangesRefused> {
        let split = domain.split_once('=');
        let split = split.filter(|(key, value)| !key.is_empty() && !value.is_empty());
        let (key, value) = split.ok_or_else(|| ChangesRefused::Domain(domain.to_owned()))?;
        self.0.push(wire::DomainChange {
            topology_key: key.to_owned(),
            topology_value: value.to_owned(),
            shard_id: shard.to_owned(),
            r#move: is_move,
        });
        Ok(())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Changes who shall have domains, or says what that would do.
pub async fn change_domains(
    client: &CoordinatorClient,
    changes: &DomainChanges,
    dry_run: bool,
) -> Result<Answer, CtlError> {
    let request = wire::ChangeDomainsRequest {
        changes: changes.0.clone(),
        dry_run,
    };
    let changed = client.change_domains(&request).await?;
    let mut text = String::new();
    let mut notes = Vec::new();
    match changed.as_slice() {
        [one] => {
            text += &sentence(one, dry_run);
            notes.extend(waits(one));
        }
        many => {
            let differ: Vec<&wire::ChangedDomain> = many
                .iter()
                .filter(|one| one.from_shard_id != one.to_shard_id)
                .collect();
            text.extend(differ.iter().map(|one| difference(one)));
            let verb = if dry_run { "would change" } else { "changed" };
            let same = many.len() - differ.len();
            notes.push(format!(
                "{} {verb}, {same} as they were",
                counted(differ.len(), "domain", "domains")
            ));
            let waiting = differ.iter().filter(|one| waits(one).is_some()).count();
            if 0 < waiting {
                notes.push(format!(
                    "{} let go by another shard first",
                    counted(waiting, "is to be", "are to be")
                ));
            }
        }
    }
    Ok(Answer {
        text,
        notes,
        failed: None,
    })
}

fn name(one: &wire::ChangedDomain) -> String {
    printable(&format!("{}={}", one.topology_key, one.topology_value))
}

fn sentence(one: &wire::ChangedDomain, dry_run: bool) -> String {
    let name = name(one);
    let (from, to) = (&one.from_shard_id, &one.to_shard_id);
    let would = |did: &str, do_it: &str| {
        if dry_run {
            format!("would {do_it}")
        } else {
            did.to_owned()
        }
    };
    let text = match (from.as_str(), to.as_str()) {
        ("", "") => format!("{name} was nobody's"),
        (from, to) if from == to => format!("{name} is {to}'s already"),
        ("", to) => format!("{} {name} to {to}", would("assigned", "assign")),
        (from, "") => format!("{} {name} from {from}", would("unassigned", "unassign")),
        (from, to) => format!("{} {name} from {from} to {to}", would("moved", "move")),
    };
    printable(&text) + "\n"
}

/// As a difference of two lists.
fn difference(one: &wire::ChangedDomain) -> String {
    let name = name(one);
    let line = |sign: char, shard: &str| match shard {
        "" => String::new(),
        shard => format!("{sign} {name} {}\n", printable(shard)),
    };
    line('-', &one.from_shard_id) + &line('+', &one.to_shard_id)
}

/// Who has to let go first.
fn waits(one: &wire::ChangedDomain) -> Option<String> {
    let (holder, to) = (&one.holder_shard_id, &one.to_shard_id);
    let is_waiting = !holder.is_empty() && holder != to;
    is_waiting.then(|| {
        printable(&format!(
            "{holder} has {}={} until it has let go; `bigfleet get domains` shows it",
            one.topology_key, one.topology_value
        ))
    })
}

/// What becomes nobody's with a shard.
struct Left {
    domains: usize,
    clusters: usize,
}

async fn left(client: &CoordinatorClient, shard: &str) -> Result<Left, CtlError> {
    let known = ownership(client).await?;
    let found = known.shards.iter().find(|one| one.id == shard);
    let source = CoordinatorSource::of(client);
    let found = found.ok_or_else(|| not_found::<ShardRecord>(shard, &source))?;
    Ok(Left {
        domains: found.domains,
        clusters: found.clusters,
    })
}

fn removal(shard: &str, left: &Left) -> String {
    format!(
        "shard {}: {} and {} become nobody's",
        printable(shard),
        counted(left.domains, "domain", "domains"),
        counted(left.clusters, "cluster", "clusters")
    )
}

/// What a removal takes with it, as a question.
pub async fn remove_shard_question(
    client: &CoordinatorClient,
    shard: &str,
    gone: bool,
) -> Result<String, CtlError> {
    let left = left(client, shard).await?;
    let for_good = if gone { " for good" } else { "" };
    Ok(format!("remove{for_good} {}", removal(shard, &left)))
}

/// Forgets a shard, or says what that would do.
pub async fn remove_shard(
    client: &CoordinatorClient,
    shard: &str,
    gone: bool,
    dry_run: bool,
) -> Result<Answer, CtlError> {
    let left = left(client, shard).await?;
    if !dry_run {
        client.remove_shard(shard, gone).await?;
    }
    let verb = if dry_run { "would remove" } else { "removed" };
    let note = if gone {
        "its id is used up: a new shard needs another one"
    } else {
        "if it still runs, it registers again with its next report and is told to let go of everything; until it has, nobody is \
         given what it has. For one that will never run again, say --gone"
    };
    Ok(Answer {
        text: format!("{verb} {}\n", removal(shard, &left)),
        notes: vec![note.to_owned()],
        failed: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_domain_and_a_shard_per_line() {
        let text = "# zones\nzone=a s1\n\n  zone=b   s2 # the new one\n";
        let read = DomainChanges::read(text, true).unwrap();
        assert_eq!(read.count(), 2);
        assert_eq!(read.0[1].topology_value, "b");
        assert_eq!(read.0[1].shard_id, "s2");
        assert!(read.0[1].r#move);
        let wrong = |text: &str| DomainChanges::read(text, false).unwrap_err().to_string();
        assert_eq!(wrong("zone=a"), "line 1: \"zone=a\" is not KEY=VALUE SHARD");
        assert_eq!(
            wrong("\nzone s1"),
            "\"zone\" is not KEY=VALUE, as in zone=eu-1a"
        );
        assert_eq!(wrong("# nothing"), "there is no line with a domain");
    }

    #[test]
    fn a_change_is_said_as_it_is() {
        let said = |from: &str, to: &str, dry_run| {
            let one = wire::ChangedDomain {
                topology_key: "zone".to_owned(),
                topology_value: "a".to_owned(),
                from_shard_id: from.to_owned(),
                to_shard_id: to.to_owned(),
                holder_shard_id: String::new(),
            };
            sentence(&one, dry_run)
        };
        assert_eq!(said("", "s1", false), "assigned zone=a to s1\n");
        assert_eq!(said("", "s1", true), "would assign zone=a to s1\n");
        assert_eq!(said("s1", "s1", false), "zone=a is s1's already\n");
        assert_eq!(said("s1", "s2", true), "would move zone=a from s1 to s2\n");
        assert_eq!(said("s1", "", false), "unassigned zone=a from s1\n");
        assert_eq!(said("", "", false), "zone=a was nobody's\n");
    }
}
