//! `get events`: what changed, oldest first.

use bigfleet_wire::v1alpha1::InspectEventsRequest;

use crate::client::Client;
use crate::error::CtlError;
use crate::get::Selection;
use crate::output::AnswerSource;
use crate::record::EventRecord;
use crate::when::local_now;

/// The events, oldest first.
pub(crate) async fn events(
    client: &Client,
    selection: &Selection,
) -> Result<(Vec<EventRecord>, AnswerSource), CtlError> {
    let span = i64::try_from(selection.since.as_nanos()).unwrap_or(i64::MAX);
    let since = match span {
        0 => 0,
        span => shard_now(client).await?.saturating_sub(span).max(1),
    };
    let request = InspectEventsRequest {
        since_unix_nanos: since,
        cluster_id: selection.cluster.clone(),
        limit: selection.limit_there(),
        ..InspectEventsRequest::default()
    };
    let (header, views) = client.events(request).await?;
    let items = views.iter().map(EventRecord::from).collect();
    Ok((items, selection.source(header)))
}

/// The shard's own clock, from which a span counts back: it may differ from ours.
async fn shard_now(client: &Client) -> Result<i64, CtlError> {
    let nothing = InspectEventsRequest {
        after_sequence: i64::MAX,
        ..InspectEventsRequest::default()
    };
    let (header, _) = client.events(nothing).await?;
    Ok(match header.answered_at_unix_nanos {
        0 => local_now(),
        now => now,
    })
}
