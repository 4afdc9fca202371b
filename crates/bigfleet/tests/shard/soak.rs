//! Everything at once: a provider that lies, fails and goes away, operators that mean harm, kills and pauses, drawn
//! by a seed, for as long as one likes. The judge is the ledger in front of the provider.
//!
//! ```text
//! good ──┐                                     refuses, lies, holds, dies and returns
//! bad ───┼══▶ shard (killed, paused) ──▶ Ledger ──▶ provider
//! hostile┘    bad: never starts              every call written down
//! ```
//!
//! A few seconds of it are a test; `cargo xtask soak` goes on for minutes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bigfleet_seeded::Prng;
use serde_json::json;
use tonic::Status;

use crate::shard_scene::ledger::{CallKind, Lie};
use crate::shard_scene::operator::{Manner, Operator, cpus, row};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::until;

const METAL: usize = 40;
const SLOTS: usize = 20;
/// What the cluster asks for whose machines never start.
const CURSED: usize = 3;

/// A number of the environment, for whoever starts this with other ones.
fn given(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(usual, |text| text.parse().unwrap())
}

/// The scene, who is connected, and what has been done to it.
struct Soak {
    scene: Scene,
    operators: [Operator; 3],
    draws: Prng,
    wanted: usize,
    kills: usize,
}

impl Soak {
    async fn begin(seed: u64) -> Self {
        let scene = Scene::with("soak", METAL, SLOTS, &json!({}), &[]).await;
        scene.ledger.ledger.curse("bad");
        let operators = Self::connect(&scene).await;
        let mut soak = Self {
            scene,
            operators,
            draws: Prng::new(seed),
            wanted: 8,
            kills: 0,
        };
        soak.say_needs().await;
        soak
    }

    async fn connect(scene: &Scene) -> [Operator; 3] {
        [
            scene.operator("good", Manner::Reports).await,
            scene.operator("bad", Manner::Plain).await,
            scene.operator("hostile", Manner::Reports).await,
        ]
    }

    async fn say_needs(&mut self) {
        let [good, bad, _] = &self.operators;
        good.needs(vec![cpus(self.wanted)]).await;
        bad.needs(vec![cpus(CURSED)]).await;
        self.make_up_rows().await;
    }

    /// Rows that nobody has seen before, which take whatever nobody else wants.
    async fn make_up_rows(&mut self) {
        let made_up = |_| {
            let label = self.draws.next_u64().to_string();
            row(4, -1 - self.draws.below(1000) as i32, &label)
        };
        let rows = (0..100).map(made_up).collect();
        self.operators[2].needs(rows).await;
    }

    async fn kill(&mut self) {
        self.kills += 1;
        self.scene.next_shard(&[]);
        self.operators = Self::connect(&self.scene).await;
        self.say_needs().await;
    }

    /// One bad turn, which may be over before the next or not.
    async fn turn(&mut self) {
        let ledger = self.scene.ledger.ledger.clone();
        let kinds = [CallKind::Create, CallKind::Configure, CallKind::Drain];
        let kind = *self.draws.pick(&kinds);
        match self.draws.below(9) {
            0 => ledger.refuse(kind, Status::unavailable("later")),
            1 => ledger.relent(kind),
            2 => ledger.lie(*self.draws.pick(&[Lie::Half, Lie::HalfUncounted]), 2),
            3 => ledger.lie(Lie::Garbled, 1),
            4 => self.kill().await,
            5 => {
                self.scene.cloud_dies();
                self.scene.cycles(2).await;
                self.scene.cloud_returns(&json!({}));
            }
            6 => self.make_up_rows().await,
            7 => {
                let pause = self.scene.folder.file("data/pause");
                std::fs::write(&pause, "a soak").unwrap();
                self.scene.cycles(2).await;
                std::fs::remove_file(&pause).unwrap();
            }
            _ => {
                self.wanted = self.draws.between(4, 12);
                self.operators[0].needs(vec![cpus(self.wanted)]).await;
            }
        }
        self.scene.cycles(1 + self.draws.below(3) as u32).await;
    }

    /// The machines that were ever configured for the cluster whose machines never start.
    fn used_up(&self) -> usize {
        let calls = self.scene.ledger.ledger.seen().into_iter();
        let tried = calls.filter(|call| call.kind == CallKind::Configure && call.cluster == "bad");
        let tried: BTreeSet<String> = tried
            .filter(|call| call.answer.is_ok())
            .map(|call| call.machine)
            .collect();
        tried.len()
    }
}

/// SH-6, SH-9, SH-22, SH-40: whatever happens, no call is repeated as another or out of place, trouble uses up no more
/// than it may, nothing grows; and when it is over everybody has what they asked for, and it is quiet.
#[tokio::test]
async fn everything_at_once() {
    let seconds = given("BIGFLEET_SOAK_SECONDS", 10);
    let seed = given("BIGFLEET_SOAK_SEED", 1);
    let mut soak = Soak::begin(seed).await;
    let until_then = Instant::now() + Duration::from_secs(seconds);
    let (mut turns, mut most_memory) = (0_u32, 0.0_f64);
    while Instant::now() < until_then {
        soak.turn().await;
        turns += 1;
        soak.scene.ledger.ledger.check();
        most_memory = most_memory.max(soak.scene.shard.memory_mb());
        let used_up = soak.used_up();
        assert!(used_up <= 2 * CURSED, "seed {seed}: {used_up} used up");
        assert!(most_memory < 200.0, "seed {seed}: {most_memory} MB");
    }
    let ledger = soak.scene.ledger.ledger.clone();
    for kind in [CallKind::Create, CallKind::Configure, CallKind::Drain] {
        ledger.relent(kind);
    }
    until("the end of all lies", async || {
        let left = ledger.lies_left();
        (left == 0, left)
    })
    .await;
    // A process that has seen none of it, so that nothing waits for the end of a long backoff.
    soak.kill().await;
    soak.operators[0].has(soak.wanted).await;
    ledger.check();
    println!(
        "seed {seed}: {turns} turns, {} kills, {} calls, {} used up, at most {most_memory:.0} MB",
        soak.kills,
        ledger.seen().len(),
        soak.used_up(),
    );
}
