//! Where bootstrap data goes: to the machine, and into no file, command line, environment or log on the way.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bigfleet_wire::v1alpha1::MachineState;

use crate::scene::{Exec, example, scripted};
use crate::shard_scene::Folder;

/// Bootstrap data that cannot be anywhere by chance, and the same as programs are given it.
pub(crate) struct Secret {
    pub(crate) plain: String,
    encoded: &'static str,
}

impl Secret {
    pub(crate) fn new() -> Self {
        Self {
            plain: "token: h7Kq2wZx9vB4\n".to_owned(),
            // Without its last letters, which depend on what follows.
            encoded: "dG9rZW46IGg3S3Eyd1p4OXZCN",
        }
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        let holds = |piece: &[u8]| bytes.windows(piece.len()).any(|it| it == piece);
        holds(self.plain.trim().as_bytes()) || holds(self.encoded.as_bytes())
    }

    fn in_files(&self, folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                self.in_files(&path, found);
            } else if kind.is_file() && self.is_in(&std::fs::read(&path).unwrap_or_default()) {
                found.push(path.display().to_string());
            }
        }
    }

    /// Every place outside of memory that has it now.
    pub(crate) fn found(&self, folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        self.in_files(folder, &mut found);
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            for name in ["cmdline", "environ"] {
                let path = entry.path().join(name);
                if self.is_in(&std::fs::read(&path).unwrap_or_default()) {
                    found.push(path.display().to_string());
                }
            }
        }
        found
    }

    /// Looks again and again while something is done, and once afterwards.
    pub(crate) async fn looked_for<T>(
        self,
        folder: &Path,
        work: impl Future<Output = T>,
    ) -> (T, Vec<String>) {
        let (over, folder) = (Arc::new(AtomicBool::new(false)), folder.to_owned());
        let looking = std::thread::spawn({
            let over = Arc::clone(&over);
            move || {
                let mut found = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    found.extend(self.found(&folder));
                }
                found.extend(self.found(&folder));
                found
            }
        });
        let done = work.await;
        over.store(true, Ordering::Relaxed);
        (done, looking.join().unwrap())
    }
}

#[tokio::test]
async fn bootstrap_data_of_the_example_is_in_memory_only() {
    let folder = Folder::new("exec-secrets");
    let config = example(&folder, "local-processes");
    let exec = Exec::start(folder, &config, &["--log-level=trace"]);
    let id = exec.list().await[0].id.clone();
    let secret = Secret::new();
    let plain = secret.plain.clone();
    let life = async {
        exec.create(&id).await;
        exec.reaches(&id, MachineState::Idle).await;
        exec.configure(&id, "web", plain.as_bytes()).await;
        exec.reaches(&id, MachineState::Configured).await;
        let beat = std::fs::read(exec.folder.file("machines").join(&id).join("heartbeat")).unwrap();
        exec.drain(&id).await;
        exec.reaches(&id, MachineState::Idle).await;
        exec.delete(&id).await;
        exec.reaches(&id, MachineState::Speculative).await;
        beat
    };
    let (beat, found) = secret.looked_for(&exec.folder.0, life).await;
    assert!(!beat.is_empty());
    assert_eq!(found, Vec::<String>::new());
    let log = exec.provider.text();
    assert!(!Secret::new().is_in(log.as_bytes()), "{log}");
}

/// The failing arm: a program that writes its question down is found out, and one that prints it is not believed.
#[tokio::test]
async fn a_program_that_leaks_is_found_out() {
    let folder = Folder::new("exec-leaks");
    let script = r#"case $1 in
create) echo '{"host": "h"}' ;;
configure) cat > leaked; cat leaked >&2; exit 1 ;;
esac"#;
    let config = scripted(&folder, script);
    let exec = Exec::start(folder, &config, &["--log-level=trace"]);
    let id = "exec-s-00000";
    exec.create(id).await;
    exec.reaches(id, MachineState::Idle).await;
    let secret = Secret::new();
    exec.configure(id, "web", secret.plain.as_bytes()).await;
    let failed = exec.reaches(id, MachineState::Failed).await;
    let leaked = exec.folder.file("leaked").display().to_string();
    assert_eq!(secret.found(&exec.folder.0), [leaked]);
    // What it did to a file is its own doing; what it said is not passed on.
    let error = &failed.last_error;
    assert!(
        error.contains("[a line that repeats bootstrap data]"),
        "{error}"
    );
    assert!(!secret.is_in(exec.provider.text().as_bytes()));
}
