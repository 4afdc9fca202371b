//! InspectEvents: what changed lately, oldest first.

use std::sync::Arc;

use bigfleet_model::{ClusterId, Time};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::inspect_events_response::Frame;
use bigfleet_wire::v1alpha1::{EventView, InspectEventsRequest, InspectEventsResponse};
use tonic::Status;

use super::stream::{Cut, Out, limited};
use super::{Reads, cluster_filter};
use crate::events::Happened;

/// What is asked for, checked.
pub(super) struct EventsFilter {
    after: i64,
    since: Time,
    cluster: Option<ClusterId>,
    limit: i32,
}

impl EventsFilter {
    pub(super) fn read(request: &InspectEventsRequest) -> Result<Self, Status> {
        Ok(Self {
            after: request.after_sequence,
            since: Time::from_nanos(request.since_unix_nanos),
            cluster: cluster_filter(&request.cluster_id)?,
            limit: request.limit,
        })
    }

    fn admits(&self, event: &Happened) -> bool {
        // What concerns the whole shard concerns each of its clusters.
        let about = event.news.cluster.as_ref();
        let wanted = self.cluster.as_ref();
        let is_about = |cluster| wanted.is_none_or(|wanted| wanted == cluster);
        self.since <= event.time && about.is_none_or(is_about)
    }
}

pub(super) async fn send(
    reads: &Reads,
    wanted: &EventsFilter,
    out: &Out<InspectEventsResponse>,
) -> Result<(), Cut> {
    let frame = |frame| InspectEventsResponse { frame: Some(frame) };
    let mut events = reads.events.after(wanted.after);
    events.retain(|event| wanted.admits(event));
    let (info, total) = (Arc::clone(&reads.info), events.len());
    let header = reads.hub.ask(move |core| info.header(core, total)).await?;
    out.send(frame(Frame::Header(header))).await?;
    let newest = total - limited(wanted.limit, total);
    for event in events.iter().skip(newest) {
        out.send(frame(Frame::Event(message(event)))).await?;
    }
    Ok(())
}

fn message(event: &Happened) -> EventView {
    let cluster = event.news.cluster.as_ref();
    EventView {
        sequence: event.sequence,
        time_unix_nanos: unix_nanos(event.time),
        kind: event.news.kind.to_owned(),
        severity: event.news.severity.word().to_owned(),
        cluster_id: cluster.map_or_else(String::new, ToString::to_string),
        text: event.news.text.clone(),
    }
}
