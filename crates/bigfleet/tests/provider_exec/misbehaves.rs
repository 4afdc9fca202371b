//! Programs that misbehave, each on a machine of its own, behind the provider as it is run: one clear line on the
//! machine it was for, nothing left running, no machine lost, and the others go on.

use bigfleet_wire::v1alpha1::MachineState;

use crate::scene::{Exec, pids, scripted};
use crate::shard_scene::{Folder, until};

/// What the number of the machine says.
const SCRIPT: &str = r#"
test "$1" = create || exit 0
case $(sed 's/.*"machine":"exec-s-\([0-9]*\)".*/\1/') in
00000) echo garbage ;;
00001) yes | head -c 100000000 ;;
00002) sleep 1000 & echo '{"host": "h2"}' ;;
00003) trap '' TERM; sleep 1000 & while :; do sleep 1; done ;;
00004) exec >&-; exit 0 ;;
00005) kill -9 $$ ;;
*) echo '{"host": "h"}' ;;
esac
"#;

#[tokio::test]
async fn a_program_that_misbehaves_costs_its_own_machine_at_most() {
    let folder = Folder::new("exec-misbehaves");
    let config = scripted(&folder, SCRIPT);
    let text = std::fs::read_to_string(&config).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["programs"]["create"]["deadline"] = "2s".into();
    std::fs::write(&config, value.to_string()).unwrap();
    let exec = Exec::start(folder, &config, &["--seed-count=8"]);
    let id = |number: usize| format!("exec-s-{number:05}");
    for number in 0..8 {
        exec.create(&id(number)).await;
    }
    for (number, says) in [
        (0, "create: what it printed is not the JSON object expected"),
        (1, "create: printed more than 1 MiB, so it was ended"),
        (3, "create: not done within 2s, so it was ended"),
        (4, "create: printed no host"),
        (5, "create: died from signal 9"),
    ] {
        let failed = exec.reaches(&id(number), MachineState::Failed).await;
        let error = failed.last_error;
        assert!(error.contains(says), "{number}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    for number in [2, 6, 7] {
        exec.reaches(&id(number), MachineState::Idle).await;
    }
    until("the end of everything that was started", async || {
        let left = pids(&exec.folder.0);
        (left.is_empty(), left)
    })
    .await;
    assert_eq!(exec.list().await.len(), 8, "no machine is lost");
    exec.configure(&id(2), "web", b"blob").await;
    exec.reaches(&id(2), MachineState::Configured).await;
}
