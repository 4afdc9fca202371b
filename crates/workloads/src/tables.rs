//! Tables: every distinct thing of a workload once, and everything else by its number.
//!
//! A fleet of 2.4 million machines has some two thousand shapes and a dozen profiles. Machines and
//! Pods name them by position; a row or a shape is written out only when somebody asks.

use crate::{Size, size::Dimensions, valid};
use bigfleet_model::{Amounts, Group, Profile, Shape};
use std::{collections::BTreeMap, sync::Arc};

/// The distinct things of a workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    dimensions: Dimensions,
    shapes: Vec<Arc<Shape>>,
    profiles: Vec<Arc<Profile>>,
    /// What each profile folds to; `None` for one without a gang.
    folded: Vec<Option<Arc<Profile>>>,
    units: Vec<Size>,
    groups: Vec<Group>,
    /// Gangs by (profile, unit, members): the group they fold to, if any machine holds a whole one.
    folds: BTreeMap<(u16, u16, u32), Option<Group>>,
    shape_numbers: BTreeMap<Arc<Shape>, u16>,
    /// Rows whose Pods are all of one size ask for whole units of it.
    tells_units: bool,
}

impl Tables {
    /// Tables that know the plain group, which is number 0.
    pub(crate) fn new() -> Self {
        Self {
            groups: vec![Group::default()],
            ..Self::default()
        }
    }

    /// From now on a row whose Pods are all of one size asks for whole units of it.
    pub(crate) fn tell_units(&mut self) {
        self.tells_units = true;
    }

    pub(crate) fn tells_units(&self) -> bool {
        self.tells_units
    }

    pub(crate) fn shapes(&self) -> &[Arc<Shape>] {
        &self.shapes
    }

    pub(crate) fn profiles(&self) -> &[Arc<Profile>] {
        &self.profiles
    }

    pub(crate) fn profile(&self, number: u16) -> &Arc<Profile> {
        &self.profiles[usize::from(number)]
    }

    /// What the profile folds to; itself if it has nothing to fold.
    pub(crate) fn folded(&self, number: u16) -> &Arc<Profile> {
        let folded = self.folded[usize::from(number)].as_ref();
        folded.unwrap_or(&self.profiles[usize::from(number)])
    }

    pub(crate) fn unit(&self, number: u16) -> Size {
        self.units[usize::from(number)]
    }

    pub(crate) fn group(&self, number: u32) -> &Group {
        &self.groups[number as usize]
    }

    pub(crate) fn amounts(&self, size: Size) -> Amounts {
        self.dimensions.amounts(size)
    }

    /// The number of a shape, a new one if it is new.
    pub(crate) fn add_shape(&mut self, shape: Shape) -> u16 {
        if let Some(number) = self.shape_numbers.get(&shape) {
            return *number;
        }
        let number = valid(u16::try_from(self.shapes.len()));
        let shape = Arc::new(shape);
        self.shapes.push(Arc::clone(&shape));
        self.shape_numbers.insert(shape, number);
        number
    }

    /// The number of a profile, a new one if it is new.
    pub(crate) fn add_profile(&mut self, profile: Profile) -> u16 {
        if let Some(at) = self.profiles.iter().position(|held| **held == profile) {
            return at as u16;
        }
        let number = valid(u16::try_from(self.profiles.len()));
        let gang = profile.same_key().is_some();
        self.folded.push(gang.then(|| Arc::new(profile.folded())));
        self.profiles.push(Arc::new(profile));
        number
    }

    /// The number of a Pod size.
    pub(crate) fn add_unit(&mut self, unit: Size) -> u16 {
        let number = valid(u16::try_from(self.units.len()));
        self.units.push(unit);
        number
    }

    /// The number of a new gang's name, written as an operator writes it: topology key, NUL, the
    /// canonical label selector.
    pub(crate) fn add_group(&mut self, same_key: &str, app: &str) -> u32 {
        let number = valid(u32::try_from(self.groups.len()));
        self.groups
            .push(Group::new(&format!("{same_key}\0app={app},;")));
        number
    }

    /// The group gangs of this profile, Pod size and number of members fold to: that of RF-12 if a
    /// single machine of some shape here holds a whole gang, none if the gang needs several.
    pub(crate) fn fold(&mut self, profile: u16, unit: u16, members: u32) -> Option<&Group> {
        let class = (profile, unit, members);
        if !self.folds.contains_key(&class) {
            let group = self.find_fold(class);
            self.folds.insert(class, group);
        }
        self.folded_group(class)
    }

    /// The same for a class already met.
    pub(crate) fn folded_group(&self, class: (u16, u16, u32)) -> Option<&Group> {
        self.folds.get(&class).and_then(Option::as_ref)
    }

    fn find_fold(&self, (profile, unit, members): (u16, u16, u32)) -> Option<Group> {
        let profile = self.profile(profile);
        profile.same_key()?;
        let gang = self.amounts(self.unit(unit).times(members));
        let holds = |shape: &Arc<Shape>| shape.serves(profile, &gang);
        let folds = self.shapes.iter().any(holds);
        folds.then(|| Group::new(&format!("fold:{}", gang.key())))
    }
}
