//! The operator's core among things that behave: a cluster that applies what is written, and a shard that answers.

#![allow(clippy::unwrap_used, reason = "helpers of tests may stop a test")]
#![allow(
    clippy::collapsible_match,
    reason = "what happens and whether it can are two questions"
)]

mod acknowledging;
mod bounds;
mod defects;
mod draining;
mod fixed_point;
mod leading;
mod pods;
mod rolling_up;
mod serving;
mod support;
mod upcoming;
mod walks;
