//! The everyday verbs against a running shard: flags to what is asked, answers to stdout.

use crate::{failure::Failure, output::say};
use bigfleet_ctl::{
    Answer, Client, Described, Form, Kind, Selector, Steered, Style, Trouble, Wanted, address,
    live::{self, LiveOptions},
};
use bigfleet_net::{Tls, TlsFlags, asked_to_end};
use bigfleet_provider_fake::duration;
use clap::Args as ClapArgs;
use std::{io::IsTerminal, time::Duration};

/// Which shard, and how it is reached.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReachArgs {
    /// The shard; by default the one `bigfleet up` runs, else 127.0.0.1:7780.
    #[arg(long, value_name = "HOST:PORT")]
    shard: Option<String>,
    /// The way there.
    #[command(flatten)]
    way: WayArgs,
}

/// How a shard is reached, wherever it is.
#[derive(Debug, ClapArgs)]
pub(crate) struct WayArgs {
    /// How long to wait for an answer, and for each next part of it.
    #[arg(long, value_parser = duration, default_value = "30s")]
    timeout: Duration,
    /// Certificates.
    #[command(flatten)]
    tls: TlsFlags,
}

impl WayArgs {
    /// Asks the shard that was said, or the one that is there by default.
    pub(crate) fn ask<T>(
        &self,
        said: Option<&str>,
        work: impl AsyncFnOnce(Client) -> Result<T, Trouble>,
    ) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|why| Failure::Undone(format!("bigfleet: {why}")))?;
        let done = runtime.block_on(async {
            let client = self.client(said)?;
            Ok(work(client).await?)
        });
        // A thread that waits for a key nobody will press must not hold up the end.
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

impl ReachArgs {
    fn ask<T>(&self, work: impl AsyncFnOnce(Client) -> Result<T, Trouble>) -> Result<T, Failure> {
        self.way.ask(self.shard.as_deref(), work)
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        if trouble.is_usage() {
            Self::Input(trouble.to_string())
        } else {
            Self::Undone(trouble.to_string())
        }
    }
}

/// `bigfleet get`.
#[derive(Debug, ClapArgs)]
pub(crate) struct GetArgs {
    /// What to list; one, several or a short name: machine, machines, ma.
    #[arg(value_enum)]
    kind: Kind,
    /// Only those called so.
    names: Vec<String>,
    /// Only what concerns this cluster.
    #[arg(long, default_value = "", hide_default_value = true)]
    cluster: String,
    /// At most so many; 0 for all.
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    limit: usize,
    #[command(flatten)]
    select: SelectArgs,
    /// Leave out the line with the names of the columns.
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

/// Which entries, and in which form.
#[derive(Debug, ClapArgs)]
struct SelectArgs {
    /// Only what has these labels or columns: key=value, key!=value, key in (a, b), key, !key.
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = None)]
    selector: Option<Selector>,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,
}

/// Lists.
pub(crate) fn get(args: &GetArgs) -> Result<(), Failure> {
    let wanted = Wanted {
        names: args.names.clone(),
        cluster: args.cluster.clone(),
        selector: args.select.selector.clone().unwrap_or_default(),
        limit: args.limit,
    };
    let style = Style {
        form: args.select.output,
        no_headers: args.no_headers,
        colour: has_colour(),
    };
    let got = async |client| bigfleet_ctl::get(&client, args.kind, &wanted, style).await;
    print(args.reach.ask(got)?)
}

/// `bigfleet describe`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DescribeArgs {
    /// What it is.
    #[arg(value_enum)]
    kind: Described,
    /// What it is called.
    name: String,
    /// The cluster of a Need, if its name alone does not tell.
    #[arg(long, default_value = "", hide_default_value = true)]
    cluster: String,
    #[command(flatten)]
    reach: ReachArgs,
}

/// Describes.
pub(crate) fn describe(args: &DescribeArgs) -> Result<(), Failure> {
    let (kind, name, cluster) = (args.kind, &args.name, &args.cluster);
    let described =
        async |client| bigfleet_ctl::describe(&client, kind, name, cluster, has_colour()).await;
    print(args.reach.ask(described)?)
}

/// `bigfleet explain`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// The cluster, or CLUSTER/NEED.
    cluster: String,
    /// The Need: its name or its fingerprint; without one, all of the cluster.
    need: Option<String>,
    /// At most so many Needs; never more than twenty.
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    limit: usize,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    reach: ReachArgs,
}

/// Explains.
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let wanted = Wanted {
        names: Vec::from_iter(args.need.clone()),
        cluster: args.cluster.clone(),
        selector: args.select.selector.clone().unwrap_or_default(),
        limit: args.limit,
    };
    let form = args.select.output;
    let explained = async |client| bigfleet_ctl::explain(&client, &wanted, form).await;
    print(args.reach.ask(explained)?)
}

/// `bigfleet top`.
#[derive(Debug, ClapArgs)]
pub(crate) struct TopArgs {
    /// How often the shard is asked.
    #[arg(long, value_parser = duration, default_value = "1s")]
    every: Duration,
    #[command(flatten)]
    reach: ReachArgs,
}

/// Shows the live view until somebody leaves it.
pub(crate) fn top(args: &TopArgs) -> Result<(), Failure> {
    let options = LiveOptions {
        every: args.every.max(Duration::from_millis(100)),
        colour: has_colour(),
        ..LiveOptions::default()
    };
    args.reach.ask(async |client| {
        let asked = asked_to_end().map_err(|why| Trouble::Here(why.to_string()))?;
        tokio::select! {
            shown = live::run(client, options) => shown,
            () = asked => Ok(()),
        }
    })
}

/// What is steered, and why.
#[derive(Debug, ClapArgs)]
struct SteerArgs {
    /// Only what concerns this cluster.
    #[arg(long, conflicts_with = "provider")]
    cluster: Option<String>,
    /// Only what goes to this provider, by its address or its name.
    #[arg(long)]
    provider: Option<String>,
    /// Why; whoever looks later will read it.
    #[arg(long)]
    reason: String,
    /// Say what would happen, and do nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

impl SteerArgs {
    fn steered(&self) -> Steered {
        match (&self.cluster, &self.provider) {
            (Some(cluster), _) => Steered::Cluster(cluster.clone()),
            (None, Some(provider)) => Steered::Provider(provider.clone()),
            (None, None) => Steered::All,
        }
    }
}

/// `bigfleet pause`.
#[derive(Debug, ClapArgs)]
pub(crate) struct PauseArgs {
    /// For how long; a pause always ends by itself.
    #[arg(long = "for", value_parser = duration, default_value = "30m", value_name = "DURATION")]
    lasting: Duration,
    #[command(flatten)]
    steer: SteerArgs,
}

/// Pauses.
pub(crate) fn pause(args: &PauseArgs) -> Result<(), Failure> {
    if args.lasting.is_zero() {
        let why = "--for 0s: a pause lasts at least a second; to lift one, use `bigfleet resume`";
        return Err(Failure::Input(why.to_owned()));
    }
    let steered = args.steer.steered();
    let (reason, dry_run) = (&args.steer.reason, args.steer.dry_run);
    let paused =
        async |client| bigfleet_ctl::pause(&client, &steered, args.lasting, reason, dry_run).await;
    print(args.steer.reach.ask(paused)?)
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
    let steered = args.steer.steered();
    let resumed = async |client| bigfleet_ctl::resume(&client, &steered, reason, dry_run).await;
    print(args.steer.reach.ask(resumed)?)
}

/// Why something is let go, and whether it really is.
#[derive(Debug, ClapArgs)]
struct WhyArgs {
    /// Why; whoever looks later will read it.
    #[arg(long)]
    reason: String,
    /// Say what would happen, and do nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

/// `bigfleet retire`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RetireArgs {
    /// The machine; it has to be Failed.
    machine: String,
    #[command(flatten)]
    why: WhyArgs,
}

/// Retires.
pub(crate) fn retire(args: &RetireArgs) -> Result<(), Failure> {
    let (machine, reason, dry_run) = (&args.machine, &args.why.reason, args.why.dry_run);
    let retired = async |client| bigfleet_ctl::retire(&client, machine, reason, dry_run).await;
    print(args.why.reach.ask(retired)?)
}

/// `bigfleet release`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReleaseArgs {
    /// The cluster; its operator has to be gone.
    cluster: String,
    /// How many machines it has, so that a mistaken name releases nothing; --dry-run says it.
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
    print(args.why.reach.ask(released)?)
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
