//! Every example of engine.md §11 to §18 under its id; those of engine.md §15 and §16 are about the
//! shard's memory and live with the shard.

mod actions;
mod check;
mod credit;
mod disruption;
mod fold;
mod gangs;
mod leaving;
mod leaving_mistakes;
mod phase2;
mod phase3;
mod restore;
mod rules;
mod rules_more;
mod spread;
mod verdicts;
mod whole_units;
