//! What each kind of entry looks like in a list, what it is called, and what a selector sees of it.

mod action;
mod cluster;
mod machine;
mod need;
mod pause;
mod work;

pub(crate) use need::Shortfall;
