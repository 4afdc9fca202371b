//! How each record looks in a list: its columns, the names it answers to, what a selector sees of it.

mod action;
mod cluster;
mod drain;
mod event;
mod machine;
mod need;
mod ownership;
mod pause;
mod rail;
mod work;

pub(crate) use need::Shortfall;
