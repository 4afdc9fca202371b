//! A behaviour: one promise of the contract, what it belongs to, and how it is checked.

use std::fmt;
use std::pin::Pin;

use crate::{Check, Subject};

/// Which process a behaviour runs against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// A plain provider, for the baseline.
    Baseline,
    /// A plain provider.
    Core,
    /// One with fault hooks and short timeouts.
    Fault,
    /// One with a state file, killed and started again.
    Durable,
    /// One with many slots.
    Scale,
    /// A pool of bare metal.
    BareMetal,
}

impl Lane {
    /// In the order in which they run.
    pub const ALL: [Self; 6] = [
        Self::Baseline,
        Self::Core,
        Self::Fault,
        Self::Durable,
        Self::Scale,
        Self::BareMetal,
    ];
}

/// What a provider claims to be, and is certified for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// What every provider promises.
    Core,
    /// Hosts are given back.
    Cloud,
    /// Hosts that may be interrupted.
    Spot,
    /// Hosts that are always there.
    BareMetal,
    /// State that survives a kill.
    Durable,
    /// A backend that fails ends in FAILED, and nowhere else.
    Fault,
    /// Thousands of machines.
    Scale,
}

impl Profile {
    /// From the lowest level to the highest.
    pub const ALL: [Self; 7] = [
        Self::Core,
        Self::Cloud,
        Self::Spot,
        Self::BareMetal,
        Self::Durable,
        Self::Fault,
        Self::Scale,
    ];

    /// The word on the command line and in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Cloud => "cloud",
            Self::Spot => "spot",
            Self::BareMetal => "bare-metal",
            Self::Durable => "durable",
            Self::Fault => "fault",
            Self::Scale => "scale",
        }
    }

    /// The profile with this word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.word() == word)
    }
}

/// What a provider may do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Delete.
    Delete,
    /// Cursors.
    SinceRevision,
    /// Slots that Create turns into hosts; a pool of hosts that are already there has none.
    Create,
    /// Transitions that can be seen under way; a provider may settle within the call.
    Transitions,
    /// Announcements of when a machine will be gone.
    Notices,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delete => "Delete",
            Self::SinceRevision => "cursors",
            Self::Create => "slots to create",
            Self::Transitions => "visible transitions",
            Self::Notices => "announcements",
        })
    }
}

/// Whose promise it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// The baseline, known by the names of its tests.
    Baseline,
    /// The 93 behaviours of the contract.
    Contract,
    /// Ours in addition; they never decide a certification.
    Ours,
}

type Run = for<'s> fn(&'s Subject) -> Pin<Box<dyn Future<Output = Check> + Send + 's>>;

/// One promise.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// Our id.
    pub id: &'static str,
    /// Its id in the reference registry; empty for ours and for the baseline.
    pub reference: &'static str,
    /// The kind of process it is checked against.
    pub lane: Lane,
    /// What it needs the provider to have.
    pub needs: Option<Capability>,
    /// The promise in a sentence.
    pub title: &'static str,
    /// Ends in an error that says how the promise was broken.
    pub check: Run,
}

impl Behaviour {
    /// Whose promise it is.
    pub fn suite(&self) -> Suite {
        match self.lane {
            Lane::Baseline => Suite::Baseline,
            _ if self.reference.is_empty() => Suite::Ours,
            _ => Suite::Contract,
        }
    }

    /// Whether its id fits a pattern in which `*` stands for any letters.
    pub fn is_named(&self, glob: &str) -> bool {
        matches(glob, self.id)
    }

    /// The profiles that ask for it; it is required as soon as one of them is selected.
    pub fn profiles(&self) -> &'static [Profile] {
        match (self.id, self.lane) {
            ("LIFE-08" | "ERR-04" | "ERR-12" | "CONC-08" | "SHAPE-07", _) => {
                &[Profile::Core, Profile::Cloud]
            }
            ("SHAPE-02", _) => &[Profile::Core, Profile::Spot],
            (_, Lane::Baseline) => &Profile::ALL,
            (_, Lane::Core) => &[Profile::Core],
            (_, Lane::Fault) => &[Profile::Fault],
            (_, Lane::Durable) => &[Profile::Durable],
            (_, Lane::Scale) => &[Profile::Scale],
            (_, Lane::BareMetal) => &[Profile::BareMetal],
        }
    }

    /// What it is about.
    pub fn area(&self) -> &'static str {
        let prefix = self
            .id
            .split_once('-')
            .map_or(self.id, |(prefix, _)| prefix);
        match (prefix, self.id) {
            ("LIFE", _) | (_, "X-04" | "X-15") => "lifecycle",
            ("ERR", _) | (_, "X-01" | "X-02" | "X-03" | "X-05") => "errors",
            ("IDEM", _) | (_, "X-16") => "idempotency",
            ("FENCE", _) | (_, "X-13") => "fencing",
            ("CONC", _) => "concurrency",
            ("META", _) => "metadata",
            ("FAULT", _) | (_, "X-14") => "fault",
            ("SHAPE", _) => "fieldshape",
            ("LIST", _) | (_, "X-06" | "X-07" | "X-08" | "X-17") => "list",
            ("DUR", _) | (_, "X-09" | "X-10" | "X-11") => "durability",
            ("SCALE", _) | (_, "X-12") => "scale",
            ("PROP", _) => "property",
            _ => "baseline",
        }
    }

    /// The phase of the reference registry: 2 from outside alone, 4 with faults and kills, 5 at scale.
    pub fn phase(&self) -> u8 {
        match self.lane {
            Lane::Baseline | Lane::Core | Lane::BareMetal => 2,
            Lane::Fault | Lane::Durable => 4,
            Lane::Scale => 5,
        }
    }
}

/// Whether a name fits a pattern in which `*` stands for any letters.
fn matches(glob: &str, name: &str) -> bool {
    let (glob, name) = (glob.to_ascii_uppercase(), name.to_ascii_uppercase());
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_pattern_of_the_whole_id() {
        for (glob, name, fits) in [
            ("DUR-03", "DUR-03", true),
            ("dur-*", "DUR-03", true),
            ("DUR", "DUR-03", false),
            ("*-01", "LIFE-01", true),
            ("*-01", "LIFE-02", false),
            ("F*E-*", "FENCE-07", true),
            ("F*E-*", "FAULT-07", false),
            ("*", "X-16", true),
            ("X-", "X-16", false),
        ] {
            assert_eq!(matches(glob, name), fits, "{glob} {name}");
        }
    }
}
