//! All of it at once: the fleet as a file, and a reader that does not read.

use bigfleet_fleet_file::Format;
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use tonic::Code;
use wire::InspectMachinesRequest;

use super::scene::{MANY, Reader, all, machines, needs, of_new_reader, scene};
use crate::shard_scene::until;

/// CRC-32 (IEEE), bit by bit: not the code under test.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// The file of an export, checked against its end.
async fn exported(reader: &mut Reader, cluster: &str) -> (usize, Vec<u8>) {
    use wire::export_fleet_response::Frame;
    let cluster_id = cluster.to_owned();
    let request = wire::ExportFleetRequest { cluster_id };
    let stream = reader.export_fleet(request).await.unwrap().into_inner();
    let frames = all(stream).await.into_iter();
    let mut frames: Vec<Frame> = frames.map(|one| one.frame.unwrap()).collect();
    let Frame::Header(header) = frames.remove(0) else {
        panic!("no header comes first");
    };
    let Some(Frame::End(end)) = frames.pop() else {
        panic!("no end comes last");
    };
    let mut file = Vec::new();
    for frame in frames {
        let Frame::Data(data) = frame else {
            panic!("{frame:?}")
        };
        assert!(!data.is_empty() && data.len() <= 1 << 20);
        file.extend(data);
    }
    assert_eq!(
        (end.size_bytes as usize, end.crc32),
        (file.len(), crc32(&file))
    );
    (header.total as usize, file)
}

#[tokio::test]
async fn the_fleet_is_exported_as_a_file_that_reads_back() {
    let mut scene = scene("export", MANY).await;
    let (total, file) = exported(&mut scene.reader, "").await;
    assert!(1 << 20 < file.len(), "more than one chunk");
    let fleet = bigfleet_fleet_file::read(&file, Format::Json)
        .unwrap()
        .fleet;
    assert_eq!((fleet.machines.len(), total), (MANY, MANY));
    let a = &fleet.clusters[&bigfleet_model::ClusterId::new("a").unwrap()];
    assert_eq!(a.needs().len(), 2);
    let bound = fleet.machines.values();
    assert_eq!(
        bound.filter(|one| one.machine.cluster().is_some()).count(),
        1
    );

    // Of the two types, half of the slots each, only one has the smallest unit of its rows.
    let (total, file) = exported(&mut scene.reader, "a").await;
    let part = bigfleet_fleet_file::read(&file, Format::Json)
        .unwrap()
        .fleet;
    assert_eq!((part.machines.len(), total), (MANY / 2, MANY / 2));
    let types = part.machines.values();
    assert!(
        types
            .clone()
            .all(|one| one.machine.shape().instance_type == "g8.standard")
    );
    let request = wire::ExportFleetRequest {
        cluster_id: "nobody".to_owned(),
    };
    let mut nobody = scene
        .reader
        .export_fleet(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(nobody.message().await.unwrap_err().code(), Code::NotFound);
}

/// A reader that stops reading keeps only itself waiting: cycles go on, and so do other readers.
#[tokio::test]
async fn a_slow_reader_slows_nobody_but_itself() {
    use wire::inspect_machines_response::Frame;
    let scene = scene("slow", MANY).await;
    let cycle = async || {
        let mut reader = scene.reader.clone();
        let rails = reader.inspect_rails(wire::InspectRailsRequest {}).await;
        rails.unwrap().into_inner().header.unwrap().cycle
    };
    // Room for less than a page: what the shard has not been able to write, it holds.
    let narrow = Dial {
        stream_window: 1 << 16,
        connection_window: 1 << 16,
        ..Dial::unknown(None)
    };
    let mut slow = Reader::new(narrow.channel(&scene.shard.addr.to_string()).unwrap());
    let stream = slow.inspect_machines(InspectMachinesRequest::default());
    let mut stream = stream.await.unwrap().into_inner();
    let first = stream.message().await.unwrap().unwrap().frame.unwrap();
    let Frame::Header(header) = first else {
        panic!("{first:?}");
    };
    assert_eq!(header.total as usize, MANY);

    let began = cycle().await;
    until("five more cycles", async || {
        let now = cycle().await;
        (began + 5 <= now, now)
    })
    .await;
    let (header, rows) = needs(&mut scene.reader.clone(), of_new_reader("a")).await;
    assert!(began < header.cycle && rows.len() == 2);

    let rest = all(stream).await;
    assert_eq!(rest.len(), MANY, "and it still gets everything");
    // One that goes away in the middle leaves nothing behind that would hold up the next.
    for _ in 0..50 {
        let stream = slow.inspect_machines(InspectMachinesRequest::default());
        drop(stream.await.unwrap());
    }
    let (header, _) = machines(&mut slow, InspectMachinesRequest::default()).await;
    assert_eq!(header.total as usize, MANY);
}
