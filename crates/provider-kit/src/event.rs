//! What happens to a kit, and what it wants done: plain data, comparable and replayable.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::{Host, MachineId, Time};

use crate::call::{Ack, Mutation, Refusal};
use crate::machine::{Failure, Instance, Machine, TextMap};
use crate::seed::SeedRefused;

/// Names a call, so that its answer finds its way back.
pub type CallId = u64;

/// What Create learned about the host it made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Created {
    /// The host, by the name of the provider and its reference there.
    pub host: Host,
    /// The base shape, where it differs from the offer.
    pub resources: Option<TextMap>,
    /// What the host really offers.
    pub allocatable: Option<TextMap>,
}

/// What a machine costs now.
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    /// The id of the machine.
    pub id: String,
    /// Dollars per hour.
    pub price_per_hour: f64,
    /// Chance of interruption per hour.
    pub interruption_probability: f64,
}

/// How backend work ended; only Create has something to tell.
pub type Outcome = Result<Option<Created>, Failure>;

/// Something happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A mutation arrived.
    Mutate {
        /// To find the caller again.
        call: CallId,
        /// As it arrived: unchecked.
        mutation: Mutation,
    },
    /// Backend work ended.
    Settled {
        /// The machine it was done to.
        machine: MachineId,
        /// The id from `Start`; an end with another id is too late and discarded.
        operation: Arc<str>,
        /// What it made, or why it failed.
        outcome: Outcome,
    },
    /// Backend work did not end in time.
    TimedOut {
        /// The machine it was done to.
        machine: MachineId,
        /// The id from `Start`.
        operation: Arc<str>,
        /// What the substrate said when it was last tried, if it was tried more than once.
        refused: Option<Failure>,
    },
    /// A Failed machine has been left alone for long enough.
    CleanUp {
        /// The machine to clean up; it has to be Failed.
        machine: MachineId,
    },
    /// Somebody asked for prices.
    Quoted {
        /// What they are now, for the machines whose price is known.
        quotes: Vec<Quote>,
    },
    /// The substrate was asked what there is.
    Described {
        /// The whole inventory.
        instances: Vec<Instance>,
        /// The head revision when it was asked.
        as_of: u64,
    },
    /// The substrate says this machine is broken.
    Broke {
        /// The machine that broke.
        machine: MachineId,
        /// Becomes the record's `last_error`.
        failure: Failure,
    },
    /// The substrate announces when a machine's host will be gone, or that it will not be after all. Said
    /// again, it replaces what was said before; so does the next describe.
    Leaves {
        /// The machine whose host goes.
        machine: MachineId,
        /// When; `None` withdraws.
        at: Option<Time>,
    },
    /// The substrate says this machine no longer exists.
    Vanished {
        /// The machine that is gone.
        machine: MachineId,
    },
}

/// Work for the backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The machine, already in its transitional state.
    pub machine: Arc<Machine>,
    /// Stable over retries, new per cycle: an idempotency token for the substrate.
    pub operation: Arc<str>,
    /// The transition, with its arguments.
    pub task: Task,
    /// How long it may take.
    pub timeout: Duration,
}

/// What the backend is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Make a host.
    Create,
    /// Join the machine's cluster.
    Configure {
        /// Opaque user data.
        blob: Arc<[u8]>,
    },
    /// Leave the cluster.
    Drain {
        /// How long disruption budgets are honoured.
        grace: Duration,
    },
    /// Release the host.
    Delete,
    /// Make sure that nothing is left of a failed machine. Its record stays Failed meanwhile.
    CleanUp,
}

/// Something is to be done, once the pending changes are stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Answer a call.
    Answer {
        /// The call to answer, from `Mutate`.
        call: CallId,
        /// With what.
        answer: Result<Ack, Refusal>,
    },
    /// Start background work; its end comes back as `Settled` or `TimedOut`.
    Start(Work),
    /// A completion came after the operation had been given up.
    Discarded {
        /// The operation whose end came too late.
        operation: Arc<str>,
        /// The host it made, which belongs to nobody now and is to be given back.
        left: Option<Arc<Machine>>,
    },
    /// An entry of the inventory was skipped.
    Skipped(SeedRefused),
    /// A machine failed, or could not be cleaned up and stays failed.
    Failed(Arc<Machine>),
}
