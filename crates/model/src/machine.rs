//! Machine: one record of the fleet, and the grid that every record passes (model.md §1, ST-5).
//!
//! ```text
//! provider message, fleet file ──▶ MachineFacts ── grid, in its order ──▶ Machine
//! ```
//!
//! A [`Machine`] can only be made through the grid, so none can hold what the grid forbids.

mod steps;

pub use steps::{StepProblem, StepRefused};

use crate::{
    Assignment, ClusterId, Dollars, Echoed, IdRefused, Intent, MachineId, NeedKey, Price,
    Probability, Shape, Skipped, State, StateNumber, Terms, shown,
};
use std::{cmp::Reverse, fmt, sync::Arc};

/// Where a machine physically is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Which provider.
    pub provider: String,
    /// The provider's name for it.
    pub reference: String,
}

impl Host {
    /// A host is empty iff both parts are.
    pub fn is_empty(&self) -> bool {
        self.provider.is_empty() && self.reference.is_empty()
    }
}

/// A record as someone claims it to be: unchecked.
#[derive(Clone, Debug)]
pub struct MachineFacts {
    /// Its id.
    pub id: String,
    /// The number of its state.
    pub state: StateNumber,
    /// Its host; empty for none.
    pub host: Host,
    /// The cluster it is bound to; empty for none.
    pub cluster: String,
    /// What it is like.
    pub shape: Arc<Shape>,
    /// Dollars per hour.
    pub price_per_hour: f64,
    /// Chance of interruption per hour.
    pub interruption_probability: f64,
    /// Why it failed.
    pub last_error: String,
    /// The commitment of a bound machine.
    pub assignment: Assignment,
    /// The commitment of one on its way.
    pub intent: Option<Intent>,
}

impl MachineFacts {
    /// Facts of an otherwise unremarkable machine.
    pub fn new(id: &str, state: State) -> Self {
        Self {
            id: id.to_owned(),
            state: state.into(),
            host: Host::default(),
            cluster: String::new(),
            shape: Arc::default(),
            price_per_hour: 0.0,
            interruption_probability: 0.0,
            last_error: String::new(),
            assignment: Assignment::default(),
            intent: None,
        }
    }

    /// Fills in the commitment: a machine known here keeps what is known (MD-3); one seen for the
    /// first time takes what its provider echoes. Returns what could not be read.
    pub fn recall(&mut self, known: Option<&Machine>, echoed: &Echoed) -> Vec<Skipped> {
        let Some(known) = known else {
            return self.assignment.read_metadata(echoed);
        };
        self.assignment = known.assignment.clone();
        self.intent = known.intent().cloned();
        Vec::new()
    }
}

/// The facts a provider states of a machine: unchecked, not copied, without commitment.
#[derive(Clone, Debug)]
pub struct StatedFacts<'a> {
    /// Its id.
    pub id: &'a str,
    /// The number of its state.
    pub state: StateNumber,
    /// Its host's provider, and that provider's name for it; both empty for none.
    pub host: (&'a str, &'a str),
    /// The cluster it is bound to; empty for none.
    pub cluster: &'a str,
    /// What it is like.
    pub shape: Arc<Shape>,
    /// Dollars per hour.
    pub price_per_hour: f64,
    /// Chance of interruption per hour.
    pub interruption_probability: f64,
    /// Why it failed.
    pub last_error: &'a str,
}

/// Why a record was refused. The last good record stays in force.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineRefused {
    /// Which machine, made fit to print.
    pub id: String,
    /// Which rule it breaks.
    pub breach: Breach,
}

/// Which rule of the grid a record breaks, in the order of the grid (ST-5).
#[derive(Clone, Debug, PartialEq)]
pub enum Breach {
    /// The id is not one.
    Id(IdRefused),
    /// The cluster is not an id.
    Cluster(IdRefused),
    /// This state has no host, but one is given.
    HostGiven(State),
    /// This state has no cluster, but one is given.
    ClusterGiven(State, String),
    /// This state needs a host.
    NoHost(State),
    /// This state needs a cluster.
    NoCluster(State),
    /// Failed without saying why.
    NoError,
    /// Not a state.
    UnknownState(StateNumber),
    /// An intent on a state that cannot have one.
    IntentGiven(State),
    /// The interruption probability is not between 0 and 1.
    Probability(f64),
    /// The price is not a finite, non-negative number.
    Price(f64),
}

impl Breach {
    /// The rejection label used in metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Probability(_) => "interruption_probability",
            Self::Price(_) => "price",
            Self::Id(_)
            | Self::Cluster(_)
            | Self::HostGiven(_)
            | Self::ClusterGiven(..)
            | Self::NoHost(_)
            | Self::NoCluster(_)
            | Self::NoError
            | Self::UnknownState(_)
            | Self::IntentGiven(_) => "structural",
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(refused) => write!(f, "{refused} (ST-5)"),
            Self::Cluster(refused) => write!(f, "cluster: {refused} (ST-5)"),
            Self::HostGiven(state) => write!(f, "state {state} must have no host (ST-5)"),
            Self::ClusterGiven(state, cluster) => {
                write!(
                    f,
                    "state {state} must have no cluster, but has \"{cluster}\" (ST-5)"
                )
            }
            Self::NoHost(state) => write!(f, "state {state} needs a host (ST-5)"),
            Self::NoCluster(state) => write!(f, "state {state} needs a cluster (ST-5)"),
            Self::NoError => f.write_str("state Failed needs a last_error (ST-5)"),
            Self::UnknownState(number) => write!(f, "{number} is not a state (ST-5)"),
            Self::IntentGiven(state) => {
                write!(f, "state {state} cannot have an intent (model.md §1)")
            }
            Self::Probability(p) => {
                write!(
                    f,
                    "interruption_probability {p} is not between 0 and 1 (ST-5)"
                )
            }
            Self::Price(price) => {
                write!(
                    f,
                    "price_per_hour {price} is not a finite non-negative number (ST-5)"
                )
            }
        }
    }
}

impl fmt::Display for MachineRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "machine \"{}\": {}", self.id, self.breach)
    }
}

impl std::error::Error for MachineRefused {}

/// A machine that passed the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    id: MachineId,
    state: State,
    host: Option<Host>,
    cluster: Option<ClusterId>,
    shape: Arc<Shape>,
    price: Price,
    interruption: Probability,
    last_error: String,
    assignment: Assignment,
    /// Few machines have one, and it is a third of what they all would take.
    intent: Option<Box<Intent>>,
}

impl Machine {
    /// Passes the facts through the grid. A cluster on an Idle, Deleting or Speculative machine is
    /// dropped (ST-5), and an assignment on a machine that is not bound with it (M-3).
    pub fn new(facts: MachineFacts) -> Result<Self, MachineRefused> {
        let stated = StatedFacts {
            id: &facts.id,
            state: facts.state,
            host: (&facts.host.provider, &facts.host.reference),
            cluster: &facts.cluster,
            shape: facts.shape,
            price_per_hour: facts.price_per_hour,
            interruption_probability: facts.interruption_probability,
            last_error: &facts.last_error,
        };
        let machine = Self::check(&stated, facts.intent.is_some(), ClusterId::new)?;
        Ok(Self {
            host: Some(facts.host).filter(|host| !host.is_empty()),
            last_error: facts.last_error,
            assignment: match machine.cluster {
                Some(_) => facts.assignment,
                None => Assignment::default(),
            },
            intent: facts.intent.map(Box::new),
            ..machine
        })
    }

    /// The same for facts that are not copied before they have passed. `cluster` names the cluster: of
    /// many machines most have one that another has, too.
    pub fn stated(
        facts: &StatedFacts<'_>,
        cluster: impl FnOnce(&str) -> Result<ClusterId, IdRefused>,
    ) -> Result<Self, MachineRefused> {
        let machine = Self::check(facts, false, cluster)?;
        let host = (facts.host != ("", "")).then(|| Host {
            provider: facts.host.0.to_owned(),
            reference: facts.host.1.to_owned(),
        });
        let last_error = facts.last_error.to_owned();
        Ok(Self {
            host,
            last_error,
            ..machine
        })
    }

    /// Without host, error and commitment, which are the caller's.
    fn check(
        facts: &StatedFacts<'_>,
        has_intent: bool,
        name: impl FnOnce(&str) -> Result<ClusterId, IdRefused>,
    ) -> Result<Self, MachineRefused> {
        let refused = |breach| MachineRefused {
            id: shown(facts.id),
            breach,
        };
        let checked = || {
            let id = MachineId::new(facts.id).map_err(Breach::Id)?;
            let state =
                State::from_number(facts.state.0).ok_or(Breach::UnknownState(facts.state))?;
            let cluster = if state.drops_cluster() {
                ""
            } else {
                facts.cluster
            };
            let has_host = facts.host != ("", "");
            structure(state, has_host, cluster, facts.last_error)?;
            if has_intent && !state.may_hold_intent() {
                return Err(Breach::IntentGiven(state));
            }
            let interruption = Probability::new(facts.interruption_probability)
                .ok_or(Breach::Probability(facts.interruption_probability))?;
            let price =
                Price::new(facts.price_per_hour).ok_or(Breach::Price(facts.price_per_hour))?;
            let cluster = match cluster {
                "" => None,
                text => Some(name(text).map_err(Breach::Cluster)?),
            };
            Ok(Self {
                id,
                state,
                host: None,
                cluster,
                shape: Arc::clone(&facts.shape),
                price,
                interruption,
                last_error: String::new(),
                assignment: Assignment::default(),
                intent: None,
            })
        };
        checked().map_err(refused)
    }

    /// The same machine with another commitment, which passes the grid as in [`Self::new`]; all other
    /// facts have passed it.
    pub fn committed(
        self,
        assignment: Assignment,
        intent: Option<Intent>,
    ) -> Result<Self, MachineRefused> {
        if intent.is_some() && !self.state.may_hold_intent() {
            return Err(self.refused(Breach::IntentGiven(self.state)));
        }
        let assignment = match self.cluster {
            Some(_) => assignment,
            None => Assignment::default(),
        };
        Ok(Self {
            assignment,
            intent: intent.map(Box::new),
            ..self
        })
    }

    /// What of its structure breaks the grid; everything else is valid by its type.
    fn breach(&self) -> Option<Breach> {
        let cluster = self.cluster.as_ref().map_or("", ClusterId::as_str);
        let found = structure(self.state, self.host.is_some(), cluster, &self.last_error);
        let intent = self.intent.is_some() && !self.state.may_hold_intent();
        found
            .err()
            .or(intent.then_some(Breach::IntentGiven(self.state)))
    }

    fn refused(&self, breach: Breach) -> MachineRefused {
        MachineRefused {
            id: shown(self.id.as_str()),
            breach,
        }
    }

    /// Shares the shape of another machine, which is equal to its own.
    pub fn share_shape(&mut self, shape: &Arc<Shape>) {
        debug_assert_eq!(*self.shape, **shape, "only what is equal is shared");
        self.shape.clone_from(shape);
    }

    /// The facts again, to change some and pass the grid anew.
    pub fn into_facts(self) -> MachineFacts {
        MachineFacts {
            id: self.id.to_string(),
            state: self.state.into(),
            host: self.host.unwrap_or_default(),
            cluster: self
                .cluster
                .map(|cluster| cluster.to_string())
                .unwrap_or_default(),
            shape: self.shape,
            price_per_hour: self.price.dollars_per_hour(),
            interruption_probability: self.interruption.per_hour(),
            last_error: self.last_error,
            assignment: self.assignment,
            intent: self.intent.map(|intent| *intent),
        }
    }

    /// Its id.
    pub fn id(&self) -> &MachineId {
        &self.id
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Its host, if it has one.
    pub fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    /// The cluster it is bound to, if any.
    pub fn cluster(&self) -> Option<&ClusterId> {
        self.cluster.as_ref()
    }

    /// What it is like.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// What it costs now.
    pub fn price(&self) -> Price {
        self.price
    }

    /// How likely it is to be taken away.
    pub fn interruption(&self) -> Probability {
        self.interruption
    }

    /// Why it failed.
    pub fn last_error(&self) -> &str {
        &self.last_error
    }

    /// The commitment of a bound machine.
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// The commitment of one on its way.
    pub fn intent(&self) -> Option<&Intent> {
        self.intent.as_deref()
    }

    /// The Need it is committed to, as recorded (RF-1).
    pub fn attribution(&self) -> Option<NeedKey> {
        match self.state {
            State::Configuring | State::Configured => self
                .cluster
                .as_ref()
                .and_then(|cluster| self.assignment.need(cluster)),
            State::Creating | State::Idle | State::Draining => {
                self.intent.as_ref().map(|intent| intent.need.clone())
            }
            State::Speculative | State::Deleting | State::Failed => None,
        }
    }

    /// The terms it stands on: those of its intent if it has one, else of its assignment.
    pub fn terms(&self) -> Terms {
        self.intent
            .as_ref()
            .map_or(self.assignment.terms, |intent| intent.terms)
    }

    /// The price it is kept at: the one recorded at its commitment, or else the live one (RF-2).
    pub fn keep_price(&self) -> Price {
        let recorded = match &self.intent {
            Some(intent) => intent.keep_price,
            None => self.assignment.keep_price,
        };
        recorded.unwrap_or(self.price)
    }

    /// Keep order (RF-2): cheapest first, then the one that hurts most to lose, then the id.
    pub fn keep_key(&self) -> (Price, Reverse<Dollars>, &MachineId) {
        (
            self.keep_price(),
            Reverse(self.terms().reclamation),
            &self.id,
        )
    }
}

/// Which parts a state must and must not have.
fn structure(state: State, has_host: bool, cluster: &str, last_error: &str) -> Result<(), Breach> {
    use State::*;
    match state {
        Speculative | Creating if has_host => Err(Breach::HostGiven(state)),
        Speculative | Creating if !cluster.is_empty() => {
            Err(Breach::ClusterGiven(state, shown(cluster)))
        }
        Idle | Configuring | Configured | Draining | Deleting if !has_host => {
            Err(Breach::NoHost(state))
        }
        Configured | Draining if cluster.is_empty() => Err(Breach::NoCluster(state)),
        Failed if last_error.is_empty() => Err(Breach::NoError),
        Speculative | Creating | Idle | Configuring | Configured | Draining | Deleting | Failed => {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
