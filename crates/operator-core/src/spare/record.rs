//! Record: the spares as a ConfigMap keeps them, written before the roll-up that uses them (OP-67).
//!
//! ```text
//! spare profile=p%3d0%7c… bin=cpu~3600,memory~14602888806400 n=2 r=8738133
//! bar profile=p%3d0%7c… lowered=8738133 barred=8738133
//! open uid=… profile=… bins=cpu~3600,memory~14602888806400 doubted
//! ```
//!
//! One line each; whatever is not a letter, a digit or one of `-._:/` is escaped. Reading is strict: an unreadable record holds roll-ups
//! and is said aloud, since spares that are forgotten are machines that are taken away.

use super::{
    Opening, Spares,
    profile::{ProfileSpare, Spare},
};
use crate::{
    demand::class::Size,
    drain::record::{escaped, unescaped},
};
use bigfleet_model::{Amounts, Dimension};
use std::fmt::Write as _;

/// Longer records are not read: a ConfigMap has a mebibyte.
const MOST_BYTES: usize = 1 << 20;

pub(super) fn text(spares: &Spares) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for (profile, known) in &spares.profiles {
        let profile = escaped(profile);
        for spare in known.bins.values() {
            let bin = bin_text(&spare.bin);
            let _ = writeln!(
                text,
                "spare profile={profile} bin={bin} n={} r={}",
                spare.count, spare.raised_at.0
            );
        }
        if known.lowered_at.is_some() || known.barred_at.is_some() {
            let _ = write!(text, "bar profile={profile}");
            for (name, size) in [("lowered", known.lowered_at), ("barred", known.barred_at)] {
                if let Some(Size(size)) = size {
                    let _ = write!(text, " {name}={size}");
                }
            }
            text.push('\n');
        }
    }
    for (uid, opening) in &spares.openings {
        let bins: Vec<String> = opening.bins.iter().map(bin_text).collect();
        let double = if opening.doubted_since.is_some() {
            " doubted"
        } else {
            ""
        };
        let (uid, profile, bins) = (escaped(uid), escaped(&opening.profile), bins.join("+"));
        let _ = writeln!(text, "open uid={uid} profile={profile} bins={bins}{double}");
    }
    text
}

fn bin_text(bin: &Amounts) -> String {
    let entries = bin
        .iter()
        .map(|(name, milli)| format!("{}~{milli}", escaped(name.as_str())));
    entries.collect::<Vec<_>>().join(",")
}

fn bin(text: &str) -> Option<Amounts> {
    let mut entries = Vec::new();
    for entry in text.split(',').filter(|entry| !entry.is_empty()) {
        let (name, milli) = entry.split_once('~')?;
        let milli: i128 = milli.parse().ok().filter(|milli| 0 < *milli)?;
        entries.push((Dimension::new(&unescaped(name)?).ok()?, milli));
    }
    Some(Amounts::from_entries(entries))
}

/// Reads a record into empty spares; what is wrong with it otherwise.
pub(super) fn read(text: &str, spares: &mut Spares) -> Result<(), String> {
    if MOST_BYTES < text.len() {
        return Err(format!("{} bytes are more than {MOST_BYTES}", text.len()));
    }
    for (at, line) in text.lines().enumerate() {
        read_line(line, spares)
            .ok_or_else(|| format!("line {} is not a record of spares", at + 1))?;
    }
    Ok(())
}

fn read_line(line: &str, spares: &mut Spares) -> Option<()> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let words: Vec<&str> = words.collect();
    let field = |name: &str| {
        let is_it = |word: &&str| word.split_once('=').is_some_and(|(key, _)| key == name);
        words
            .iter()
            .copied()
            .find(is_it)?
            .split_once('=')
            .map(|(_, value)| value)
    };
    let size = |name: &str| field(name).map(|value| value.parse().ok().map(Size));
    let profile = unescaped(field("profile")?)?;
    match kind {
        "spare" => {
            let bin = bin(field("bin")?)?;
            let spare = Spare {
                count: field("n")?.parse().ok()?,
                raised_at: Size(field("r")?.parse().ok()?),
                bin,
            };
            spares.profile(&profile).put(spare);
        }
        "bar" => {
            let known: &mut ProfileSpare = spares.profile(&profile);
            known.lowered_at = size("lowered").map_or(Some(None), |size| size.map(Some))?;
            known.barred_at = size("barred").map_or(Some(None), |size| size.map(Some))?;
        }
        "open" => {
            let bins = field("bins")?
                .split('+')
                .filter(|text| !text.is_empty())
                .map(bin);
            let opening = Opening {
                bins: bins.collect::<Option<Vec<_>>>()?,
                doubted_since: words
                    .contains(&"doubted")
                    .then_some(bigfleet_model::Time::ZERO),
                seen: None,
                profile,
            };
            spares.openings.insert(unescaped(field("uid")?)?, opening);
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_nonsense_does_not() {
        let entries = [("cpu", 3600), ("memory", 14_602_888_806_400), ("a b", 7)];
        let bin = Amounts::from_entries(
            entries.map(|(name, milli)| (Dimension::new(name).unwrap(), milli)),
        );
        let mut spares = Spares::default();
        let known = spares.profile("p=0|ipb=1 |reqs=");
        known.put(Spare {
            bin: bin.clone(),
            count: 2,
            raised_at: Size(77),
        });
        (known.lowered_at, known.barred_at) = (Some(Size(5)), None);
        let opening = Opening {
            profile: "p=0".to_owned(),
            bins: vec![bin.clone(), bin],
            doubted_since: Some(bigfleet_model::Time::ZERO),
            seen: None,
        };
        spares.openings.insert("uid-1".to_owned(), opening);
        let text = text(&spares);
        let mut again = Spares::default();
        assert_eq!(read(&text, &mut again), Ok(()));
        assert_eq!(super::text(&again), text);
        for line in [
            "x",
            "spare profile=a bin=cpu~1 n=-1 r=0",
            "spare bin=cpu~1 n=1 r=0",
            "spare profile=a bin=cpu~0 n=1 r=0",
            "bar profile=a lowered=x",
        ] {
            assert!(read(line, &mut Spares::default()).is_err(), "{line}");
        }
    }
}
