//! The operator's core among things that behave: a cluster that applies what is written, and a shard that answers.

mod acknowledging;
mod bounds;
mod defects;
mod draining;
mod fixed_point;
mod leading;
mod pods;
mod rolling_up;
mod support;
mod walks;
