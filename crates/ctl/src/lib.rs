//! The everyday verbs and the live view: what a running shard says, for people and for scripts.
//!
//! ```text
//!              ┌─▶ get · describe · explain ──▶ table, wide, json, yaml
//! Client ──────┼─▶ pause · resume · retire · release · export
//!  (ShardRead, └─▶ live view: poll ──▶ Screen ──▶ picture        keys ──▶ Screen ──▶ asks
//!   ShardAdmin)
//! ```
//!
//! Nothing here decides or remembers: what is printed is what a shard answered, and what cannot be
//! done ends in a [`Trouble`] that says what to do next. Whatever came over the wire is made fit to
//! print before a terminal sees it.

pub mod address;
pub mod live;
pub mod text;
pub mod when;

mod client;
mod trouble;
mod words;

mod record;
mod select;
mod shown;

mod output;

mod describe;
mod explain;
mod export;
mod get;
mod letting_go;
mod steer;

pub use client::{Client, USUAL_TIMEOUT};
pub use describe::{Described, describe};
pub use explain::explain;
pub use export::export;
pub use get::{Kind, Wanted, get};
pub use letting_go::{release, retire};
pub use output::{Answer, Form, Style};
pub use select::{Selector, SelectorRefused};
pub use steer::{Steered, pause, resume};
pub use trouble::Trouble;
