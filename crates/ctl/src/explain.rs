//! `explain`: why Needs are served as they are.
//!
//! ```text
//! cluster, name or -l ─▶ which Needs are meant ─▶ each explained by the shard ─▶ pages · json · yaml
//! ```

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::{ExplainNeedRequest, ExplainNeedResponse};

use crate::client::Client;
use crate::error::CtlError;
use crate::get::{Selection, needs, not_found};
use crate::output::{Answer, AnswerSource, Form, ListSource, document};
use crate::record::{ChangeRecord, ClusterRecord, DecidedRecord, ExplanationRecord, NeedRecord};
use crate::select::Selector;
use crate::table_text::tables;
use crate::text::{columns, printable, quantities};

/// At most this many Needs are explained at once: each costs the shard a decision.
const MOST_NEEDS: usize = 20;
/// At most this many machines are named on a page; `-o json` has all that the shard named.
const MOST_CLAIMS: usize = 20;

/// Explains the selected Needs, those that are not served in full first.
pub async fn explain(
    client: &Client,
    selection: &Selection,
    form: &Form,
) -> Result<Answer, CtlError> {
    let selection = &split_name(client, selection).await?;
    let (mut rows, source) = needs(client, selection).await?;
    if rows.is_empty() {
        return Err(match selection.names.first() {
            Some(name) => not_found::<NeedRecord>(name, &source),
            None => nothing_to_explain(client, selection).await?,
        });
    }
    rows.sort_by_key(NeedRecord::is_served);
    let most = match selection.limit {
        0 => MOST_NEEDS,
        limit => limit.min(MOST_NEEDS),
    };
    let mut notes = Vec::new();
    if most < rows.len() {
        let (all, cluster) = (rows.len(), printable(&selection.cluster));
        notes.push(format!(
            "{most} of {all} Needs, those that are not served in full first; `bigfleet get needs --cluster {cluster}` \
             lists them, and `bigfleet explain {cluster} NEED` explains one"
        ));
        rows.truncate(most);
    }
    let mut explained = Vec::new();
    for need in &rows {
        // A Need that was withdrawn in between has nothing to explain.
        if let Some(answer) = client.explain(request(need)).await? {
            explained.push(ExplanationRecord::from(&answer));
        }
    }
    let pages = || {
        let pages: Vec<String> = explained.iter().map(page).collect();
        source.first() + &pages.join("\n")
    };
    // One that was named is a document by itself; several are a list of them.
    let document = match (explained.as_slice(), selection.names.is_empty()) {
        ([one], false) => document(one, form)?,
        (all, _) => document(&all, form)?,
    };
    Ok(Answer {
        text: document.unwrap_or_else(pages),
        notes,
        failed: None,
    })
}

/// Splits `CLUSTER/NEED`, the form `bigfleet decide --explain` takes, unless there is a cluster of
/// exactly that name.
async fn split_name(client: &Client, selection: &Selection) -> Result<Selection, CtlError> {
    let split = selection.cluster.split_once('/');
    let Some((cluster, need)) = split.filter(|_| selection.names.is_empty()) else {
        return Ok(selection.clone());
    };
    let (_, known) = client.clusters(&selection.cluster).await?;
    Ok(if known.is_empty() {
        Selection {
            cluster: cluster.to_owned(),
            names: vec![need.to_owned()],
            ..selection.clone()
        }
    } else {
        selection.clone()
    })
}

/// Why there is nothing to explain: no such cluster, or one that asks for nothing.
async fn nothing_to_explain(client: &Client, selection: &Selection) -> Result<CtlError, CtlError> {
    let (header, views) = client.clusters(&selection.cluster).await?;
    let source = AnswerSource::from(header);
    let cluster = printable(&selection.cluster);
    Ok(
        match (views.first(), selection.selector == Selector::default()) {
            (None, _) => not_found::<ClusterRecord>(&selection.cluster, &source),
            (Some(view), true) if view.rollup.is_none() => CtlError::Local(format!(
                "cluster \"{cluster}\" has no Needs: its operator has not reported yet; \
                 `bigfleet get clusters` shows whether it is connected"
            )),
            (Some(_), true) => CtlError::Local(format!(
                "cluster \"{cluster}\" has no Needs: it asks for nothing"
            )),
            (Some(_), false) => CtlError::Local(format!(
                "cluster \"{cluster}\" has no such Need; `bigfleet get needs --cluster {cluster}` \
             lists those it has"
            )),
        },
    )
}

pub(crate) fn request(need: &NeedRecord) -> ExplainNeedRequest {
    ExplainNeedRequest {
        cluster_id: need.cluster.clone(),
        profile_fingerprint: need.need_fingerprint.clone(),
        group: need.group.clone(),
    }
}

/// The page about one Need.
pub(crate) fn page(explained: &ExplanationRecord) -> String {
    heading(&explained.need) + &reasons(explained)
}

/// The same page without its heading, for `describe`, which has one of its own.
pub(crate) fn reasons(explained: &ExplanationRecord) -> String {
    let mut text = format!("{}\n", printable(&explained.summary));
    text += &why(&explained.causes, &explained.changes);
    // What was tried is in the list above.
    let is_tried = |advice: &&String| {
        let mut tried = explained.changes.iter();
        tried.any(|change| advice.starts_with(&change.text))
    };
    let advice: Vec<&String> = explained
        .remedies
        .iter()
        .filter(|one| !is_tried(one))
        .collect();
    if !advice.is_empty() {
        text += "\nWhat could be done:\n";
        for advice in advice {
            text += &format!("  - {}\n", printable(advice));
        }
    }
    match &explained.table {
        Some(table) => text += &format!("\n{}", tables(table)),
        // A shard that has no table says what it did step by step.
        None if !explained.steps.is_empty() => text += &format!("\n{}", steps(explained)),
        None => {}
    }
    if !explained.claims.is_empty() {
        text += &format!("\n{}", claims(explained));
    }
    text
}

/// Why it is short, and what would change that.
fn why(causes: &[String], changes: &[ChangeRecord]) -> String {
    let mut text = String::new();
    if !causes.is_empty() {
        text += "\nWhy:\n";
        for cause in causes {
            text += &format!("  - {}\n", printable(cause));
        }
    }
    if !changes.is_empty() {
        text += "\nWhat would change it, each tried on a copy of the fleet:\n";
        for change in changes {
            text += &format!(
                "  {:<8}{}\n",
                printable(&change.mark),
                printable(&change.text)
            );
        }
    }
    text
}

/// Explanations of what was decided on a fleet file, in the words a running shard's have.
pub fn explain_decided(explained: &[ExplainNeedResponse], form: &Form) -> Result<String, CtlError> {
    let decided: Vec<DecidedRecord> = explained.iter().map(Into::into).collect();
    let pages = || {
        let pages: Vec<String> = decided.iter().map(decided_page).collect();
        pages.join("\n")
    };
    Ok(document(&decided, form)?.unwrap_or_else(pages))
}

fn decided_page(explained: &DecidedRecord) -> String {
    let group = match explained.group.as_str() {
        "" => String::new(),
        group => format!(", gang {}", printable(group)),
    };
    let unit = match explained.smallest_unit.as_str() {
        "" => String::new(),
        unit => format!(", in machines of at least {}", printable(unit)),
    };
    let domain = in_domain(&explained.same_domain, explained.same_satisfiable);
    let verdict = match (explained.satisfied, explained.parked) {
        (true, _) => format!("decided: all of it{domain}"),
        (false, parked) => {
            let parked = if parked { ", parked" } else { "" };
            // Why is said in words below; the wire's word for it is too coarse for a person.
            format!("decided: short of {}{domain}{parked}", explained.residual)
        }
    };
    let text = format!(
        "Need {} of cluster {}{group}\nfingerprint {}\nasks for {}{unit}\n{}\n",
        explained.need,
        printable(&explained.cluster),
        printable(&explained.need_fingerprint),
        printable(&explained.wants),
        printable(&verdict),
    );
    let why = why(&explained.causes, &explained.changes);
    let tables = explained.table.as_ref().map(tables).unwrap_or_default();
    format!("{text}{why}\n{tables}")
}

/// ` in "r1"`, and whether that can hold it.
fn in_domain(domain: &str, is_enough: bool) -> String {
    match (domain, is_enough) {
        ("", _) => String::new(),
        (domain, true) => format!(" in \"{domain}\""),
        (domain, false) => format!(" in \"{domain}\", which cannot hold it"),
    }
}

/// What is asked for and whether it is there, worded as by `bigfleet decide --explain`.
fn heading(need: &NeedRecord) -> String {
    let group = match need.group.as_str() {
        "" => String::new(),
        group => format!(", gang {}", printable(group)),
    };
    let unit = if need.min_unit.is_empty() {
        String::new()
    } else {
        let whole = if need.whole_units {
            ", counted in whole ones"
        } else {
            ""
        };
        format!(
            ", in machines of at least {}{whole}",
            quantities(&need.min_unit)
        )
    };
    let domain = in_domain(&need.same_domain, need.same_satisfiable);
    let status = if need.is_served() {
        format!("served{domain}")
    } else {
        format!(
            "{}{domain}: serving {}, coming {}, stuck {}, missing {}",
            need.status_field().text,
            amounts(&need.serving),
            amounts(&need.coming),
            amounts(&need.stuck),
            amounts(&need.missing),
        )
    };
    format!(
        "Need {} of cluster {}{group}\nfingerprint {}\nasks for {}{}\n{}\n",
        need.need,
        printable(&need.cluster),
        printable(&need.need_fingerprint),
        printable(&quantities(&need.aggregate_resources)),
        printable(&unit),
        printable(&status),
    )
}

fn amounts(of: &BTreeMap<String, String>) -> String {
    if of.is_empty() {
        "nothing".to_owned()
    } else {
        quantities(of)
    }
}

fn steps(explained: &ExplanationRecord) -> String {
    let rows = explained.steps.iter().map(|step| {
        vec![
            step.step.clone(),
            step.considered.to_string(),
            step.taken.to_string(),
            quantities(&step.missing),
            step.text.clone(),
        ]
    });
    let header = ["STEP", "CONSIDERED", "TAKEN", "THEN MISSING", "WHAT"];
    columns(&header, rows)
}

fn claims(explained: &ExplanationRecord) -> String {
    let shown = explained.claims.iter().take(MOST_CLAIMS);
    let rows = shown.map(|claim| {
        vec![
            claim.machine.clone(),
            claim.state.clone(),
            claim.step.clone(),
        ]
    });
    let text = columns(&["MACHINE", "STATE", "STEP"], rows);
    let left = explained.claims.len().saturating_sub(MOST_CLAIMS);
    match (left, explained.claims_capped) {
        (0, _) => text,
        (left, false) => format!("{text} and {left} more\n"),
        (left, true) => format!("{text} and at least {left} more\n"),
    }
}
