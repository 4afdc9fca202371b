//! A machine as its provider knows it: a slot of the catalogue, the host behind it, its binding.
//!
//! ```text
//! describe ──▶ Instance ── seed checks ──▶ Machine ── the four edges ──▶ Machine …
//! ```
//!
//! What is long and rarely changes (the offer, the metadata) is shared, so that a step of the
//! lifecycle copies a few words however much a caller stored on the machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::{CapacityType, Host, MachineId, State, Time};

/// Texts by name.
pub type TextMap = BTreeMap<String, String>;

/// What a slot offers and what it costs: the part the substrate declares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// Required; never only a label.
    pub instance_type: String,
    /// The failure domain, as clusters name it; may be empty where zones are not required.
    pub zone: String,
    /// How it is held and paid for.
    pub capacity_type: CapacityType,
    /// Dollars per hour.
    pub price_per_hour: f64,
    /// Chance of interruption per hour.
    pub interruption_probability: f64,
    /// The declared base shape, as quantity texts.
    pub resources: TextMap,
    /// What the hardware really offers, as quantity texts; empty for "as declared".
    pub allocatable: TextMap,
    /// Further labels.
    pub labels: TextMap,
}

/// One entry of the substrate's inventory, unchecked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// The slot's id, the same for its whole life.
    pub id: String,
    /// The host behind it, if there is one.
    pub host: Option<Host>,
    /// Speculative or Idle; `None` is resolved by the presence of a host.
    pub hint: Option<State>,
    /// What it offers. Slots that offer the same can share it.
    pub offer: Arc<Offer>,
    /// When its host will be gone, if the substrate announces that: a spot interruption, maintenance.
    pub leaving: Option<Time>,
}

/// Whether trying again can help a failed machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureClass {
    /// Not stated.
    #[default]
    Unspecified,
    /// The same operation may succeed later.
    Retryable,
    /// Trying again is pointless.
    Permanent,
    /// A Create found none of it in stock and made nothing. A record shows it as retryable; the slot is
    /// offered again by itself, since there is nothing to clean up.
    NoStock,
    /// The substrate asks to come back in a moment: the kit does, inside the transition. No record
    /// shows it; what is still refused when time is up was retryable.
    Passing,
}

/// Why backend work did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// What went wrong; becomes `last_error`.
    pub text: String,
    /// Whether trying again can help.
    pub class: FailureClass,
}

impl Failure {
    /// A failure about which nothing more is known.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            text,
            class: FailureClass::Unspecified,
        }
    }

    /// A refusal that is over in a moment, such as throttling: tried again inside the transition.
    pub fn passing(text: impl Into<String>) -> Self {
        Self {
            class: FailureClass::Passing,
            ..Self::new(text)
        }
    }

    /// A Create that made nothing, because there is none of it now: the slot comes back by itself. Only
    /// for a substrate that is sure of it; one that may have left something behind is retryable.
    pub fn no_stock(text: impl Into<String>) -> Self {
        Self {
            class: FailureClass::NoStock,
            ..Self::new(text)
        }
    }

    /// A failure that another slot or a later operation may not meet.
    pub fn retryable(text: impl Into<String>) -> Self {
        Self {
            class: FailureClass::Retryable,
            ..Self::new(text)
        }
    }

    /// A failure that trying again will not mend.
    pub fn permanent(text: impl Into<String>) -> Self {
        Self {
            class: FailureClass::Permanent,
            ..Self::new(text)
        }
    }
}

/// One machine of the inventory.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Stable for the whole life.
    pub id: MachineId,
    /// Where it is in its life.
    pub state: State,
    /// Present from Idle to Deleting.
    pub host: Option<Host>,
    /// What it offers and costs; shared with the other slots of its kind.
    pub offer: Arc<Offer>,
    /// Whether Create learned the real shape, which a describe must then not overwrite.
    pub refined: bool,
    /// The binding, from acceptance of Configure to the end of Drain; else empty.
    pub cluster: String,
    /// The caller's map, byte for byte.
    pub metadata: Arc<TextMap>,
    /// The shard whose Create or Configure came last, until the host is given back. A help for
    /// filtering, never proof of whose the machine is.
    pub owner: Arc<str>,
    /// Not empty iff Failed.
    pub last_error: String,
    /// With Failed: whether trying again can help.
    pub failure: FailureClass,
    /// When its host will be gone, as the substrate announces; `None` without a host.
    pub leaving: Option<Time>,
}

impl Machine {
    /// Makes it Failed, keeping host, cluster and metadata as evidence.
    pub(crate) fn fail(&mut self, failure: &Failure) {
        // Only a Create can make nothing; elsewhere there is a host, and it is evidence.
        let made_nothing = self.state == State::Creating && self.host.is_none();
        self.state = State::Failed;
        self.failure = match failure.class {
            FailureClass::NoStock if made_nothing => FailureClass::NoStock,
            FailureClass::Passing | FailureClass::NoStock => FailureClass::Retryable,
            class => class,
        };
        self.last_error = match failure.text.as_str() {
            "" => "failed without a reason".to_owned(),
            text => text.to_owned(),
        };
    }

    /// Clears the binding: cluster and metadata live and die together.
    pub(crate) fn unbind(&mut self) {
        self.cluster.clear();
        self.metadata = Arc::default();
    }

    /// Makes it a slot again: nothing is behind it, so it is nobody's.
    pub(crate) fn vacate(&mut self) {
        self.unbind();
        self.owner = Arc::default();
        self.leaving = None;
        self.host = None;
        self.refined = false;
        self.state = State::Speculative;
    }
}
