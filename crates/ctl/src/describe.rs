//! `describe`: everything about one machine, Need or cluster, with its recent decisions.

use crate::client::Client;
use crate::coordinator::describe_shard;
use crate::error::CtlError;
use crate::explain::{reasons, request};
use crate::get::{Selection, actions, clusters, machines, needs, not_found, work};
use serde::Serialize;

use crate::output::{
    Answer, AnswerSource, Form, ListSource, Listable, Style, document, labels, list,
};
use crate::record::{
    ActionRecord, ClusterRecord, ExplanationRecord, MachineRecord, NeedRecord, NeedRef, WorkRecord,
};
use crate::text::{printable, quantities, without_rule_ids};
use crate::when::{Moment, ago, ahead, rfc3339};

/// Decisions that are shown with a machine or a cluster.
const MOST_ACTIONS: usize = 10;
/// Needs of one name that are described at once.
const MOST_NEEDS: usize = 20;

/// What can be described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
pub enum Described {
    /// A machine, and what was decided about it lately.
    #[cfg_attr(feature = "flags", value(aliases = ["machines", "ma"]))]
    Machine,
    /// A Need: what a cluster asks for, whether it has it, and why not.
    #[cfg_attr(feature = "flags", value(aliases = ["needs", "nd", "shortfall", "shortfalls", "sf"]))]
    Need,
    /// A cluster, its Needs, and what was decided about it lately.
    #[cfg_attr(feature = "flags", value(aliases = ["clusters", "cl"]))]
    Cluster,
    /// A shard: its domains, its clusters, its newest report, and what it has not answered.
    #[cfg_attr(feature = "flags", value(aliases = ["shards", "sh"]))]
    Shard,
}

/// Describes the one of that name.
pub async fn describe(
    client: &Client,
    kind: Described,
    name: &str,
    cluster: &str,
    style: &Style,
) -> Result<Answer, CtlError> {
    let selection = Selection {
        names: vec![name.to_owned()],
        cluster: cluster.to_owned(),
        ..Selection::default()
    };
    let text = match kind {
        Described::Machine => machine(client, &selection, style).await?,
        Described::Need => need(client, &selection, style).await?,
        Described::Cluster => self::cluster(client, name, style).await?,
        Described::Shard => return describe_shard(client.coordinator()?, name, style).await,
    };
    Ok(Answer::of(text))
}

/// What a description says, as a document.
#[derive(Serialize)]
struct DescribedRecord<'a, T> {
    #[serde(flatten)]
    record: &'a T,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    needs: &'a [NeedRecord],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    under_way: &'a [WorkRecord],
    decisions: &'a [ActionRecord],
}

/// Lines of `Name: value`. A line whose value is empty is left out.
pub(crate) struct DescriptionPage {
    pub(crate) text: String,
    now: i64,
}

impl DescriptionPage {
    pub(crate) fn new(source: &impl ListSource) -> Self {
        Self {
            text: String::new(),
            now: source.now(),
        }
    }

    pub(crate) fn line(&mut self, name: &str, value: impl AsRef<str>) {
        let value = value.as_ref();
        if !value.is_empty() {
            let name = format!("{name}:");
            self.text += &format!("{name:<16} {}\n", printable(value));
        }
    }

    /// A moment, and how long ago it was or how far ahead it is.
    pub(crate) fn at(&mut self, name: &str, moment: Moment) {
        let Some(at) = moment else { return };
        let distance = if self.now < at {
            format!("in {}", ahead(self.now, moment))
        } else {
            format!("{} ago", ago(self.now, moment))
        };
        self.line(name, format!("{} ({distance})", rfc3339(at)));
    }

    pub(crate) fn section<T: Listable>(
        &mut self,
        title: &str,
        items: &[T],
        source: &impl ListSource,
        style: &Style,
    ) {
        let table = if items.is_empty() {
            " none\n".to_owned()
        } else {
            let table = Style {
                form: Form::Table,
                ..style.clone()
            };
            list(items, source, &table)
        };
        self.text += &format!("\n{title}:\n{table}");
    }
}

async fn machine(
    client: &Client,
    selection: &Selection,
    style: &Style,
) -> Result<String, CtlError> {
    let (found, source) = machines(client, selection).await?;
    let name = &selection.names[0];
    let Some(machine) = found.first() else {
        return Err(not_found::<MachineRecord>(name, &source));
    };
    let mut under_way = Vec::new();
    if machine.work.is_some() {
        (under_way, _) = work(client, &Selection::default()).await?;
        under_way.retain(|one| one.machine == machine.id);
    }
    let (decided, _) = actions(client, &newest(""), &machine.id).await?;
    let described = DescribedRecord {
        record: machine,
        needs: &[],
        under_way: &under_way,
        decisions: &decided,
    };
    if let Some(text) = document(&described, &style.form)? {
        return Ok(text);
    }
    let mut page = DescriptionPage::new(&source);
    page.line("Machine", &machine.id);
    page.line("State", &machine.state);
    page.at("Since", machine.state_since);
    page.at("Seen", machine.seen_at);
    page.line("Cluster", &machine.cluster);
    page.line("Serves", need_line(machine.assigned.as_ref()));
    page.line("On its way to", need_line(machine.intent.as_ref()));
    page.line("Work", machine.work.as_deref().unwrap_or_default());
    page.line("Node", machine.node.as_deref().unwrap_or_default());
    let host = machine.host.as_ref();
    page.line("Host", host.map_or("", |host| &host.reference));
    page.line("Provider", &machine.provider);
    page.line("Type", &machine.instance_type);
    page.line("Zone", &machine.zone);
    page.line("Tier", &machine.capacity_type);
    page.line("Price", format!("${:.4} per hour", machine.price_per_hour));
    page.line(
        "Interruption",
        format!("{:.4} per hour", machine.interruption_probability),
    );
    page.line("Offers", quantities(&machine.resources));
    page.line("Labels", labels(&machine.labels));
    for (flag, why) in machine.flags() {
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {}", without_rule_ids(why))
        };
        page.line("Flag", format!("{flag}{why}"));
    }
    if let Some(leaving) = &machine.leaving {
        page.line("Leaves", &leaving.word);
        let by = match leaving.requested_by.as_str() {
            "" => "its provider's word".to_owned(),
            who => format!("{who}: {}", leaving.reason),
        };
        page.line("Leaves by", by);
        page.at("Marked", leaving.since);
        page.at("Deadline", leaving.deadline);
        page.line("Leaving", &leaving.status);
        page.at("Phase since", leaving.phase_since);
        page.line("Replacements", leaving.replacements.join(", "));
    }
    page.line("Error", &machine.last_error);
    page.line(
        "Failure",
        machine.failure_class.as_deref().unwrap_or_default(),
    );
    if machine.work.is_some() {
        page.section("Under way", &under_way, &source, style);
    }
    page.section("Decisions, newest first", &decided, &source, style);
    Ok(page.text)
}

/// The newest decisions about a cluster, or about all.
fn newest(cluster: &str) -> Selection {
    Selection {
        cluster: cluster.to_owned(),
        limit: MOST_ACTIONS,
        ..Selection::default()
    }
}

fn need_line(need: Option<&NeedRef>) -> String {
    let Some(need) = need else {
        return String::new();
    };
    let group = match need.group.as_str() {
        "" => String::new(),
        group => format!(", gang {group}"),
    };
    format!(
        "{}/{} at priority {}{group}, interruption ${}, reclamation ${}",
        need.cluster,
        need.need,
        need.priority,
        need.interruption_penalty_dollars,
        need.reclamation_penalty_dollars
    )
}

/// Every Need of that name: two clusters may ask for the same.
async fn need(client: &Client, selection: &Selection, style: &Style) -> Result<String, CtlError> {
    let (mut found, source) = needs(client, selection).await?;
    if found.is_empty() {
        return Err(not_found::<NeedRecord>(&selection.names[0], &source));
    }
    found.truncate(MOST_NEEDS);
    let mut pages = Vec::new();
    let mut described = Vec::new();
    for need in &found {
        let mut text = need_page(need, &source);
        if let Some(explained) = client.explain(request(need)).await? {
            let explained = ExplanationRecord::from(&explained);
            text += &format!("\nWhy:\n{}", reasons(&explained));
            described.push(explained);
        }
        pages.push(text);
    }
    let document = match described.as_slice() {
        [one] => document(one, &style.form)?,
        all => document(&all, &style.form)?,
    };
    Ok(document.unwrap_or_else(|| pages.join("\n")))
}

fn need_page(need: &NeedRecord, source: &AnswerSource) -> String {
    let mut page = DescriptionPage::new(source);
    page.line("Need", format!("{}/{}", need.cluster, need.need));
    page.line("Cluster", &need.cluster);
    page.line("Gang", &need.group);
    page.line("Priority", need.priority.to_string());
    page.at("Arrived", need.arrival);
    page.line("Wants", quantities(&need.aggregate_resources));
    page.line("Smallest unit", need.unit());
    page.line("Status", need.status_field().text);
    page.line("Serving", quantities(&need.serving));
    page.line("Coming", quantities(&need.coming));
    page.line("Stuck", quantities(&need.stuck));
    page.line("Missing", quantities(&need.missing));
    page.at("Lacking since", need.lacking_since);
    page.line("Reason", &need.why);
    page.line("Machines", need.claimed.to_string());
    page.line("Domain", &need.same_domain);
    for one in &need.requirements {
        page.line("Requires", one.to_string());
    }
    for one in &need.spread {
        let (key, skew, when) = (&one.topology_key, one.max_skew, &one.when_unsatisfiable);
        page.line("Spread", format!("{key}, skew {skew} at most, {when}"));
    }
    let buckets = (
        need.interruption_penalty_bucket,
        need.reclamation_penalty_bucket,
    );
    page.line(
        "Penalty buckets",
        format!("interruption {}, reclamation {}", buckets.0, buckets.1),
    );
    page.line("Fingerprint", &need.need_fingerprint);
    page.text
}

async fn cluster(client: &Client, name: &str, style: &Style) -> Result<String, CtlError> {
    let only = Selection {
        cluster: name.to_owned(),
        ..Selection::default()
    };
    let (found, source) = clusters(client, &only).await?;
    let Some(cluster) = found.first() else {
        return Err(not_found::<ClusterRecord>(name, &source));
    };
    let (of_cluster, of_needs) = needs(client, &only).await?;
    let (decided, _) = actions(client, &newest(name), "").await?;
    let described = DescribedRecord {
        record: cluster,
        needs: &of_cluster,
        under_way: &[],
        decisions: &decided,
    };
    if let Some(text) = document(&described, &style.form)? {
        return Ok(text);
    }
    let mut page = DescriptionPage::new(&source);
    page.line("Cluster", &cluster.id);
    page.line("Operator", cluster.operator().0);
    if let Some(session) = &cluster.session {
        page.at("Connected", session.started);
        page.at("Last heard", session.last_frame);
        page.line("Features", session.features.join(", "));
        page.line(
            "Outbox",
            match session.outbox_frames {
                0 => String::new(),
                frames => format!("{frames} messages wait to be sent"),
            },
        );
    }
    page.at("Disconnected", cluster.session_ended);
    if let Some(rollup) = &cluster.rollup {
        page.at("Last roll-up", rollup.accepted);
        page.line("Roll-up id", &rollup.rollup_id);
    }
    page.line(
        "Held roll-ups",
        match cluster.rollups_held {
            0 => String::new(),
            held => format!(
                "{held} in a row not believed yet, its earlier demand stays; `bigfleet get rails` says why"
            ),
        },
    );
    page.at("Refused roll-up", cluster.rollup_refused);
    page.line(
        "Refused because",
        without_rule_ids(&cluster.rollup_refused_reason),
    );
    page.line(
        "Ready",
        if cluster.ready {
            "yes"
        } else {
            "no: it has not sent a roll-up (its report of what it needs) since the shard started"
        },
    );
    let acquires = cluster.acquires().text;
    page.line(
        "Acquires",
        match cluster.acquire_detail.as_str() {
            "" => acquires,
            detail => format!("{acquires}: {}", without_rule_ids(detail)),
        },
    );
    let counts: Vec<String> = cluster
        .machines
        .iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    page.line(
        "Machines",
        if counts.is_empty() {
            "none".to_owned()
        } else {
            counts.join(", ")
        },
    );
    page.line(
        "Not ready",
        match cluster.not_ready {
            0 => String::new(),
            count => count.to_string(),
        },
    );
    page.section("Needs", &of_cluster, &of_needs, style);
    page.section("Decisions, newest first", &decided, &source, style);
    Ok(page.text)
}
