//! Where a run keeps its files: reports and logs stay, the rest is gone afterwards.

use crate::failure::Failure;
use std::{
    io,
    path::{Path, PathBuf},
};

/// The folders of one run.
pub(super) struct Folders {
    scratch: PathBuf,
    logs: Option<PathBuf>,
}

impl Folders {
    /// Makes them, and makes sure that reports can be written before anything is run for them.
    pub(super) fn new(out: Option<&Path>) -> Result<Self, Failure> {
        let name = format!("bigfleet-conformance-{}", std::process::id());
        let scratch = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&scratch).map_err(|why| refused(&scratch, &why))?;
        let folders = Self {
            scratch,
            logs: out.map(|out| out.join("logs")),
        };
        if let Some(out) = out {
            let writable = || -> io::Result<()> {
                std::fs::create_dir_all(out.join("logs"))?;
                let file = out.join("report.json");
                std::fs::OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(file)
                    .map(drop)
            };
            writable().map_err(|why| refused(out, &why))?;
        }
        Ok(folders)
    }

    pub(super) fn scratch(&self) -> PathBuf {
        self.scratch.clone()
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.logs.clone().unwrap_or_else(|| self.scratch.clone())
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for temporary files.
        drop(std::fs::remove_dir_all(&self.scratch));
    }
}

/// Reports cannot be written here.
pub(super) fn refused(folder: &Path, why: &io::Error) -> Failure {
    let folder = folder.display();
    Failure::Input(format!("reports cannot be written to {folder}: {why}"))
}
