//! Names: clusters that many machines name, as one copy each.
//!
//! A fleet has hundreds of machines for each cluster, and a copy of its name for each of them would be a
//! good part of what a machine takes.

use std::collections::BTreeSet;

use bigfleet_model::{ClusterId, IdRefused};

/// Names kept at once. With more clusters than that some have more than one copy.
const KEPT: usize = 8192;

/// The clusters named so far.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeSet<ClusterId>);

impl Names {
    /// The cluster of that name.
    pub(crate) fn cluster(&mut self, text: &str) -> Result<ClusterId, IdRefused> {
        if let Some(known) = self.0.get(text) {
            return Ok(known.clone());
        }
        if self.0.len() == KEPT {
            self.0.clear();
        }
        let cluster = ClusterId::new(text)?;
        self.0.insert(cluster.clone());
        Ok(cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_copy_and_names_are_bounded() {
        let mut names = Names::default();
        for number in 0..2 * KEPT {
            let text = format!("cluster-{number}");
            let first = names.cluster(&text).unwrap();
            assert_eq!(first.as_str(), text);
            let again = names.cluster(&text).unwrap();
            assert!(std::ptr::eq(first.as_str(), again.as_str()), "one copy");
            assert!(names.0.len() <= KEPT);
        }
        assert_eq!(names.cluster(""), Err(IdRefused::Empty));
    }
}
