//! `describe shard`: what it has, what it shall have, and what it was told and has not answered.

use serde::Serialize;

use super::{CoordinatorClient, CoordinatorSource, ownership};
use crate::describe::DescriptionPage;
use crate::error::CtlError;
use crate::get::not_found;
use crate::output::{Answer, Style, document};
use crate::record::{
    ClusterOwnerRecord, DomainRecord, InstructionRecord, ReportRecord, ShardRecord,
};

#[derive(Serialize)]
struct DescribedShard<'a> {
    #[serde(flatten)]
    record: &'a ShardRecord,
    assigned: &'a [DomainRecord],
    served: &'a [ClusterOwnerRecord],
    report: Option<&'a ReportRecord>,
    instructions: &'a [InstructionRecord],
}

/// Describes the shard of that id.
pub(crate) async fn describe_shard(
    client: &CoordinatorClient,
    id: &str,
    style: &Style,
) -> Result<Answer, CtlError> {
    let known = ownership(client).await?;
    let source = CoordinatorSource::of(client);
    let shard = known.shards.iter().find(|shard| shard.id == id);
    let shard = shard.ok_or_else(|| not_found::<ShardRecord>(id, &source))?;
    let is_its = |name: &Option<String>| name.as_deref() == Some(id);
    let mut domains = known.domains;
    domains.retain(|one| is_its(&one.shard) || is_its(&one.held_by));
    let mut clusters = known.clusters;
    clusters.retain(|one| one.shard == id || one.also_at.iter().any(|other| other == id));
    let report = known.reports.iter().find(|report| report.shard == id);
    let pending = client.instructions().await?.into_iter();
    let pending = pending.filter(|one| one.shard_id == id);
    let pending: Vec<InstructionRecord> = pending.map(Into::into).collect();
    let whole = DescribedShard {
        record: shard,
        assigned: &domains,
        served: &clusters,
        report,
        instructions: &pending,
    };
    if let Some(text) = document(&whole, &style.form)? {
        return Ok(Answer::of(text));
    }
    let mut page = DescriptionPage::new(&source);
    page.line("Shard", &shard.id);
    page.line("Address", shard.address.as_deref().unwrap_or("not known"));
    page.line("Provider", shard.provider.as_deref().unwrap_or_default());
    page.at("Registered", shard.registered);
    match report {
        Some(report) => {
            page.at("Last report", report.received);
            page.line("Machines", report.machines.to_string());
            page.line("Free", report.free.to_string());
            page.line("Shortfalls", report.shortfalls.len().to_string());
        }
        None => page.line("Last report", "none to this leader yet"),
    }
    page.section("Domains", &domains, &source, style);
    page.section("Clusters", &clusters, &source, style);
    page.section("Not answered yet", &pending, &source, style);
    Ok(Answer::of(page.text))
}
