//! Every example of the spec, §11–§18 and §22.5, under its id; where §22.5 re-derives one, in that
//! form. Those of §15 and §16 are about the shard's memory and live with the shard.

mod actions;
mod check;
mod credit;
mod fold;
mod gangs;
mod phase2;
mod phase3;
mod rules;
mod rules_more;
mod spread;
mod verdicts;
