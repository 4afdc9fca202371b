//! Export: the fleet of a running shard, as a fleet file.
//!
//! ```text
//! header, bytes, bytes, …, end ─▶ size and checksum agree? ─▶ the file, whole, or nothing
//! ```

use bigfleet_wire::v1alpha1::ExportFleetRequest;
use bigfleet_wire::v1alpha1::export_fleet_response::Frame;

use crate::client::Client;
use crate::error::CtlError;

const DOING: &str = "export the fleet";

/// The fleet a shard holds, as the bytes of a fleet file. Refuses more than `most_bytes`.
pub async fn export(
    client: &Client,
    cluster: &str,
    most_bytes: usize,
) -> Result<Vec<u8>, CtlError> {
    let request = ExportFleetRequest {
        cluster_id: cluster.to_owned(),
    };
    let mut frames = client.export(request).await?;
    let mut file = Vec::new();
    let malformed = |what: String| CtlError::Malformed {
        target: client.target().to_owned(),
        doing: DOING,
        what,
    };
    let mut begun = false;
    while let Some(frame) = client.next(DOING, &mut frames).await? {
        match frame.frame {
            Some(Frame::Header(_)) if !begun => begun = true,
            Some(Frame::Data(bytes)) if begun => file.extend(bytes),
            Some(Frame::End(end)) if begun => {
                let (size, sum) = (file.len(), crc32fast::hash(&file));
                return if (end.size_bytes, end.crc32) == (size as i64, sum) {
                    Ok(file)
                } else {
                    Err(malformed(format!(
                        "{size} bytes with checksum {sum:08x} arrived, {} with {:08x} were sent",
                        end.size_bytes, end.crc32
                    )))
                };
            }
            Some(_) => return Err(malformed("its parts are not in order".to_owned())),
            None => {}
        }
        if most_bytes < file.len() {
            return Err(CtlError::Local(format!(
                "the fleet of {} is larger than a fleet file may be ({most_bytes} bytes); take \
                 one cluster of it with --cluster",
                client.target()
            )));
        }
    }
    Err(CtlError::Interrupted {
        target: client.target().to_owned(),
        why: "the end of it never arrived".to_owned(),
    })
}
