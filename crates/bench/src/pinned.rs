//! Digests of the first decision about the named fleets of seed 1: faster but different is a bug.

use bigfleet_workloads::Preset;

/// Of the co-located fleet.
pub const CO_LOCATED_DIGEST: &str = "eee1cf54f17dd1cab9099191cf9019a9";
/// Of the 5k fleet.
pub const FIVE_K_DIGEST: &str = "e6fc474e321754be4d8546ab30e8c4d3";
const FIFTY_K_DIGEST: &str = "2f692b01531c64c64ef9ad7c77246125";
const FIVE_HUNDRED_K_DIGEST: &str = "7ab1499e5c253f3514a773f8eaf30b53";

/// Needs, machines and classes looked at in twenty steady cycles and a full one of this workload, as when its
/// instructions were last compared with those of the engine that knew sums only (docs/performance.md): a machine
/// that counts no instructions can tell by it whether that comparison still holds.
pub(crate) fn work(profile: &str, seed: u64) -> Option<u64> {
    let counted = [
        (Preset::CoLocated, 453_979),
        (Preset::Dev50, 15_781),
        (Preset::FiveK, 150_147),
        (Preset::FiftyK, 1_404_303),
    ];
    let found = counted
        .into_iter()
        .find(|(preset, _)| preset.name() == profile);
    found.filter(|_| seed == 1).map(|(_, work)| work)
}

/// What the digest of this workload has to be, where it is pinned.
pub(crate) fn digest(profile: &str, seed: u64) -> Option<&'static str> {
    let pinned = [
        (Preset::CoLocated, CO_LOCATED_DIGEST),
        (Preset::FiveK, FIVE_K_DIGEST),
        (Preset::FiftyK, FIFTY_K_DIGEST),
        (Preset::FiveHundredK, FIVE_HUNDRED_K_DIGEST),
    ];
    let found = pinned
        .into_iter()
        .find(|(preset, _)| preset.name() == profile);
    found.filter(|_| seed == 1).map(|(_, digest)| digest)
}
