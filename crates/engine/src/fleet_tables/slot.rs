//! Slots: what machines are attributed to, and what rows name.

use crate::{
    index::{
        ClassIndex, ClusterIndex, FingerprintIndex, GroupIndex, MachineIndex, NeedIndex, SlotIndex,
    },
    slim_list::SlimList,
};

/// What a slot is found by; those of a cluster and group are neighbours.
pub(crate) type SlotIdentity = (ClusterIndex, GroupIndex, FingerprintIndex);

/// A (cluster, fingerprint text, group) that a machine or a row names.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) cluster: ClusterIndex,
    pub(crate) fingerprint: FingerprintIndex,
    pub(crate) group: GroupIndex,
    /// Attributed to it as recorded, in keep order.
    pub(crate) machines: Vec<MachineIndex>,
    /// Rows with this text. One, unless texts of different profiles collide.
    pub(crate) rows: SlimList<NeedIndex>,
    /// Classes whose folded row has this text.
    pub(crate) classes: SlimList<ClassIndex>,
    /// The slot its machines passed on to (RF-1).
    pub(crate) heir: Option<SlotIndex>,
    /// Slots that passed their machines on to this one.
    pub(crate) bequests: SlimList<SlotIndex>,
    /// Its intents have ended (RF-1), so machines promised to it are free to take.
    pub(crate) ended: bool,
    /// The Need that claims all of its machines.
    pub(crate) claimed_whole_by: Option<NeedIndex>,
    /// It is among the slots whose standing may have changed.
    pub(crate) dirty: bool,
}

impl Slot {
    /// Whether it names a row of the current demand, as received or in folded form.
    pub(crate) fn is_current(&self) -> bool {
        !self.rows.is_empty() || !self.classes.is_empty()
    }

    /// Whether a machine or a row names it. A slot that nothing names is removed.
    pub(crate) fn is_named(&self) -> bool {
        !self.machines.is_empty() || self.is_current()
    }
}
