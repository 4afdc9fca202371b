//! The substrate: what your machines are. Here a host is a folder, and a node of a cluster is a file in it.
//!
//! Replace it with calls to your cloud, your hypervisor or your racks. Keep one property: everything may be asked for
//! twice, and the second time finds done what the first did.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use tokio::fs;

#[derive(Debug)]
pub(crate) struct Substrate {
    root: PathBuf,
}

/// What is already so is done.
fn unless(kind: ErrorKind, done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == kind => Ok(()),
        other => other,
    }
}

impl Substrate {
    pub(crate) fn open(root: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&root)?;
        Ok(Self { root })
    }

    /// Makes a host, and answers with the name it has from now on.
    pub(crate) async fn start(&self, machine: &str) -> io::Result<String> {
        let made = fs::create_dir(self.root.join(machine)).await;
        unless(ErrorKind::AlreadyExists, made)?;
        Ok(machine.to_owned())
    }

    /// Makes a host a node of a cluster. Bootstrap data is secret: hand it to the host and to nobody else. A folder has
    /// no use for it.
    pub(crate) async fn join(
        &self,
        host: &str,
        cluster: &str,
        _bootstrap: &[u8],
    ) -> io::Result<()> {
        fs::write(self.root.join(host).join("cluster"), cluster).await
    }

    /// Takes the node out of its cluster.
    pub(crate) async fn leave(&self, host: &str) -> io::Result<()> {
        let left = fs::remove_file(self.root.join(host).join("cluster")).await;
        unless(ErrorKind::NotFound, left)
    }

    /// Gives a host back.
    pub(crate) async fn stop(&self, host: &str) -> io::Result<()> {
        unless(
            ErrorKind::NotFound,
            fs::remove_dir(self.root.join(host)).await,
        )
    }

    /// Every host there is.
    pub(crate) async fn hosts(&self) -> io::Result<BTreeSet<String>> {
        let (mut hosts, mut entries) = (BTreeSet::new(), fs::read_dir(&self.root).await?);
        while let Some(entry) = entries.next_entry().await? {
            hosts.extend(entry.file_name().into_string());
        }
        Ok(hosts)
    }
}
