//! The everyday verbs against a running shard: flags to what is asked, answers to stdout.

use crate::{
    connection::{Connected, CoordinatorArgs, ShardArgs, SteerArgs, print},
    failure::Failure,
    kinds::{DescribedKind, Kinds, KindsParser, listings},
    output::{FormArgs, ListFormArgs, say},
};
use bigfleet_ctl::{
    Awaited, CtlError, Form, PauseTarget, ProblemRecord, Selection, Selector, SortKey, Style,
    live::{self, LiveOptions},
};
use bigfleet_model::counted;
use bigfleet_net::asked_to_end;
use bigfleet_provider_fake::duration;
use clap::Args as ClapArgs;
use std::{
    io::IsTerminal,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// `bigfleet get`.
#[derive(Debug, ClapArgs)]
pub(crate) struct GetArgs {
    /// What to list: a kind, several with commas, or kind/name; the singular and a short name work too:
    /// machines, machine, ma
    #[arg(value_parser = KindsParser)]
    kinds: Kinds,
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
    /// Sort by a path into the entries, such as .price_per_hour, or by a key of --field-selector
    #[arg(long, value_name = "KEY")]
    sort_by: Option<SortKey>,
    /// Add a column for each of these labels of machines
    #[arg(short = 'L', long, value_name = "LABEL", value_delimiter = ',')]
    label_columns: Vec<String>,
    /// Add a column with all labels of machines
    #[arg(long)]
    show_labels: bool,
    /// Leave out the line with the column names
    #[arg(long)]
    no_headers: bool,
    /// Go on, and print what changes
    #[arg(short, long)]
    watch: bool,
    /// How often to ask with --watch
    #[arg(long, value_parser = duration, default_value = "1s")]
    every: Duration,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    #[command(flatten)]
    shard: ShardArgs,
}

/// Which entries to print, and in which form.
#[derive(Debug, ClapArgs)]
struct SelectArgs {
    /// Only entries with these labels or columns: key=value, key!=value, key in (a, b), key, !key, key>1;
    /// several with commas
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = None)]
    selector: Option<Selector>,
    /// The same for columns alone: a key that is none is an error
    #[arg(long, value_name = "SELECTOR", default_value = None)]
    field_selector: Option<Selector>,
    #[command(flatten)]
    form: ListFormArgs,
}

impl SelectArgs {
    fn selection(&self, names: Vec<String>, cluster: &str, limit: usize) -> Selection {
        let fields = self.field_selector.clone().unwrap_or_default();
        Selection {
            names,
            cluster: cluster.to_owned(),
            columns: fields.keys().into_iter().map(str::to_owned).collect(),
            selector: self.selector.clone().unwrap_or_default().and(fields),
            limit,
            ..Selection::default()
        }
    }
}

/// Lists.
pub(crate) fn get(args: &GetArgs) -> Result<(), Failure> {
    let listings = listings(&args.kinds, &args.names).map_err(Failure::Input)?;
    let style = Style {
        form: args.select.form.output.clone(),
        no_headers: args.no_headers,
        colour: has_colour(),
        label_columns: args.label_columns.clone(),
        show_labels: args.show_labels,
    };
    let selection = |names: &[String]| Selection {
        sort_by: args.sort_by.clone(),
        since: args.since,
        ..args
            .select
            .selection(names.to_vec(), &args.cluster, args.limit)
    };
    if args.watch {
        let [(resource, names)] = listings.as_slice() else {
            let why = "-w: one kind at a time can be watched";
            return Err(Failure::Input(why.to_owned()));
        };
        let selection = selection(names);
        // Whoever reads along has seen enough when the text cannot be written.
        return args.shard.ask_fleet(&args.coordinator, async |client| {
            let asked = asked_to_end().map_err(|why| CtlError::Local(why.to_string()))?;
            let tell = |text: &str| say(text).is_ok();
            let watched =
                bigfleet_ctl::watch(&client, *resource, &selection, &style, args.every, tell);
            tokio::select! {
                watched = watched => watched,
                () = asked => Ok(()),
            }
        });
    }
    let answers = args.shard.ask_fleet(&args.coordinator, async |client| {
        let mut answers = Vec::new();
        for (resource, names) in &listings {
            let got = bigfleet_ctl::get(&client, *resource, &selection(names), &style).await;
            answers.push(got?);
        }
        Ok(answers)
    })?;
    let mut answers = answers.into_iter();
    let Some(mut all) = answers.next() else {
        return Ok(());
    };
    for answer in answers {
        let is_table = matches!(style.form, Form::Table | Form::Wide);
        if is_table && !all.text.is_empty() && !answer.text.is_empty() {
            all.text.push('\n');
        }
        if style.form == Form::Yaml {
            all.text += "---\n";
        }
        all.text += &answer.text;
        all.notes.extend(answer.notes);
        all.failed = all.failed.or(answer.failed);
    }
    print(all)
}

/// `bigfleet wait`.
#[derive(Debug, ClapArgs)]
pub(crate) struct WaitArgs {
    /// What to wait for: kind/name, or a kind
    #[arg(value_parser = KindsParser)]
    kinds: Kinds,
    /// The names, all of which have to be so
    names: Vec<String>,
    /// What has to hold: a selector such as state=Configured, `create` or `delete`
    #[arg(long = "for", value_name = "CONDITION")]
    awaited: Awaited,
    /// Only the entries of this cluster
    #[arg(long, default_value = "", hide_default_value = true)]
    cluster: String,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    #[command(flatten)]
    shard: ShardArgs,
}

/// How often `wait` asks.
const WAIT_EVERY: Duration = Duration::from_millis(500);

/// Waits until it is so, for as long as --timeout says.
pub(crate) fn wait(args: &WaitArgs) -> Result<(), Failure> {
    let listings = listings(&args.kinds, &args.names).map_err(Failure::Input)?;
    let within = args.shard.connection.timeout;
    let done = args.shard.ask_fleet(&args.coordinator, async |client| {
        let mut done = Vec::new();
        for (resource, names) in &listings {
            let selection = Selection {
                names: names.clone(),
                cluster: args.cluster.clone(),
                ..Selection::default()
            };
            let waited = bigfleet_ctl::wait(
                &client,
                *resource,
                &selection,
                &args.awaited,
                within,
                WAIT_EVERY,
            );
            done.extend(waited.await?);
        }
        Ok(done)
    })?;
    let line = |name: &String| format!("{}\n", bigfleet_ctl::text::printable(name));
    say(&done.iter().map(line).collect::<String>())
}

/// `bigfleet describe`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DescribeArgs {
    /// What to describe, with or without its name: machine, machine/m-1
    #[arg(value_parser = DescribedKind::parser())]
    kind: DescribedKind,
    /// Its name, as `bigfleet get` shows it
    name: Option<String>,
    /// The cluster of the Need, if several clusters have one of that name
    #[arg(long, default_value = "", hide_default_value = true)]
    cluster: String,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    #[command(flatten)]
    shard: ShardArgs,
}

/// Describes.
pub(crate) fn describe(args: &DescribeArgs) -> Result<(), Failure> {
    let (kind, name) = args
        .kind
        .named(args.name.as_deref())
        .map_err(Failure::Input)?;
    let style = Style {
        form: args.form.output.clone(),
        colour: has_colour(),
        ..Style::default()
    };
    let described =
        async |client| bigfleet_ctl::describe(&client, kind, &name, &args.cluster, &style).await;
    print(args.shard.ask_fleet(&args.coordinator, described)?)
}

/// `bigfleet status`.
#[derive(Debug, ClapArgs)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    shard: ShardArgs,
}

/// A certificate that ends within this is said.
const CERTIFICATE_SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// Says how a shard is; the exit status is 0 only if all is well.
pub(crate) fn status(args: &StatusArgs) -> Result<(), Failure> {
    let style = Style {
        form: args.form.output.clone(),
        colour: has_colour(),
        ..Style::default()
    };
    let status = args.shard.connected(async |connected: Connected| {
        let own = Vec::from_iter(own_certificate(&connected));
        Ok(bigfleet_ctl::status(&connected.client, own, &style).await?)
    })?;
    print(status.answer)?;
    if status.is_well {
        Ok(())
    } else {
        Err(Failure::Unwell)
    }
}

fn own_certificate(connected: &Connected) -> Option<ProblemRecord> {
    let counts = connected.tls.as_ref()?.counts();
    let ends = Duration::from_secs(counts.expires_unix_seconds.max(0).unsigned_abs());
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let what = match ends.checked_sub(now) {
        None => "your own certificate has expired".to_owned(),
        Some(left) if left < CERTIFICATE_SOON => {
            let days = counted(left.as_secs() / (24 * 60 * 60), "day", "days");
            format!("your own certificate ends in {days}")
        }
        Some(_) => return None,
    };
    let verb = "bigfleet certs issue admin NAME";
    Some(ProblemRecord::found_here(false, "certificate", what, verb))
}

/// `bigfleet version`.
#[derive(Debug, ClapArgs)]
pub(crate) struct VersionArgs {
    /// Only of this program, without asking a shard
    #[arg(long)]
    client: bool,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    shard: ShardArgs,
}

/// Says which version this is, and which the shard is.
pub(crate) fn version(args: &VersionArgs) -> Result<(), Failure> {
    let own = env!("CARGO_PKG_VERSION");
    let shard = if args.client {
        None
    } else {
        Some(args.shard.ask(async |client| client.status().await))
    };
    let (server, failed) = match shard {
        None => (None, None),
        Some(Ok(answered)) => (Some(answered.version), None),
        Some(Err(failure)) => (None, Some(failure)),
    };
    say(&bigfleet_ctl::versions(
        own,
        server.as_deref(),
        &args.form.output,
    )?)?;
    failed.map_or(Ok(()), Err)
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
    let names = Vec::from_iter(args.need.clone());
    let selection = args.select.selection(names, &args.cluster, args.limit);
    let form = &args.select.form.output;
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
struct ScopeArgs {
    /// Only changes for this cluster
    #[arg(long, conflicts_with = "provider")]
    cluster: Option<String>,
    /// Only changes through this provider, by its address or name
    #[arg(long)]
    provider: Option<String>,
    #[command(flatten)]
    steer: SteerArgs,
}

impl ScopeArgs {
    fn target(&self) -> PauseTarget {
        match (&self.cluster, &self.provider) {
            (Some(cluster), _) => PauseTarget::Cluster(cluster.clone()),
            (None, Some(provider)) => PauseTarget::Provider(provider.clone()),
            (None, None) => PauseTarget::All,
        }
    }

    /// The same for who is asked.
    fn text(&self) -> String {
        match self.target() {
            PauseTarget::All => "everything".to_owned(),
            PauseTarget::Cluster(cluster) => format!("cluster {cluster}"),
            PauseTarget::Provider(provider) => format!("provider {provider}"),
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
    scope: ScopeArgs,
}

/// Pauses.
pub(crate) fn pause(args: &PauseArgs) -> Result<(), Failure> {
    if args.lasting.is_zero() {
        let why = "--for 0s: a pause lasts at least a second; to end one, use `bigfleet resume`";
        return Err(Failure::Input(why.to_owned()));
    }
    let (target, steer) = (args.scope.target(), &args.scope.steer);
    let what = format!("pause {}", args.scope.text());
    steer.steer(&what, async |client| {
        bigfleet_ctl::pause(client, &target, args.lasting, &steer.reason, steer.dry_run).await
    })
}

/// `bigfleet resume`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    scope: ScopeArgs,
}

/// Resumes.
pub(crate) fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    let (target, steer) = (args.scope.target(), &args.scope.steer);
    let what = format!("resume {}", args.scope.text());
    steer.steer(&what, async |client| {
        bigfleet_ctl::resume(client, &target, &steer.reason, steer.dry_run).await
    })
}

/// `bigfleet retire`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RetireArgs {
    /// The machine; its state has to be Failed
    machine: String,
    #[command(flatten)]
    steer: SteerArgs,
}

/// Retires.
pub(crate) fn retire(args: &RetireArgs) -> Result<(), Failure> {
    let (machine, steer) = (&args.machine, &args.steer);
    steer.steer(&format!("retire machine {machine}"), async |client| {
        bigfleet_ctl::retire(client, machine, &steer.reason, steer.dry_run).await
    })
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
    steer: SteerArgs,
}

/// Releases.
pub(crate) fn release(args: &ReleaseArgs) -> Result<(), Failure> {
    let (cluster, machines) = (&args.cluster, args.machines.unwrap_or_default());
    let steer = &args.steer;
    steer.steer(&format!("release cluster {cluster}"), async |client| {
        bigfleet_ctl::release(client, cluster, machines, &steer.reason, steer.dry_run).await
    })
}

/// Colours are for people who see them and have not said no (<https://no-color.org>).
pub(crate) fn has_colour() -> bool {
    let said_no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !said_no && !dumb
}
