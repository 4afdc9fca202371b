//! Frames: messages that carry exactly one of several things.
//!
//! An absent content is what an unknown one looks like after decoding: a newer peer's frame. It is
//! skipped and logged; it never ends a stream (wire 6.1).

use crate::v1alpha1::{
    ExportFleetResponse, InspectClustersResponse, InspectMachinesResponse, InspectNeedsResponse,
    InspectWorkResponse, OperatorMessage, PauseScope, ShardMessage, SnapshotSaveChunk,
    export_fleet_response, inspect_clusters_response, inspect_machines_response,
    inspect_needs_response, inspect_work_response, operator_message, pause_scope, shard_message,
    snapshot_save_chunk,
};

/// A frame carries nothing that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is absent or unknown; a frame carries exactly one (wire 6.1)")]
pub struct EmptyFrame {
    /// Which field.
    pub field: &'static str,
}

/// A message that is nothing but one of several things.
pub trait Frame {
    /// What it may carry.
    type Content;

    /// What it carries.
    fn content(self) -> Result<Self::Content, EmptyFrame>;
}

macro_rules! frame {
    ($message:ident . $field:ident : $content:path) => {
        impl Frame for $message {
            type Content = $content;

            fn content(self) -> Result<$content, EmptyFrame> {
                self.$field.ok_or(EmptyFrame {
                    field: concat!(stringify!($message), ".", stringify!($field)),
                })
            }
        }

        impl From<$content> for $message {
            fn from(content: $content) -> Self {
                Self {
                    $field: Some(content),
                }
            }
        }
    };
}

frame!(OperatorMessage.payload: operator_message::Payload);
frame!(ShardMessage.payload: shard_message::Payload);
frame!(SnapshotSaveChunk.payload: snapshot_save_chunk::Payload);
frame!(InspectNeedsResponse.frame: inspect_needs_response::Frame);
frame!(InspectMachinesResponse.frame: inspect_machines_response::Frame);
frame!(InspectClustersResponse.frame: inspect_clusters_response::Frame);
frame!(InspectWorkResponse.frame: inspect_work_response::Frame);
frame!(ExportFleetResponse.frame: export_fleet_response::Frame);
frame!(PauseScope.scope: pause_scope::Scope);

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    #[test]
    fn a_newer_peers_frame_is_empty_not_malformed() {
        // Field 1999, length-delimited, no bytes.
        let newer = OperatorMessage::decode(&[0xfa, 0x7c, 0x00][..]).unwrap();
        let refused = newer.content().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "OperatorMessage.payload is absent or unknown; a frame carries exactly one (wire 6.1)"
        );
    }

    #[test]
    fn content_comes_back_as_it_went_in() {
        let data = snapshot_save_chunk::Payload::Data(vec![1, 2]);
        assert_eq!(SnapshotSaveChunk::from(data.clone()).content(), Ok(data));
    }
}
