//! Names on the command line: what there is, and what was probably meant.

use bigfleet_sim::{Defect, Scenario};

/// At most so many names are offered.
const OFFERED: usize = 3;

/// The scenario of this name.
pub(crate) fn scenario(name: &str) -> Result<Scenario, String> {
    let names = || {
        Scenario::all()
            .iter()
            .map(|one| one.name.to_owned())
            .collect()
    };
    Scenario::named(name).ok_or_else(|| unknown("scenario", name, names()))
}

/// The defect of this name.
pub(crate) fn defect(name: &str) -> Result<Defect, String> {
    let names = || Defect::all().into_iter().map(Defect::name).collect();
    Defect::named(name).ok_or_else(|| unknown("defect", name, names()))
}

fn unknown(what: &str, name: &str, names: Vec<String>) -> String {
    let known = "`bigfleet sim list` names them";
    let near = near(name, names);
    if near.is_empty() {
        format!("there is no {what} {name}; {known}")
    } else {
        format!(
            "there is no {what} {name}; near it: {}; {known}",
            near.join(", ")
        )
    }
}

/// The nearest first: at most a third of the letters mistyped, a part of the name left out, or the same
/// beginning and much of the rest.
fn near(name: &str, names: Vec<String>) -> Vec<String> {
    let typed = name.to_lowercase();
    let apart = |known: &str| match strsim::damerau_levenshtein(&typed, known) {
        apart if apart <= typed.chars().count().div_ceil(3) => Some(apart),
        _ if 2 < typed.len() && (known.contains(&typed) || typed.contains(known)) => Some(100),
        apart if 0.88 <= strsim::jaro_winkler(&typed, known) => Some(100 + apart),
        _ => None,
    };
    let ranked = names
        .into_iter()
        .filter_map(|known| Some((apart(&known)?, known)));
    let mut ranked: Vec<(usize, String)> = ranked.collect();
    ranked.sort();
    ranked
        .into_iter()
        .take(OFFERED)
        .map(|(_, known)| known)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_met_by_its_neighbours() {
        let told = |name: &str| scenario(name).unwrap_err();
        assert!(
            told("twinz").contains("near it: twins;"),
            "{}",
            told("twinz")
        );
        assert!(
            told("Soak-Shrot").contains("soak-short"),
            "{}",
            told("Soak-Shrot")
        );
        assert!(told("runway_burst").contains("near it: runway-burst"));
        assert!(
            told("scarcity").contains("scarcity-5k"),
            "{}",
            told("scarcity")
        );
        assert!(!told("xyzzy").contains("near it"), "{}", told("xyzzy"));
        let told = defect("reclaim-of").unwrap_err();
        assert!(told.contains("near it: reclaim-cap-off"), "{told}");
    }
}
