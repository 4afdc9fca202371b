//! Programs that misbehave, and some that only look like it: each ends in one clear line, with nothing left running.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bigfleet_fleet_file::Format;
use bigfleet_provider_exec::{Config, ExecBackend, Slots};
use bigfleet_provider_kit::{Backend, Cancelled, Created, Failure, Job, Machine, check_instance};

/// How long anything may take that a test waits for.
const WITHIN: Duration = Duration::from_secs(60);

/// A backend whose programs are scripts, in a folder that is gone afterwards.
struct Scene {
    folder: PathBuf,
    backend: Arc<ExecBackend>,
    machine: Machine,
}

impl Drop for Scene {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

impl Scene {
    /// The same script for everything, with these settings of create.
    fn new(script: &str, settings: serde_json::Value) -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let nth = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = format!("bigfleet-programs-{}-{nth}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("script"), script).unwrap();
        let program = serde_json::json!({"run": ["/bin/sh", "./script"]});
        let mut create = program.clone();
        create
            .as_object_mut()
            .unwrap()
            .extend(settings.as_object().unwrap().clone());
        let config = serde_json::json!({
            "environment": ["PATH"],
            "programs": {"create": create, "configure": program, "drain": program, "delete": program},
            "offerings": [{
                "instance_type": "s", "zone": "z", "capacity_type": "on_demand", "price_per_hour": 1,
                "count": 8, "resources": {"cpu": 2}, "labels": {"rack": "r1"},
            }],
        });
        let config = Config::parse(config.to_string().as_bytes(), Format::Json, folder.clone());
        let config = config.unwrap();
        let backend = Arc::new(ExecBackend::new(&config, Slots::new(&config, "p", None)));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let instances = runtime.block_on(backend.describe()).unwrap();
        let machine = check_instance(&instances[0], true).unwrap();
        Self {
            folder,
            backend,
            machine,
        }
    }

    fn plain(script: &str) -> Self {
        Self::new(script, serde_json::json!({}))
    }

    fn job(&self) -> Job {
        Job {
            machine: Arc::new(self.machine.clone()),
            operation: "op-7".into(),
            cancelled: Cancelled::never(),
        }
    }

    fn create(&self) -> Result<Created, Failure> {
        run(self.backend.create(self.job()))
    }

    fn refused(&self) -> String {
        self.create().unwrap_err().text
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    /// The processes whose numbers a script wrote down.
    fn processes(&self) -> Vec<u32> {
        let text = self.text("pids");
        text.lines()
            .map(|line| line.trim().parse().unwrap())
            .collect()
    }

    fn nothing_is_left(&self) {
        let pids = self.processes();
        assert!(!pids.is_empty(), "the script wrote no number down");
        until("the end of what it started", || {
            !pids.iter().any(|pid| runs(*pid))
        });
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + WITHIN;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs: one that has ended and waits for its parent to notice does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

#[test]
fn what_is_not_an_answer_is_refused() {
    for (script, said) in [
        (
            "echo garbage",
            "create: what it printed is not the JSON object expected (line 1, column 1)",
        ),
        ("exec >&-; exit 0", "create: printed no host"),
        ("echo '{\"hots\": \"a\"}'", "create: unknown field `hots`"),
        (
            "printf '\\377\\376'",
            "create: what it printed is not the JSON object expected",
        ),
        (
            "echo '{\"host\": \"a\"} {}'",
            "create: what it printed is not the JSON object expected",
        ),
        ("kill -9 $$", "create: died from signal 9"),
        ("kill -TERM $$", "create: died from signal 15"),
        ("exit 3", "create: exit status 3"),
        (
            "echo a >&2; echo b >&2; exit 1",
            "create: exit status 1: a | b",
        ),
        ("echo full >&2; exit 69", "create: no stock: full"),
        ("echo quota >&2; exit 64", "create: refused for good: quota"),
        ("exit 75", "create: asks to try again later"),
        ("exec 0<&- 1>&- 2>&-; exit 1", "create: exit status 1"),
        ("./not-there", "create: exit status 127: "),
    ] {
        let refused = Scene::plain(script).refused();
        assert!(refused.starts_with(said), "{script}: {refused}");
        assert!(!refused.contains('\n'), "{refused}");
    }
}

#[test]
fn a_hundred_megabytes_are_not_heard_out() {
    let scene = Scene::plain("echo $$ >> pids; yes | head -c 100000000");
    assert_eq!(
        scene.refused(),
        "create: printed more than 1 MiB, so it was ended"
    );
    scene.nothing_is_left();
    // On standard error only the end is kept, and it is no mistake.
    let noisy = Scene::plain("yes | head -c 100000000 >&2; echo '{\"host\": \"h\"}'");
    assert_eq!(noisy.create().unwrap().host.reference, "h");
}

#[test]
fn what_a_program_forks_into_its_group_ends_with_it() {
    let scene = Scene::plain("sleep 1000 & echo $! >> pids; echo '{\"host\": \"h\"}'");
    assert_eq!(scene.create().unwrap().host.reference, "h");
    scene.nothing_is_left();
}

#[test]
fn a_daemon_of_its_own_session_lives_on_and_is_not_waited_for() {
    // It keeps standard output and standard error open; whoever waits for their end waits for ever.
    let scene = Scene::plain(
        "setsid sh -c 'echo $$ >> pids; exec sleep 1000' & while ! test -s pids; do :; done; echo '{\"host\": \"h\"}'",
    );
    assert_eq!(scene.create().unwrap().host.reference, "h");
    let [daemon] = scene.processes()[..] else {
        panic!()
    };
    assert!(runs(daemon));
    std::process::Command::new("kill")
        .arg(daemon.to_string())
        .status()
        .unwrap();
    scene.nothing_is_left();
}

#[test]
fn a_program_that_ignores_its_deadline_is_ended() {
    let script = "trap '' TERM; echo $$ >> pids; sleep 1000 & echo $! >> pids; echo stuck >&2; while :; do sleep 1; done";
    let scene = Scene::new(script, serde_json::json!({"deadline": "300ms"}));
    let refused = scene.refused();
    assert!(
        refused.starts_with("create: not done within 300ms, so it was ended"),
        "{refused}"
    );
    scene.nothing_is_left();
}

#[test]
fn work_that_is_dropped_takes_its_program_with_it() {
    let scene = Scene::plain("echo $$ >> pids; sleep 1000");
    let work = async {
        let work = tokio::spawn({
            let (backend, job) = (Arc::clone(&scene.backend), scene.job());
            async move { backend.create(job).await }
        });
        while scene.text("pids").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        work.abort();
        assert!(work.await.unwrap_err().is_cancelled());
    };
    run(work);
    scene.nothing_is_left();
}

#[test]
fn a_program_that_is_gone_is_named() {
    let scene = Scene::plain("true");
    // The folder a program is started in is part of starting it.
    std::fs::remove_dir_all(&scene.folder).unwrap();
    let refused = scene.refused();
    assert!(
        refused.starts_with("create: /bin/sh could not be started: "),
        "{refused}"
    );
}

#[test]
fn a_program_need_not_read_what_it_is_given() {
    let scene = Scene::plain("exit 0");
    let blob: Arc<[u8]> = vec![7; 4 << 20].into();
    run(scene.backend.configure(scene.job(), blob)).unwrap();
}

#[test]
fn the_question_is_one_json_object_and_the_environment_is_what_the_file_names() {
    let mut scene = Scene::plain(
        "cat > question; env > environment; echo '{\"host\": \"h\", \"provider_id\": \"x://y/h\", \"node_name\": \"n1\", \"allocatable\": {\"cpu\": \"1900m\"}}'",
    );
    let created = scene.create().unwrap();
    assert_eq!(created.host.reference, "x://y/h");
    assert_eq!(created.allocatable.unwrap()["cpu"], "1900m");
    let question: serde_json::Value = serde_json::from_str(&scene.text("question")).unwrap();
    let offering = serde_json::json!({
        "name": "on-demand-s-z", "instance_type": "s", "zone": "z", "capacity_type": "on_demand", "price_per_hour": 1.0,
        "interruption_probability": 0.0, "resources": {"cpu": "2"}, "allocatable": {},
    });
    let expected = serde_json::json!({
        "call": "create", "operation": "op-7", "machine": "p-on-demand-s-z-00000", "offering": offering,
        "labels": {"rack": "r1"},
    });
    assert_eq!(question, expected);
    let environment = scene.text("environment");
    let names = environment
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name);
    // A shell adds these by itself.
    let names: Vec<&str> = names
        .filter(|name| !["PWD", "_", "SHLVL", "OLDPWD"].contains(name))
        .collect();
    assert_eq!(names, ["PATH"], "{environment}");

    scene.machine.host = Some(created.host);
    scene.machine.cluster = "web".to_owned();
    run(scene
        .backend
        .configure(scene.job(), Arc::from(&b"\x00blob"[..])))
    .unwrap();
    let question: serde_json::Value = serde_json::from_str(&scene.text("question")).unwrap();
    for (key, value) in [
        ("call", "configure"),
        ("cluster", "web"),
        ("host", "h"),
        ("provider_id", "x://y/h"),
        ("node_name", "n1"),
        ("bootstrap_blob", "AGJsb2I="),
    ] {
        assert_eq!(question[key], value, "{key}");
    }
    run(scene.backend.drain(scene.job(), Duration::from_secs(30))).unwrap();
    let question: serde_json::Value = serde_json::from_str(&scene.text("question")).unwrap();
    assert_eq!(question["grace_seconds"], 30);
    assert_eq!(question.get("bootstrap_blob"), None);
}

#[test]
fn no_more_run_at_once_than_the_file_says() {
    let script = "mkdir -p running/$$; ls running | wc -l >> seen; sleep 0.05; rmdir running/$$; echo '{\"host\": \"h\"}'";
    let scene = Scene::new(script, serde_json::json!({"at_once": 2}));
    run(async {
        let jobs = (0..8).map(|_| {
            let (backend, job) = (Arc::clone(&scene.backend), scene.job());
            tokio::spawn(async move { backend.create(job).await })
        });
        for job in jobs.collect::<Vec<_>>() {
            job.await.unwrap().unwrap();
        }
    });
    let seen = scene.text("seen");
    let seen: Vec<u32> = seen
        .lines()
        .map(|line| line.trim().parse().unwrap())
        .collect();
    assert_eq!(seen.len(), 8);
    assert_eq!(seen.iter().max(), Some(&2), "{seen:?}");
}

#[test]
fn a_program_that_repeats_bootstrap_data_does_not_publish_it() {
    let scene = Scene::plain(
        "grep -o 'c2VjcmV0[A-Za-z0-9+/=]*' >&2; echo 'secret of the cluster' >&2; exit 1",
    );
    let failed = run(scene
        .backend
        .configure(scene.job(), Arc::from(&b"secret of the cluster"[..])));
    let text = failed.unwrap_err().text;
    assert!(
        !text.contains("secret") && !text.contains("c2VjcmV0"),
        "{text}"
    );
    assert!(text.contains("repeats bootstrap data"), "{text}");
}

/// Nothing of a run outlives it here: no file handle, no thread, no process.
#[test]
fn many_runs_leave_nothing_behind() {
    let scene = Scene::plain("exit 0");
    let count = |what: &str| {
        std::fs::read_dir(Path::new("/proc/self").join(what))
            .unwrap()
            .count()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let some = |n: usize| {
        runtime.block_on(async {
            for _ in 0..n {
                scene
                    .backend
                    .drain(scene.job(), Duration::ZERO)
                    .await
                    .unwrap();
            }
        });
    };
    some(5);
    let before = count("fd");
    some(300);
    // Tests run side by side and hold files of their own: what grows with each run would be far above.
    assert!(count("fd") < before + 100);
}
