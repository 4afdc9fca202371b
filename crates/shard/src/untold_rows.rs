//! Untold rows: where rows stand that an operator was not told yet, the newest word on each (SV-11).
//!
//! A word takes the place of the one that waits, so an operator that does not read keeps no more of them in
//! memory than it has rows.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::{NeedStatus, NeedStatusRow};

/// Rows in one frame.
const MOST_ROWS: usize = 512;
/// Bytes in one frame, but for a single row that has more.
const MOST_BYTES: usize = 1 << 20;

/// The text of a row's profile, and its group.
pub(crate) type RowName = (String, String);

/// Rows that wait to be told.
#[derive(Debug, Default)]
pub(crate) struct UntoldRows {
    rows: BTreeMap<RowName, NeedStatusRow>,
    bytes: usize,
    /// They are all there are.
    complete: bool,
}

impl UntoldRows {
    /// Adds what is to be told. `complete` replaces everything that waits.
    pub(crate) fn add(&mut self, rows: Vec<NeedStatusRow>, complete: bool) {
        if complete {
            *self = Self::default();
            self.complete = true;
        }
        for row in rows {
            self.bytes += size(&row);
            let name = (row.profile_fingerprint.clone(), row.group.clone());
            if let Some(older) = self.rows.insert(name, row) {
                self.bytes -= size(&older);
            }
        }
    }

    /// The next frame. Only one that names every row says that it is complete.
    pub(crate) fn next(&mut self) -> Option<NeedStatus> {
        if self.rows.is_empty() && !self.complete {
            return None;
        }
        let complete = std::mem::take(&mut self.complete)
            && self.rows.len() <= MOST_ROWS
            && self.bytes <= MOST_BYTES;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(first) = self.rows.first_entry() {
            let next = size(first.get());
            if MOST_ROWS <= rows.len() || (!rows.is_empty() && MOST_BYTES < bytes + next) {
                break;
            }
            bytes += next;
            rows.push(first.remove());
        }
        self.bytes -= bytes;
        (complete || !rows.is_empty()).then_some(NeedStatus { rows, complete })
    }
}

fn size(row: &NeedStatusRow) -> usize {
    const AMOUNTS: usize = 256;
    row.profile_fingerprint.len() + row.group.len() + row.sentence.len() + AMOUNTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(group: usize, word: &str, profile: &str) -> NeedStatusRow {
        NeedStatusRow {
            profile_fingerprint: profile.to_owned(),
            group: format!("{group:05}"),
            reason: word.to_owned(),
            ..NeedStatusRow::default()
        }
    }

    fn frames(untold: &mut UntoldRows) -> Vec<(usize, bool)> {
        let frames = std::iter::from_fn(|| untold.next());
        frames
            .map(|frame| (frame.rows.len(), frame.complete))
            .collect()
    }

    #[test]
    fn only_the_newest_word_on_a_row_waits() {
        let mut untold = UntoldRows::default();
        for word in ["Coming", "Stuck", "Served"] {
            untold.add(vec![row(1, word, ""), row(2, word, "")], false);
        }
        let frame = untold.next().unwrap();
        let words: Vec<_> = frame.rows.iter().map(|row| row.reason.as_str()).collect();
        assert_eq!((words, frame.complete), (vec!["Served"; 2], false));
        assert_eq!(untold.next(), None);
        assert_eq!(untold.bytes, 0);
    }

    #[test]
    fn a_frame_that_does_not_name_every_row_never_says_so() {
        let mut untold = UntoldRows::default();
        untold.add(
            (0..512).map(|group| row(group, "Coming", "")).collect(),
            true,
        );
        assert_eq!(frames(&mut untold), [(512, true)]);
        untold.add(
            (0..513).map(|group| row(group, "Coming", "")).collect(),
            true,
        );
        assert_eq!(frames(&mut untold), [(512, false), (1, false)]);
        untold.add(vec![row(1, "Coming", "")], false);
        untold.add(Vec::new(), true);
        assert_eq!(frames(&mut untold), [(0, true)], "there are none any more");
        let long = "x".repeat(MOST_BYTES / 2);
        untold.add(
            (0..3).map(|group| row(group, "Coming", &long)).collect(),
            true,
        );
        assert_eq!(frames(&mut untold), [(1, false); 3]);
        assert_eq!(untold.bytes, 0);
    }
}
