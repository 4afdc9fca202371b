//! Roster: which objects there are, so that a new list also says which are gone.

use bigfleet_k8s::{Followed, Place};
use std::collections::BTreeSet;

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Seen(Place),
    Gone(Place),
}

/// The names of all objects of a kind.
#[derive(Debug, Default)]
pub(super) struct Roster {
    known: BTreeSet<Place>,
    filling: Option<BTreeSet<Place>>,
    is_whole: bool,
}

impl Roster {
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// What changed, and the object of a change that is `Seen`. An object that cannot be read is as it was.
    pub(super) fn take<T>(&mut self, told: Followed<T>) -> (Vec<Change>, Option<T>) {
        match told {
            Followed::Began => self.filling = Some(BTreeSet::new()),
            Followed::Seen(seen) => {
                if let Some(filling) = &mut self.filling {
                    filling.insert(seen.place.clone());
                }
                self.known.insert(seen.place.clone());
                return match seen.object {
                    Ok(object) => (vec![Change::Seen(seen.place)], Some(object)),
                    Err(why) => {
                        tracing::warn!(place = ?seen.place, %why, "an object cannot be read");
                        (Vec::new(), None)
                    }
                };
            }
            Followed::Gone(place, _) => {
                if let Some(filling) = &mut self.filling {
                    filling.remove(&place);
                }
                self.known.remove(&place);
                return (vec![Change::Gone(place)], None);
            }
            Followed::Whole(_) => {
                self.is_whole = true;
                if let Some(filled) = self.filling.take() {
                    let gone: Vec<Place> = self.known.difference(&filled).cloned().collect();
                    self.known = filled;
                    return (gone.into_iter().map(Change::Gone).collect(), None);
                }
            }
            Followed::Fresh(_) => {}
            Followed::Broken(_) => self.filling = None,
        }
        (Vec::new(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_k8s::Seen;

    fn place(name: &str) -> Place {
        Place {
            namespace: "n".to_owned(),
            name: name.to_owned(),
        }
    }

    fn seen(name: &str) -> Followed<u8> {
        Followed::Seen(Seen {
            place: place(name),
            version: 1,
            object: Ok(1),
        })
    }

    #[test]
    fn a_new_list_says_what_is_gone_and_a_broken_one_says_nothing() {
        let mut roster = Roster::default();
        roster.take(Followed::<u8>::Began);
        roster.take(seen("a"));
        roster.take(seen("b"));
        assert!(!roster.is_whole());
        assert_eq!(roster.take(Followed::<u8>::Whole(1)).0, []);
        roster.take(Followed::<u8>::Began);
        roster.take(seen("b"));
        assert_eq!(roster.take(Followed::<u8>::Broken(None)).0, []);
        roster.take(Followed::<u8>::Began);
        roster.take(seen("b"));
        assert_eq!(
            roster.take(Followed::<u8>::Whole(2)).0,
            [Change::Gone(place("a"))]
        );
    }
}
