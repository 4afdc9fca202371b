//! A provider whose hosts are folders: the whole of what an author writes.
//!
//! ```text
//! create ─▶ mkdir    configure ─▶ write user-data    drain ─▶ remove it    delete ─▶ rmdir
//! ```
//!
//! `cargo run -p bigfleet-provider-kit --example provider-folder -- --addr 127.0.0.1:9000`

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_provider_kit::{
    Backend, CapacityType, Created, Failure, Faithful, Host, Instance, Job, Offer, Readiness,
    Settings, run,
};
use clap::Parser;
use tokio::fs;

/// A provider whose hosts are folders.
#[derive(Parser)]
struct Flags {
    /// Where it listens.
    #[arg(long, default_value = "127.0.0.1:9000")]
    addr: String,
    /// The folder its hosts are made in; one below the temporary directory if it is not given.
    #[arg(long)]
    root: Option<PathBuf>,
    /// Where it keeps what it must remember; without it a restart forgets.
    #[arg(long)]
    state: Option<PathBuf>,
    /// How many machines it offers.
    #[arg(long, default_value_t = 32)]
    seed_count: usize,
}

struct Folders {
    root: PathBuf,
    offers: Vec<(String, Arc<Offer>)>,
}

impl Folders {
    fn path(&self, job: &Job) -> PathBuf {
        self.root.join(job.machine.id.as_str())
    }

    fn host(&self, id: &str) -> Host {
        Host {
            provider: "folder".to_owned(),
            reference: id.to_owned(),
        }
    }
}

fn failed(error: std::io::Error) -> Failure {
    Failure::retryable(error.to_string())
}

/// What is already so is done: every step may be asked for twice.
fn unless(kind: ErrorKind, done: std::io::Result<()>) -> Result<(), Failure> {
    match done {
        Err(error) if error.kind() == kind => Ok(()),
        other => other.map_err(failed),
    }
}

impl Backend for Folders {
    async fn describe(&self) -> Result<Vec<Instance>, Failure> {
        let mut instances = Vec::new();
        for (id, offer) in &self.offers {
            let exists = fs::try_exists(self.root.join(id)).await.map_err(failed)?;
            instances.push(Instance {
                id: id.clone(),
                host: exists.then(|| self.host(id)),
                hint: None,
                offer: Arc::clone(offer),
            });
        }
        Ok(instances)
    }

    async fn create(&self, job: Job) -> Result<Created, Failure> {
        unless(
            ErrorKind::AlreadyExists,
            fs::create_dir(self.path(&job)).await,
        )?;
        let host = self.host(job.machine.id.as_str());
        Ok(Created {
            host,
            ..Created::default()
        })
    }

    async fn configure(&self, job: Job, blob: Arc<[u8]>) -> Result<(), Failure> {
        let user_data = self.path(&job).join("user-data");
        fs::write(user_data, &blob).await.map_err(failed)
    }

    async fn drain(&self, job: Job, _grace: Duration) -> Result<(), Failure> {
        let user_data = self.path(&job).join("user-data");
        unless(ErrorKind::NotFound, fs::remove_file(user_data).await)
    }

    async fn delete(&self, job: Job) -> Result<(), Failure> {
        unless(ErrorKind::NotFound, fs::remove_dir(self.path(&job)).await)
    }

    fn deletes(&self) -> bool {
        true
    }

    // A folder is ready as soon as its user data is written.
    fn readiness(&self) -> Readiness {
        Readiness::BackendWaits
    }
}

fn catalogue(count: usize) -> Vec<(String, Arc<Offer>)> {
    let texts = |cpu: &str, memory: &str| {
        BTreeMap::from([
            ("cpu".to_owned(), cpu.to_owned()),
            ("memory".to_owned(), memory.to_owned()),
        ])
    };
    let offer = Arc::new(Offer {
        instance_type: "folder.small".to_owned(),
        zone: "desk".to_owned(),
        capacity_type: CapacityType::OnDemand,
        price_per_hour: 0.01,
        interruption_probability: 0.0,
        resources: texts("2", "4Gi"),
        allocatable: texts("1900m", "3Gi"),
        labels: BTreeMap::new(),
    });
    (0..count)
        .map(|index| (format!("folder-{index:04}"), Arc::clone(&offer)))
        .collect()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flags = Flags::parse();
    let root = (flags.root).unwrap_or_else(|| std::env::temp_dir().join("folders"));
    fs::create_dir_all(&root).await?;
    let mut settings = Settings::new("folder", &flags.addr);
    settings.state = flags.state;
    let backend = Folders {
        root,
        offers: catalogue(flags.seed_count),
    };
    Ok(run(Arc::new(backend), Arc::new(Faithful), settings).await?)
}
