//! A scene: a folder, a provider and a shard, as processes of the program that is measured.

use std::path::{Path, PathBuf};

use super::demand::offerings;
use super::process::Process;
use super::report::NotMeasured;

/// A folder that is gone afterwards.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(parent: &Path, part: &str) -> Result<Self, NotMeasured> {
        let name = format!("bigfleet-bench-{}-{part}", std::process::id());
        let folder = parent.join(name);
        std::fs::create_dir_all(&folder)
            .map_err(NotMeasured::system(folder.display().to_string()))?;
        Ok(Self(folder))
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// A cloud of Idle machines, in memory, in which everything happens at once.
    pub(crate) async fn provider(
        &self,
        program: &Path,
        machines: usize,
    ) -> Result<Process, NotMeasured> {
        let file = self.0.join("offerings.json");
        std::fs::write(&file, offerings(machines))
            .map_err(NotMeasured::system(file.display().to_string()))?;
        let flags = vec![
            "--addr=127.0.0.1:0".to_owned(),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            "--latency=0s".to_owned(),
            // Nothing but the shard changes this cloud.
            "--reconcile-interval=24h".to_owned(),
            format!("--offerings={}", file.display()),
        ];
        Process::start(program, "provider", &["provider", "fake"], flags).await
    }

    /// A shard as it is run in production, but for these flags and where it listens.
    pub(crate) async fn shard(
        &self,
        program: &Path,
        provider: &Process,
        differing: &[&str],
    ) -> Result<Process, NotMeasured> {
        let mut flags = vec![
            "--listen=127.0.0.1:0".to_owned(),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            format!("--id={SHARD}"),
            format!("--data-dir={}", self.data().display()),
            format!("--provider-addr={}", provider.addr),
        ];
        flags.extend(differing.iter().map(|flag| (*flag).to_owned()));
        Process::start(program, "shard", &["shard"], flags).await
    }
}

/// Lists often, and only what changed. An operation ends when a List shows its end, and 4,096 may be under
/// way: so the interval bounds how many machines can be bound in a second, whatever anything costs.
pub(crate) const FAST_LISTS: [&str; 2] = ["--cycle-interval=250ms", "--incremental-reconcile"];
/// The shard's id.
pub(crate) const SHARD: &str = "bench";

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind in a folder for what may be left behind does no harm.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
