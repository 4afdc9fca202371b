//! The vocabulary of BigFleet: machines, states, needs, quantities, money, and what makes each
//! valid.
//!
//! Raw facts come in as `*Facts`, pass a check that names what it refuses and by which rule, and are
//! then values that cannot be wrong: there is no price that is NaN, no idle machine without a host,
//! no requirement without an operator. Rule ids (`ST-5`, `NT-6`, …) are those of `docs/spec`.
//!
//! Nothing here reads a clock, allocates an id or talks to anyone, and it depends on `std` alone.

mod hash;
mod text;
mod time;

mod amounts;
mod money;
pub mod quantity;

mod profile;
mod shape;

mod assignment;
mod inventory;
mod machine;
mod places;
mod state;

mod need;

mod decision;
mod echoed;
mod fleet;

pub use amounts::Amounts;
pub use assignment::{Assignment, Intent, Skipped, Terms};
pub use decision::{
    Action, ActionKind, Claim, Decision, Digest, Digestible, DomainCoverage, MatchingSupply,
    Reason, Restamp, UnmetReason, Verdict,
};
pub use echoed::Echoed;
pub use fleet::{Cluster, Disruption, Fleet, FleetMachine, Holds, Leaving};
pub use hash::HashKey;
pub use inventory::{Inventory, WriteRefused};
pub use machine::{
    Breach, Host, Machine, MachineFacts, MachineRefused, StatedFacts, StepProblem, StepRefused,
};
pub use money::{Bucket, Cost, Dollars, Price, Probability, effective_cost};
pub use need::{Need, RequirementFacts, Row, RowFacts, RowRefused, SpreadFacts};
pub use profile::{Operator, Profile, Requirement, Spread, WhenUnsatisfiable};
pub use quantity::{QuantityProblem, QuantityRefused};
pub use shape::{CAPACITY_TYPE_KEY, CapacityType, INSTANCE_TYPE_KEY, Shape, ZONE_KEY};
pub use state::{State, StateNumber, Via};
pub use text::{
    ClusterId, Dimension, Fingerprint, Group, IdRefused, MAX_ID_BYTES, MachineId, NeedKey, counted,
    need_name, ordinal, shown,
};
pub use time::Time;
