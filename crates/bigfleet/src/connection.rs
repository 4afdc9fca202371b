//! Which shard a verb means, how it connects, and what it asks before it steers.

use crate::{
    failure::Failure,
    output::{FormArgs, say},
};
use bigfleet_ctl::{
    Answer, Client, CoordinatorClient, CtlError, Form, SteeredShard, USUAL_COORDINATOR,
    address::{Origin, Said},
};
use bigfleet_net::{Tls, TlsFlags};
use bigfleet_provider_fake::duration;
use clap::Args as ClapArgs;
use std::{
    io::{BufRead, IsTerminal},
    sync::Arc,
    time::Duration,
};

/// Which shard to call, and how.
#[derive(Debug, ClapArgs)]
pub(crate) struct ShardArgs {
    /// The shard to ask [default: BIGFLEET_SHARD, the current context, the one `bigfleet up` runs on this
    /// host, else 127.0.0.1:7780]
    #[arg(long, value_name = "HOST:PORT")]
    shard: Option<String>,
    /// How to connect.
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// How to connect to a shard, whatever its address.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConnectionArgs {
    /// The context of the config file to use: a shard and the certificates for it [default: BIGFLEET_CONTEXT]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// How long to wait for the answer to begin, and for each next part of it
    #[arg(long, value_parser = duration, default_value = "30s")]
    pub(crate) timeout: Duration,
    /// Certificates.
    #[command(flatten)]
    tls: TlsFlags,
}

/// Which coordinator to call.
#[derive(Debug, ClapArgs)]
pub(crate) struct CoordinatorArgs {
    /// The replicas of the coordinator, with commas; one is enough, it names the one that leads [default:
    /// BIGFLEET_COORDINATOR, else 127.0.0.1:7790]
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    coordinator: Vec<String>,
}

impl CoordinatorArgs {
    pub(crate) fn is_named(&self) -> bool {
        !self.coordinator.is_empty()
    }

    fn addresses(&self) -> Vec<String> {
        if self.is_named() {
            return self.coordinator.clone();
        }
        let variable = std::env::var("BIGFLEET_COORDINATOR").unwrap_or_default();
        let named = variable.split(',').filter(|one| !one.is_empty());
        let named: Vec<String> = named.map(str::to_owned).collect();
        if named.is_empty() {
            return vec![USUAL_COORDINATOR.to_owned()];
        }
        named
    }
}

/// A shard that can be asked, and how it came to be this one.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) origin: Origin,
    pub(crate) tls: Option<Arc<Tls>>,
}

impl ConnectionArgs {
    /// For a verb whose flags have other names.
    pub(crate) fn new(context: Option<String>, timeout: Duration, tls: TlsFlags) -> Self {
        Self {
            context,
            timeout,
            tls,
        }
    }

    /// Does the work with a client for the shard `said`, or for the default one.
    pub(crate) fn ask<T>(
        &self,
        said: Option<&str>,
        work: impl AsyncFnOnce(Client) -> Result<T, CtlError>,
    ) -> Result<T, Failure> {
        self.connected(said, async |connected: Connected| {
            Ok(work(connected.client).await?)
        })
    }

    /// The same for who needs to know more of the connection.
    pub(crate) fn connected<T>(
        &self,
        said: Option<&str>,
        work: impl AsyncFnOnce(Connected) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|why| Failure::Undone(format!("bigfleet: {why}")))?;
        let done = runtime.block_on(async { work(self.connect(said)?).await });
        // The live view's thread still waits for a key; do not wait for it.
        runtime.shutdown_background();
        done
    }

    /// Does the work with a client for the coordinator.
    pub(crate) fn with_coordinator<T>(
        &self,
        coordinator: &CoordinatorArgs,
        work: impl AsyncFnOnce(CoordinatorClient) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.connected(None, async |connected: Connected| {
            let client = self.coordinator(coordinator, &connected)?;
            work(client).await
        })
    }

    /// The coordinator, called with the certificates of the shard.
    fn coordinator(
        &self,
        coordinator: &CoordinatorArgs,
        connected: &Connected,
    ) -> Result<CoordinatorClient, CtlError> {
        let addresses = coordinator.addresses();
        CoordinatorClient::new(&addresses, connected.tls.clone(), self.timeout)
    }

    fn connect(&self, said: Option<&str>) -> Result<Connected, Failure> {
        let wrong = |why: &dyn std::fmt::Display| Failure::Input(why.to_string());
        let target = Said::here(said, self.context.as_deref()).target()?;
        for note in &target.notes {
            eprintln!("{note}");
        }
        let files = self.tls.files().map_err(|why| wrong(&why))?;
        let tls = files.or(target.tls).map(Tls::load).transpose();
        let tls = tls.map_err(|why| wrong(&bigfleet_net::chain(&why)))?;
        Ok(Connected {
            client: Client::new(&target.address, tls.clone(), self.timeout)?,
            origin: target.origin,
            tls,
        })
    }
}

impl ShardArgs {
    pub(crate) fn ask<T>(
        &self,
        work: impl AsyncFnOnce(Client) -> Result<T, CtlError>,
    ) -> Result<T, Failure> {
        self.connection.ask(self.shard.as_deref(), work)
    }

    pub(crate) fn connected<T>(
        &self,
        work: impl AsyncFnOnce(Connected) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.connection.connected(self.shard.as_deref(), work)
    }

    /// The same with a client that can ask the coordinator too. Who names only that means it.
    pub(crate) fn ask_fleet<T>(
        &self,
        coordinator: &CoordinatorArgs,
        work: impl AsyncFnOnce(Client) -> Result<T, CtlError>,
    ) -> Result<T, Failure> {
        let is_shard_named = self.shard.is_some() || !coordinator.is_named();
        self.connected(async |connected: Connected| {
            let asked = self.connection.coordinator(coordinator, &connected)?;
            let client = connected.client.with_coordinator(asked, is_shard_named);
            Ok(work(client).await?)
        })
    }
}

/// Why, whether to do it or only to say what would be done, and how to say it.
#[derive(Debug, ClapArgs)]
pub(crate) struct SteerArgs {
    /// Why, for whoever looks at it later; it is kept in the audit log
    #[arg(long)]
    pub(crate) reason: String,
    /// Only say what would happen
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask, although the shard was not named
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    shard: ShardArgs,
}

impl SteerArgs {
    /// Finds out which shard it is, asks if nobody named it and somebody is there to answer, does the work, and
    /// says on which shard it was done.
    pub(crate) fn steer(
        &self,
        what: &str,
        work: impl AsyncFnOnce(&Client) -> Result<Answer, CtlError>,
    ) -> Result<(), Failure> {
        let answer = self.shard.connected(async |connected: Connected| {
            let shard = SteeredShard::ask(&connected.client).await?;
            if let (Some(why), false, false) = (connected.origin.implicit(), self.yes, self.dry_run)
            {
                confirm(&format!("{what} on {shard} ({why})?"), NAME_IT)?;
            }
            let answer = work(&connected.client).await?;
            Ok(shard.sign(answer, self.dry_run, &self.form.output)?)
        })?;
        print(answer)
    }
}

impl SteerArgs {
    /// The same for a verb whose question takes asking the shard, and whose answer is a list: it is asked
    /// wherever somebody is there to answer, whichever way the shard was named.
    pub(crate) fn steer_asking(
        &self,
        question: impl AsyncFnOnce(&Client) -> Result<String, CtlError>,
        work: impl AsyncFnOnce(&Client) -> Result<Answer, CtlError>,
    ) -> Result<(), Failure> {
        let answer = self.shard.connected(async |connected: Connected| {
            let shard = SteeredShard::ask(&connected.client).await?;
            if !self.yes && !self.dry_run && is_somebody_there() {
                let question = question(&connected.client).await?;
                confirm(&format!("{question} on {shard}?"), NAME_IT)?;
            }
            let mut answer = work(&connected.client).await?;
            if matches!(self.form.output, Form::Table | Form::Wide) {
                answer.notes.push(format!("on {shard}"));
            }
            Ok(answer)
        })?;
        print(answer)
    }

    /// Whether whoever asks has said so beforehand.
    pub(crate) fn is_sure(&self) -> bool {
        self.yes
    }

    /// The form of the answer.
    pub(crate) fn form(&self) -> &Form {
        &self.form.output
    }
}

/// Whether a question can be answered.
fn is_somebody_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// How not to be asked which shard is meant.
const NAME_IT: &str = "name the shard with --shard or --context, or say --yes";

/// Asks on a terminal; where there is none, nobody could answer.
pub(crate) fn confirm(question: &str, instead: &str) -> Result<(), Failure> {
    let stdin = std::io::stdin();
    if !is_somebody_there() {
        return Ok(());
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Undone(format!("nothing was done; {instead}"))),
    }
}

impl From<CtlError> for Failure {
    fn from(error: CtlError) -> Self {
        if error.is_usage() {
            Self::Input(error.to_string())
        } else {
            Self::Undone(error.to_string())
        }
    }
}

/// Prints what there is, and fails if a part of it is not there.
pub(crate) fn print(answer: Answer) -> Result<(), Failure> {
    for note in &answer.notes {
        eprintln!("{note}");
    }
    say(&answer.text)?;
    answer.failed.map_or(Ok(()), |failed| Err(failed.into()))
}
