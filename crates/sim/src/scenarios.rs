//! The scenarios: each a name, a sentence, and a plan drawn from a seed.

mod bad_days;
mod closed_loop;
mod day;
mod fixed_point;
mod gangs;
mod guards;
mod leaving;
mod operated;
mod profiles;
mod random;
mod replacing;
mod scripted;
mod soak;
mod units;

#[cfg(test)]
mod magnitudes;

use crate::{dice::Dice, plan::Plan};

/// How much of it is run by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Up to 1,000 machines: a thousand seeds.
    Small,
    /// Long or large: a few seeds.
    Large,
}

/// One scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// How much of it is run by default.
    pub class: Class,
    plan: fn(&mut Dice) -> Plan,
}

impl Scenario {
    pub(crate) const fn small(
        name: &'static str,
        about: &'static str,
        plan: fn(&mut Dice) -> Plan,
    ) -> Self {
        let class = Class::Small;
        Self {
            name,
            about,
            class,
            plan,
        }
    }

    pub(crate) const fn large(
        name: &'static str,
        about: &'static str,
        plan: fn(&mut Dice) -> Plan,
    ) -> Self {
        let class = Class::Large;
        Self {
            name,
            about,
            class,
            plan,
        }
    }

    pub(crate) fn plan(&self, dice: &mut Dice) -> Plan {
        (self.plan)(dice)
    }

    /// Every scenario.
    pub fn all() -> Vec<Self> {
        [
            scripted::ALL,
            closed_loop::ALL,
            closed_loop::gangs::ALL,
            fixed_point::ALL,
            gangs::ALL,
            guards::ALL,
            bad_days::ALL,
            units::ALL,
            leaving::ALL,
            replacing::ALL,
            operated::ALL,
            random::ALL,
            soak::ALL,
            day::ALL,
            profiles::ALL,
        ]
        .concat()
    }

    /// Those of up to 1,000 machines, which are run unless others are named.
    pub fn usual() -> Vec<Self> {
        let mut all = Self::all();
        all.retain(|one| one.class == Class::Small);
        all
    }

    /// The scenario of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|one| one.name == name)
    }
}
