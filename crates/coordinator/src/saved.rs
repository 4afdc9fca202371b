//! Saved: a snapshot as it leaves a coordinator, in frames.

use bigfleet_wire::v1alpha1::{SnapshotSaveChunk, snapshot_save_chunk::Payload};
use ring::digest::{SHA256, digest};

/// Bytes of one frame.
const FRAME: usize = 1 << 20;

/// One frame that says what follows, and the bytes in pieces.
pub(crate) fn frames(index: u64, term: u64, data: &[u8]) -> Vec<SnapshotSaveChunk> {
    let sum = digest(&SHA256, data);
    let sum: String = sum
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let meta = serde_json::json!({
        "Version": 1,
        "ID": format!("{term}-{index}"),
        "Index": index,
        "Term": term,
        "Size": data.len(),
        "SHA256": sum,
    });
    let meta = Payload::MetaJson(meta.to_string().into_bytes());
    let pieces = data
        .chunks(FRAME)
        .map(|piece| Payload::Data(piece.to_vec()));
    let payloads = std::iter::once(meta).chain(pieces);
    payloads
        .map(|payload| SnapshotSaveChunk {
            payload: Some(payload),
        })
        .collect()
}
