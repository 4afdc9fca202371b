//! scratch
use bigfleet_bench::*;
use bigfleet_workloads::Preset;
fn main() {
    let name = std::env::args().nth(1).unwrap();
    let cycles = std::env::args()
        .nth(2)
        .and_then(|s| s.parse().ok())
        .unwrap_or(20);
    let cc = std::env::args().nth(3).and_then(|s| s.parse().ok());
    let r = decide(
        Settings {
            preset: Preset::named(&name).unwrap(),
            seed: 1,
            cycles,
            churning_clusters: cc,
        },
        &mut |_, _, _| {},
    );
    println!("{r:#?}");
}
