//! Mutants: providers that break one promise each, to see that the checks notice.
//!
//! ```text
//! check ══ gRPC ══▶ Proxy { one defect } ══ gRPC ══▶ a provider that keeps every promise
//! ```
//!
//! The defect is in what stands between the check and a sound provider, so no provider has a switch for
//! it. The same proxy without a defect must pass everything: that run is the control.

mod defects;
mod proxy;

use std::path::{Path, PathBuf};

use crate::behaviour::Profile;
use crate::boot::{Binary, BootFailed, Provider};
use crate::runner::{Options, Outcome, run};

pub use defects::Defect;
pub(crate) use proxy::Proxy;

/// What became of one planted defect.
#[derive(Clone, Debug)]
pub struct Hunted {
    /// The defect.
    pub defect: &'static Defect,
    /// The behaviour that noticed it, and what it said; `None` if none did.
    pub caught: Option<(&'static str, String)>,
}

/// Every planted defect, hunted with the behaviours that should notice it.
pub async fn hunt(
    binary: &Binary,
    scratch: PathBuf,
    defects: &[&'static Defect],
    mut tell: impl FnMut(&Hunted),
) -> Result<Vec<Hunted>, BootFailed> {
    let mut hunted = Vec::new();
    for defect in defects {
        let folder = scratch.join(defect.name);
        let options = options(binary, &folder, defect, defect.caught_by)?;
        let reports = run(&options, |_| {}).await?;
        let caught = reports.into_iter().find_map(|report| match report.outcome {
            Outcome::Failed(why) => Some((report.behaviour.id, why)),
            Outcome::Passed | Outcome::Lacks(_) | Outcome::NotTried(_) => None,
        });
        let one = Hunted { defect, caught };
        tell(&one);
        hunted.push(one);
    }
    Ok(hunted)
}

/// What the same behaviours find through the same proxy without any defect: nothing, or they would
/// catch whatever they are shown.
pub async fn control(
    binary: &Binary,
    scratch: PathBuf,
    defects: &[&'static Defect],
) -> Result<Vec<String>, BootFailed> {
    let mut ids: Vec<&str> = defects
        .iter()
        .flat_map(|it| it.caught_by)
        .copied()
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let options = options(binary, &scratch.join("control"), &defects::NONE, &ids)?;
    let reports = run(&options, |_| {}).await?;
    let tried = reports
        .into_iter()
        .filter(|report| ids.contains(&report.behaviour.id));
    let found = tried.filter_map(|report| {
        let id = report.behaviour.id;
        match report.outcome {
            Outcome::Passed => None,
            Outcome::Failed(why) | Outcome::NotTried(why) => Some(format!("{id}: {why}")),
            Outcome::Lacks(what) => Some(format!("{id}: no {what}")),
        }
    });
    Ok(found.collect())
}

/// In a folder of its own: a state file of another run would be a restart.
fn options(
    binary: &Binary,
    folder: &Path,
    defect: &'static Defect,
    ids: &[&str],
) -> Result<Options, BootFailed> {
    std::fs::create_dir_all(folder).map_err(|source| BootFailed::Start {
        program: folder.to_owned(),
        source,
    })?;
    Ok(Options {
        profiles: Profile::ALL.to_vec(),
        filter: ids.iter().map(|id| (*id).to_owned()).collect(),
        skip_baseline: true,
        scale_seeds: 1_200,
        soak: std::time::Duration::from_millis(500),
        defect: Some(defect),
        ..Options::new(
            Provider::Binary(binary.clone()),
            "mutant",
            folder.to_owned(),
        )
    })
}
