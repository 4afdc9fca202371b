//! Reading the provider: Lists and Gets, and what the ledger makes of them.
//!
//! ```text
//! List ─▶ record: good? ─▶ newer than what was done here? ─▶ ledger
//!           └─ refused, noted with its machine     └─ overtaken, and shown otherwise
//!      ─▶ over ─▶ what it lacks ─▶ Get ─▶ believed gone
//! ```

use super::{Absence, Listing, Supply};
use crate::{
    effect::{GetId, ListId},
    list_pace::ListKind,
};
use bigfleet_model::{MachineId, Time};

impl Supply {
    /// Begins a List, unless one is under way; returns its id and where it goes on.
    pub(crate) fn begin_list(&mut self, now: Time, kind: ListKind) -> Option<(ListId, Vec<u8>)> {
        let ledger = &mut self.ledger;
        self.provider.begin_list(now, kind, || ledger.begin_read())
    }

    /// The place among reads and changes of the List under way, if it is this one.
    pub(crate) fn list_began(&self, list: ListId) -> Option<u64> {
        self.provider.listing(list).map(|listing| listing.began)
    }

    /// A List shows a record that was refused: it is not believed, but its machine is there.
    pub(crate) fn refuse_record(&mut self, list: ListId, id: MachineId, why: String) {
        if self.ledger.get(&id).is_some() {
            self.ledger.shown(&id, list);
            self.provider.refuse(id, why);
        } else {
            self.provider.refuse_unknown(id);
        }
    }

    /// A List shows a machine, and its record is good.
    pub(crate) fn accept_record(&mut self, id: &MachineId) {
        self.provider.accept(id);
    }

    /// Notes that a List shows a machine.
    pub(crate) fn shown(&mut self, id: &MachineId, list: ListId) {
        self.ledger.shown(id, list);
    }

    /// Whether a read that began then may show less than what was done here since.
    pub(crate) fn is_stale(&self, id: &MachineId, began: u64) -> bool {
        self.ledger.is_stale(id, began)
    }

    /// The List under way shows a machine otherwise than it is known, and is not believed.
    pub(crate) fn overtake(&mut self, id: MachineId) {
        self.provider.overtake(id);
    }

    /// A List is over.
    pub(crate) fn end_list(&mut self, list: ListId) -> Option<Listing> {
        self.provider.end_list(list)
    }

    /// Where the next List goes on.
    pub(crate) fn set_cursor(&mut self, cursor: Vec<u8>) {
        self.provider.set_cursor(cursor);
    }

    /// What a full List lacks, and what becomes of it (SH-10). `is_believed` has all of it gone:
    /// [`crate::Defect::TruncatedListBelieved`].
    pub(crate) fn sweep(
        &mut self,
        listing: &Listing,
        is_working: impl Fn(&MachineId) -> bool,
        is_believed: bool,
    ) -> Vec<(MachineId, Absence)> {
        let not_shown = self.ledger.not_shown(listing.id);
        let total = self.ledger.len();
        self.provider
            .sweep(listing, not_shown, total, is_working, is_believed)
    }

    /// A full List was taken in whole; says whether there is enough now to decide on, for the first time.
    pub(crate) fn listed(&mut self, listing: &Listing, now: Time) -> bool {
        self.ledger.settle_before(listing.began);
        self.provider.listed(now)
    }

    /// Whether enough has been seen since the start to decide on (SH-10).
    pub(crate) fn is_trusted(&self) -> bool {
        self.provider.is_trusted()
    }

    /// Complete full Lists so far.
    pub(crate) fn lists(&self) -> u32 {
        self.provider.lists()
    }

    /// Machines the last full List lacked and that are kept all the same.
    pub(crate) fn removals_held(&self) -> usize {
        self.provider.removals_held()
    }

    /// Why the provider's newest record of a machine was refused.
    pub(crate) fn refused(&self, id: &MachineId) -> Option<&String> {
        self.provider.refused(id)
    }

    /// When the provider last showed a machine; `None` if it has not since the start.
    pub(crate) fn seen_at(&self, id: &MachineId) -> Option<Time> {
        self.provider
            .seen_at(id, |list| self.ledger.is_shown(id, list))
    }

    /// Reads a machine by name before believing what a List or an ack says of it. It is no supply until
    /// then.
    pub(crate) fn doubt(&mut self, id: &MachineId) {
        if self.provider.doubt(id) && self.ledger.get(id).is_some() {
            self.set_unconfirmed(id, true);
        }
    }

    /// A Get failed, and is made again later.
    pub(crate) fn put_off(&mut self, id: &MachineId) {
        self.provider.put_off(id);
    }

    /// The time has come for a Get that failed.
    pub(crate) fn ask_again(&mut self, id: &MachineId) {
        if self.provider.ask_again(id) && self.ledger.get(id).is_some() {
            self.set_unconfirmed(id, true);
        }
    }

    /// The next Get to send, if any.
    pub(crate) fn next_get(&mut self) -> Option<(GetId, MachineId)> {
        let ledger = &mut self.ledger;
        self.provider.next_get(|| ledger.begin_read())
    }

    /// A Get came back: for which machine, and its place among reads and changes.
    pub(crate) fn got(&mut self, get: GetId) -> Option<(MachineId, u64)> {
        self.provider.got(get)
    }
}
