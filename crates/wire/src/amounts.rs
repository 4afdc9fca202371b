//! Resource vectors as text, both ways.

use std::collections::BTreeMap;

use bigfleet_model::{Amounts, quantity::format_milli};

use crate::v1alpha1::Resources;

impl From<&Amounts> for Resources {
    /// Plain integers where they are, else `<n>m`.
    fn from(amounts: &Amounts) -> Self {
        let resources = texts(amounts);
        Self { resources }
    }
}

/// Resource name to quantity text.
pub(crate) fn texts(amounts: &Amounts) -> BTreeMap<String, String> {
    let text = |(name, milli): (&_, i128)| (ToString::to_string(name), format_milli(milli));
    amounts.iter().map(text).collect()
}

/// The vector as a message, absent when it is empty.
pub(crate) fn stated(amounts: &Amounts) -> Option<Resources> {
    (!amounts.is_zero()).then(|| amounts.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::Dimension;

    #[test]
    fn whole_amounts_are_plain_and_others_in_milli() {
        let dimension = |name| Dimension::new(name).unwrap();
        let entries = [(dimension("cpu"), 1500), (dimension("memory"), 2000)];
        let amounts = Amounts::from_entries(entries);
        let texts = texts(&amounts);
        assert_eq!(texts["cpu"], "1500m");
        assert_eq!(texts["memory"], "2");
        assert_eq!(stated(&Amounts::NONE), None);
    }
}
