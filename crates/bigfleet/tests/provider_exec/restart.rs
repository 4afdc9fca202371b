//! A provider that is killed takes up what was under way, with the operation it had.

use bigfleet_wire::v1alpha1::MachineState;

use crate::scene::{Exec, scripted};
use crate::shard_scene::{Folder, until};

/// Writes down which operation it was asked for, and is done once somebody allows it.
const SCRIPT: &str = r#"
sed -n "s/.*\"operation\":\"\([^\"]*\)\".*/$1 \1/p" >> operations
while ! test -e "go-$1"; do sleep 0.02; done
test "$1" != create || echo '{"host": "h"}'
"#;

fn operations(folder: &Folder, kind: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.file("operations")).unwrap_or_default();
    let of_kind = text.lines().filter(|line| line.starts_with(kind));
    of_kind.map(str::to_owned).collect()
}

#[tokio::test]
async fn what_a_kill_interrupts_is_asked_for_again_by_the_same_name() {
    let folder = Folder::new("exec-restart");
    let config = scripted(&folder, SCRIPT);
    let mut exec = Exec::start(folder, &config, &[]);
    let id = "exec-s-00002";
    let allow = |exec: &Exec, kind: &str| {
        std::fs::write(exec.folder.file(&format!("go-{kind}")), "").unwrap();
    };
    let begun = async |exec: &Exec, kind: &str, times: usize| {
        until("a run of the program", async || {
            let seen = operations(&exec.folder, kind);
            (times == seen.len(), seen)
        })
        .await
    };

    exec.create(id).await;
    begun(&exec, "create", 1).await;
    exec.again(&config, &[]);
    let twice = begun(&exec, "create", 2).await;
    assert_eq!(twice[0], twice[1], "the same operation");
    allow(&exec, "create");
    let idle = exec.reaches(id, MachineState::Idle).await;
    assert_eq!(idle.host.unwrap().r#ref, "h");

    allow(&exec, "configure");
    exec.configure(id, "web", b"blob").await;
    exec.reaches(id, MachineState::Configured).await;
    for kind in ["drain", "delete"] {
        if kind == "drain" {
            exec.drain(id).await;
        } else {
            exec.delete(id).await;
        }
        begun(&exec, kind, 1).await;
        exec.again(&config, &[]);
        let twice = begun(&exec, kind, 2).await;
        assert_eq!(twice[0], twice[1], "the same operation");
        allow(&exec, kind);
        let state = if kind == "drain" {
            MachineState::Idle
        } else {
            MachineState::Speculative
        };
        exec.reaches(id, state).await;
    }
    assert_eq!(exec.list().await.len(), 4, "no machine was lost");
}

/// Whoever is asked to end ends the programs that run.
#[tokio::test]
async fn a_provider_that_ends_leaves_no_program_behind() {
    let folder = Folder::new("exec-ends");
    let config = scripted(&folder, "echo $$ >> pids; sleep 1000");
    let exec = Exec::start(folder, &config, &[]);
    exec.create("exec-s-00000").await;
    let pids = || std::fs::read_to_string(exec.folder.file("pids")).unwrap_or_default();
    until("a program that runs", async || (!pids().is_empty(), ())).await;
    exec.provider.ask_to_end();
    let program = pids().trim().to_owned();
    until("the end of the program", async || {
        let status = std::fs::read_to_string(format!("/proc/{program}/stat")).unwrap_or_default();
        (status.is_empty() || status.contains(") Z "), status)
    })
    .await;
}
