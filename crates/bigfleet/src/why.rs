//! `bigfleet why POD`, and `kubectl bigfleet why POD`: where a Pod waits on its way to a Node.
//!
//! ```text
//! kubeconfig ─▶ what the cluster shows ─┬─▶ account ─▶ page · json
//! --shard ────▶ what the shard knows ───┘
//! ```
//!
//! Reading is `bigfleet-operator`'s, the account `bigfleet-operator-core`'s, and what a shard is asked `bigfleet-ctl`'s.

use crate::{
    connection::ConnectionArgs,
    failure::Failure,
    output::{FormArgs, say},
};
use bigfleet_ctl::{
    PodQuestion, document,
    text::{columns, printable},
    when::{ago, rfc3339, span},
};
use bigfleet_k8s::Cluster;
use bigfleet_net::TlsFlags;
use bigfleet_operator::read_why;
use bigfleet_operator_core::{
    Account, Hop, HopName, NeedSaid, ShardSaid, Verdict, WhyFacts, account, machine_to_ask,
    need_name,
};
use bigfleet_provider_fake::duration;
use clap::Args as ClapArgs;
use serde::Serialize;
use std::{path::PathBuf, time::Duration};

/// Below `--help`.
const WORDS: &str = "\
Hops, in order:
  pod      the Pod, until its scheduler has looked for a Node
  request  its CapacityRequest, by which BigFleet hears of it
  need     what the cluster asks its shard for: the shard is the process that decides about machines
  machine  a machine on its way that could hold the Pod, as an UpcomingNode shows it
  node     the Node it is put on

Exit status: 0 if the Pod runs, has ended, or something is on its way to it; 1 if it is stuck, or that could not be found out;
2 if the command line is wrong.";

/// What was asked.
#[derive(Debug, ClapArgs)]
#[command(after_help = WORDS)]
pub(crate) struct Args {
    /// The Pod
    pod: String,
    /// Its namespace [default: that of the context]
    #[arg(short, long)]
    namespace: Option<String>,
    /// The context of the kubeconfig to use [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The kubeconfig [default: the files of KUBECONFIG, ~/.kube/config, the Pod's own account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Ask this shard too [default: no shard is asked]
    #[arg(long, value_name = "HOST:PORT")]
    shard: Option<String>,
    /// Ask the shard of this context of BigFleet's own config file, with its certificates
    #[arg(long, value_name = "NAME")]
    shard_context: Option<String>,
    /// The cluster, by the shard's name [default: the one that asks for the same]
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    cluster: String,
    /// How long to wait for the cluster in all, and for each answer of the shard
    #[arg(long, value_parser = duration, default_value = "30s")]
    timeout: Duration,
    #[command(flatten)]
    form: FormArgs,
    /// Certificates, for the shard.
    #[command(flatten)]
    tls: TlsFlags,
}

/// Reads, asks, tells.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let pod = ["pods/", "pod/", "po/"]
        .iter()
        .find_map(|kind| args.pod.strip_prefix(kind))
        .unwrap_or(&args.pod);
    let namespace = args.namespace.as_deref().unwrap_or_default();
    check("Pod", pod)?;
    if args.namespace.is_some() {
        check("namespace", namespace)?;
    }
    let mut facts = read(args, namespace, pod)?;
    let asked = ask_shard(args, &mut facts);
    let told = account(&facts);
    let record = WhyRecord::of(&facts, &told);
    let form = &args.form.output;
    say(&document(&record, form)?.unwrap_or_else(|| page(&facts, &told)))?;
    asked?;
    if told.verdict.is_well() {
        Ok(())
    } else {
        Err(Failure::Unwell)
    }
}

/// Whether a name can be one: it becomes a part of a path.
pub(crate) fn check(what: &str, name: &str) -> Result<(), Failure> {
    let fits = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
    };
    if !name.is_empty() && name.len() <= 253 && name.bytes().all(fits) {
        return Ok(());
    }
    let name = printable(name);
    Err(Failure::Input(format!(
        "\"{name}\" cannot be the name of a {what}: small letters, digits, '-' and '.'"
    )))
}

fn read(args: &Args, namespace: &str, pod: &str) -> Result<WhyFacts, Failure> {
    let undone = |why: String| Failure::Undone(printable(&why));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| undone(why.to_string()))?;
    let read = runtime.block_on(async {
        let cluster = Cluster::connect(args.kubeconfig.as_deref(), args.context.as_deref());
        let cluster = cluster.map_err(|why| why.to_string())?;
        let reading = tokio::time::timeout(args.timeout, read_why(&cluster, namespace, pod));
        let slow = |_| {
            let within = span(args.timeout);
            format!(
                "{} did not answer within {within}; --timeout waits longer",
                cluster.server()
            )
        };
        reading.await.map_err(slow)?.map_err(|why| why.to_string())
    });
    read.map_err(undone)
}

/// Adds what the shard knows. If it cannot be asked, what the cluster shows is told all the same.
fn ask_shard(args: &Args, facts: &mut WhyFacts) -> Result<(), Failure> {
    if args.shard.is_none() && args.shard_context.is_none() {
        return Ok(());
    }
    let Ok(Some(request)) = &facts.request else {
        return Ok(());
    };
    let name = need_name(&request.key.namespace, &request.spec);
    let question = PodQuestion {
        cluster: args.cluster.clone(),
        fingerprint: name.fingerprint,
        groups: name.groups,
        machine: machine_to_ask(facts),
    };
    let connection =
        ConnectionArgs::new(args.shard_context.clone(), args.timeout, args.tls.clone());
    let asked = async |client| bigfleet_ctl::why(&client, &question).await;
    let answer = connection.ask(args.shard.as_deref(), asked)?;
    facts.shard = Some(ShardSaid {
        need: answer.need.map(|need| NeedSaid {
            cluster: need.cluster,
            name: need.name,
            summary: need.summary,
            is_served: need.is_served,
            is_coming: need.is_coming,
            causes: need.causes,
            changes: need.changes,
        }),
        machine: answer.machine,
    });
    Ok(())
}

/// The account, for programs.
#[derive(Debug, Serialize)]
struct WhyRecord {
    pod: String,
    namespace: String,
    verdict: &'static str,
    waits_at: Option<&'static str>,
    sentence: String,
    changes: Vec<String>,
    shard_asked: bool,
    read_at: String,
    hops: Vec<HopRecord>,
}

#[derive(Debug, Serialize)]
struct HopRecord {
    hop: &'static str,
    state: &'static str,
    object: Option<String>,
    since: Option<String>,
    seconds: Option<u64>,
    sentence: String,
}

impl WhyRecord {
    fn of(facts: &WhyFacts, told: &Account) -> Self {
        let key = &facts.pod.facts.brief.key;
        let hop = |hop: &Hop| HopRecord {
            hop: hop.name.word(),
            state: hop.state.word(),
            object: Some(hop.object.clone()).filter(|object| !object.is_empty()),
            since: hop.since.map(|since| rfc3339(since.nanos())),
            seconds: hop
                .since
                .map(|since| facts.now.duration_since(since).as_secs()),
            sentence: hop.sentence.clone(),
        };
        Self {
            pod: key.name.clone(),
            namespace: key.namespace.clone(),
            verdict: told.verdict.word(),
            waits_at: told.waits_at.map(HopName::word),
            sentence: told.sentence.clone(),
            changes: told.changes.clone(),
            shard_asked: facts.shard.is_some(),
            read_at: rfc3339(facts.now.nanos()),
            hops: told.hops.iter().map(hop).collect(),
        }
    }
}

/// The account, for people.
fn page(facts: &WhyFacts, told: &Account) -> String {
    let key = &facts.pod.facts.brief.key;
    let how = match (told.verdict, told.waits_at) {
        (Verdict::Stuck, Some(HopName::Pod)) => " is stuck".to_owned(),
        (Verdict::Coming, Some(HopName::Pod)) => " waits".to_owned(),
        (Verdict::Stuck, Some(hop)) => format!(" is stuck at its {}", plain(hop)),
        (Verdict::Coming, Some(hop)) => format!(" waits for its {}", plain(hop)),
        (Verdict::NotManaged, _) => " waits".to_owned(),
        _ => String::new(),
    };
    let (pod, sentence) = (printable(&key.to_string()), printable(&told.sentence));
    let mut text = format!("Pod {pod}{how}: {sentence}\n\n");
    let row = |hop: &Hop| {
        let what = match (hop.object.as_str(), hop.sentence.as_str()) {
            (object, "") => object.to_owned(),
            ("", sentence) => sentence.to_owned(),
            (object, sentence) => format!("{object}: {sentence}"),
        };
        let since = hop.since.map(bigfleet_model::Time::nanos);
        let age = ago(facts.now.nanos(), since);
        let state = hop.state.word().to_owned();
        vec![plain(hop.name).to_owned(), state, age, what]
    };
    text += &columns(&["HOP", "STATE", "AGE", "WHAT"], told.hops.iter().map(row));
    if !told.changes.is_empty() {
        text += "\nWhat would change it:\n";
        for change in &told.changes {
            text += &format!("  - {}\n", printable(change));
        }
    }
    text
}

/// A hop for who has not read about hops.
fn plain(hop: HopName) -> &'static str {
    match hop {
        HopName::Pod => "Pod",
        HopName::Request => "request",
        HopName::Need => "Need",
        HopName::Machine => "machine",
        HopName::Node => "Node",
    }
}
