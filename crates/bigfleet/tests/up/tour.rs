//! The tour: every kind of action, every state, in the order it is told.

use crate::process::{Home, count, says};
use serde_json::Value;

#[test]
fn the_tour_shows_every_action_and_every_state_and_leaves_nothing() {
    let home = Home::new("tour");
    let mut running = home.up(&["--seed", "1", "--speed", "120"]);
    running.step("train-eu asks for no training Pods");
    let seen = running.seen.clone();
    let (code, last) = running.end("-TERM");
    home.is_empty();

    assert_eq!(code, Some(0));
    for (of, least) in [("actions", 5), ("states", 8)] {
        let counts = last[of].as_object().unwrap();
        assert_eq!(counts.len(), least, "{last}");
        assert!(
            counts.values().all(|count| 0 < count.as_u64().unwrap()),
            "{last}"
        );
    }
    assert_eq!(last["left_running"], serde_json::json!([]));

    // Nobody is preempted before somebody outranks, and a silent cluster loses nothing.
    let between = |from: &str, to: &str| -> Vec<&Value> {
        let at = |text: &str| {
            let found = seen
                .iter()
                .position(|line| says(line).is_some_and(|said| said.contains(text)));
            found.unwrap_or_else(|| panic!("nothing said \"{text}\""))
        };
        seen[at(from)..at(to)].iter().collect()
    };
    let decided = |lines: &[&Value], kind: &str| -> u64 {
        lines.iter().map(|line| count(line, "decided", kind)).sum()
    };
    assert_eq!(
        decided(&between("web-eu asks", "pay-eu asks for 12"), "Preempt"),
        0
    );
    assert!(
        0 < decided(
            &between("pay-eu asks for 12", "pay-eu asks for no"),
            "Preempt"
        )
    );
    let silence = between("edge-eu goes silent", "edge-eu is back");
    assert!(
        silence.iter().any(|line| line["sessions"] == 4),
        "it never went silent"
    );
    assert_eq!(decided(&silence, "Reclaim"), 0);
    assert!(
        0 < decided(
            &between("spot machines back", "edge-eu goes silent"),
            "Provision"
        )
    );
}
