//! The everyday verbs against a running shard: flags to what is asked, answers to stdout.

use crate::{failure::Failure, output::say};
use bigfleet_ctl::{
    Answer, Client, CtlError, Described, Form, PauseTarget, Resource, Selection, Selector, Style,
    address,
    live::{self, LiveOptions},
};
use bigfleet_net::{Tls, TlsFlags, asked_to_end};
use bigfleet_provider_fake::duration;
use clap::Args as ClapArgs;
use std::{io::IsTerminal, time::Duration};

/// Which shard to call, and how.
#[derive(Debug, ClapArgs)]
pub(crate) struct ShardArgs {
    /// The shard to ask [default: the one `bigfleet up` runs on this host, else 127.0.0.1:7780]
    #[arg(long, value_name = "HOST:PORT")]
    shard: Option<String>,
    /// How to connect.
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// How to connect to a shard, whatever its address.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConnectionArgs {
    /// How long to wait for the answer to begin, and for each next part of it
    #[arg(long, value_parser = duration, default_value = "30s")]
    timeout: Duration,
    /// Certificates.
    #[command(flatten)]
    tls: TlsFlags,
}

impl ConnectionArgs {
    /// Does the work with a client for the shard `said`, or for the default one.
    pub(crate) fn ask<T>(
        &self,
        said: Option<&str>,
        work: impl AsyncFnOnce(Client) -> Result<T, CtlError>,
    ) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|why| Failure::Undone(format!("bigfleet: {why}")))?;
        let done = runtime.block_on(async {
            let client = self.client(said)?;
            Ok(work(client).await?)
        });
        // The live view's thread still waits for a key; do not wait for it.
        runtime.shutdown_background();
        done
    }

    fn client(&self, said: Option<&str>) -> Result<Client, Failure> {
        let wrong = |why: &dyn std::fmt::Display| Failure::Input(why.to_string());
        let files = self.tls.files().map_err(|why| wrong(&why))?;
        let tls = files.map(Tls::load).transpose();
        let tls = tls.map_err(|why| wrong(&bigfleet_net::chain(&why)))?;
        Ok(Client::new(&address::target(said), tls, self.timeout)?)
    }
}

impl ShardArgs {
    fn ask<T>(&self, work: impl AsyncFnOnce(Client) -> Result<T, CtlError>) -> Result<T, Failure> {
        self.connection.ask(self.shard.as_deref(), work)
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

/// `bigfleet get`.
#[derive(Debug, ClapArgs)]
pub(crate) struct GetArgs {
    /// What to list; the singular and a short name work too: machines, machine, ma
    #[arg(value_enum)]
    resource: Resource,
    /// Only the entries of these names
    names: Vec<String>,
    /// Only the entries of this cluster
    #[arg(long, default_value = "", hide_default_value = true)]
    cluster: String,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    limit: usize,
    /// Of events: only those of so long ago or later, such as 90s, 10m or 2h
    #[arg(long, value_name = "SPAN", value_parser = duration, default_value = "0s", hide_default_value = true)]
    since: Duration,
    #[command(flatten)]
    select: SelectArgs,
    /// Leave out the line with the column names
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    shard: ShardArgs,
}

/// Which entries to print, and in which form.
#[derive(Debug, ClapArgs)]
struct SelectArgs {
    /// Only entries with these labels or columns: key=value, key!=value, key in (a, b), key, !key;
    /// several with commas
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = None)]
    selector: Option<Selector>,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,
}

/// Lists.
pub(crate) fn get(args: &GetArgs) -> Result<(), Failure> {
    let selection = Selection {
        names: args.names.clone(),
        cluster: args.cluster.clone(),
        selector: args.select.selector.clone().unwrap_or_default(),
        limit: args.limit,
        since: args.since,
    };
    let style = Style {
        form: args.select.output,
        no_headers: args.no_headers,
        colour: has_colour(),
    };
    let got = async |client| bigfleet_ctl::get(&client, args.resource, &selection, style).await;
    print(args.shard.ask(got)?)
}

/// `bigfleet describe`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DescribeArgs {
    /// What to describe
    #[arg(value_enum)]
    kind: Described,
    /// Its name, as `bigfleet get` shows it
    name: String,
    /// The cluster of the Need, if several clusters have one of that name
    #[arg(long, default_value = "", hide_default_value = true)]
    cluster: String,
    #[command(flatten)]
    shard: ShardArgs,
}

/// Describes.
pub(crate) fn describe(args: &DescribeArgs) -> Result<(), Failure> {
    let (kind, name, cluster) = (args.kind, &args.name, &args.cluster);
    let described =
        async |client| bigfleet_ctl::describe(&client, kind, name, cluster, has_colour()).await;
    print(args.shard.ask(described)?)
}

/// `bigfleet explain`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// The cluster, or CLUSTER/NEED
    cluster: String,
    /// The Need (what the cluster asks for), by the name `bigfleet get needs` shows or by its fingerprint
    /// (its requirements as one text) [default: every Need of the cluster]
    need: Option<String>,
    /// Explain at most this many Needs, and never more than twenty [default: 20]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    limit: usize,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    shard: ShardArgs,
}

/// Explains.
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let selection = Selection {
        names: Vec::from_iter(args.need.clone()),
        cluster: args.cluster.clone(),
        selector: args.select.selector.clone().unwrap_or_default(),
        limit: args.limit,
        ..Selection::default()
    };
    let form = args.select.output;
    let explained = async |client| bigfleet_ctl::explain(&client, &selection, form).await;
    print(args.shard.ask(explained)?)
}

/// `bigfleet top`.
#[derive(Debug, ClapArgs)]
pub(crate) struct TopArgs {
    /// How often to ask the shard
    #[arg(long, value_parser = duration, default_value = "1s")]
    every: Duration,
    #[command(flatten)]
    shard: ShardArgs,
}

/// Shows the live view until somebody leaves it.
pub(crate) fn top(args: &TopArgs) -> Result<(), Failure> {
    let options = LiveOptions {
        every: args.every.max(Duration::from_millis(100)),
        colour: has_colour(),
        ..LiveOptions::default()
    };
    args.shard.ask(async |client| {
        let asked = asked_to_end().map_err(|why| CtlError::Local(why.to_string()))?;
        tokio::select! {
            shown = live::run(client, options) => shown,
            () = asked => Ok(()),
        }
    })
}

/// What to pause or resume, and why.
#[derive(Debug, ClapArgs)]
struct SteerArgs {
    /// Only changes for this cluster
    #[arg(long, conflicts_with = "provider")]
    cluster: Option<String>,
    /// Only changes through this provider, by its address or name
    #[arg(long)]
    provider: Option<String>,
    /// Why, for whoever looks at it later; it is kept in the audit log
    #[arg(long)]
    reason: String,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    shard: ShardArgs,
}

impl SteerArgs {
    fn target(&self) -> PauseTarget {
        match (&self.cluster, &self.provider) {
            (Some(cluster), _) => PauseTarget::Cluster(cluster.clone()),
            (None, Some(provider)) => PauseTarget::Provider(provider.clone()),
            (None, None) => PauseTarget::All,
        }
    }
}

/// `bigfleet pause`.
#[derive(Debug, ClapArgs)]
pub(crate) struct PauseArgs {
    /// How long; a pause always ends by itself
    #[arg(long = "for", value_parser = duration, default_value = "30m", value_name = "DURATION")]
    lasting: Duration,
    #[command(flatten)]
    steer: SteerArgs,
}

/// Pauses.
pub(crate) fn pause(args: &PauseArgs) -> Result<(), Failure> {
    if args.lasting.is_zero() {
        let why = "--for 0s: a pause lasts at least a second; to end one, use `bigfleet resume`";
        return Err(Failure::Input(why.to_owned()));
    }
    let target = args.steer.target();
    let (reason, dry_run) = (&args.steer.reason, args.steer.dry_run);
    let paused =
        async |client| bigfleet_ctl::pause(&client, &target, args.lasting, reason, dry_run).await;
    print(args.steer.shard.ask(paused)?)
}

/// `bigfleet resume`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    steer: SteerArgs,
}

/// Resumes.
pub(crate) fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    let (reason, dry_run) = (&args.steer.reason, args.steer.dry_run);
    let target = args.steer.target();
    let resumed = async |client| bigfleet_ctl::resume(&client, &target, reason, dry_run).await;
    print(args.steer.shard.ask(resumed)?)
}

/// Why, and whether to do it or only to say what would be done.
#[derive(Debug, ClapArgs)]
struct WhyArgs {
    /// Why, for whoever looks at it later; it is kept in the audit log
    #[arg(long)]
    reason: String,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    shard: ShardArgs,
}

/// `bigfleet retire`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RetireArgs {
    /// The machine; its state has to be Failed
    machine: String,
    #[command(flatten)]
    why: WhyArgs,
}

/// Retires.
pub(crate) fn retire(args: &RetireArgs) -> Result<(), Failure> {
    let (machine, reason, dry_run) = (&args.machine, &args.why.reason, args.why.dry_run);
    let retired = async |client| bigfleet_ctl::retire(&client, machine, reason, dry_run).await;
    print(args.why.shard.ask(retired)?)
}

/// `bigfleet release`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReleaseArgs {
    /// The cluster; its operator must not be connected
    cluster: String,
    /// How many machines the cluster has, as --dry-run prints it: a mistyped name then releases nothing
    #[arg(long, required_unless_present = "dry_run", default_value = None)]
    machines: Option<usize>,
    #[command(flatten)]
    why: WhyArgs,
}

/// Releases.
pub(crate) fn release(args: &ReleaseArgs) -> Result<(), Failure> {
    let (cluster, machines) = (&args.cluster, args.machines.unwrap_or_default());
    let (reason, dry_run) = (&args.why.reason, args.why.dry_run);
    let released =
        async |client| bigfleet_ctl::release(&client, cluster, machines, reason, dry_run).await;
    print(args.why.shard.ask(released)?)
}

fn print(answer: Answer) -> Result<(), Failure> {
    for note in &answer.notes {
        eprintln!("{note}");
    }
    say(&answer.text)
}

/// Colours are for people who see them and have not said no (<https://no-color.org>).
pub(crate) fn has_colour() -> bool {
    let said_no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !said_no && !dumb
}
