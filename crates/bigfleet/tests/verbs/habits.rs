//! What people type out of habit: kinds and names as kubectl takes them, forms, selectors, contexts.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::called::call_in;
use crate::scene::Scene;
use crate::shard_scene::Folder;
use crate::terminal::Terminal;

#[tokio::test(flavor = "multi_thread")]
async fn kinds_names_and_forms_are_kubectls() {
    let scene = Scene::new("habits-forms").await;
    let serving = scene.serving();
    let name = format!("machine/{serving}");
    let named = scene.call(&["get", &name, "-o=name"]).done();
    assert_eq!(named, format!("{name}\n"));
    let path = "-o=jsonpath={.state}";
    assert_eq!(scene.call(&["get", &name, path]).done(), "Configured");
    let ids = scene
        .call(&["get", "machines", "-o=jsonpath={.items[*].id}"])
        .done();
    assert_eq!(ids.split(' ').count(), 8, "{ids}");
    let columns = "-o=custom-columns=ID:.id,NODE:.nothing";
    let custom = scene.call(&["get", "ma", &serving, columns]).done();
    let words: Vec<&str> = custom.split_whitespace().collect();
    assert_eq!(words, ["ID", "NODE", &serving, "<none>"]);
    let csv = scene.call(&["get", "machines", "-o=csv"]).done();
    let (header, _) = csv.split_once('\n').unwrap();
    assert!(
        header.starts_with("MACHINE,STATE,CLUSTER,TYPE,ZONE,TIER,$/H,AGE,FLAGS"),
        "{header}"
    );
    assert_eq!(csv.lines().count(), 9);
    let both = scene.call(&["get", "clusters,pauses,machines"]).done();
    assert!(
        both.contains("CLUSTER") && both.contains("MACHINE"),
        "{both}"
    );
    let described = scene.call(&["describe", &name, "-o=json"]).done();
    let described: serde_json::Value = serde_json::from_str(&described).unwrap();
    assert_eq!(described["id"], serving.as_str());
    assert!(described["decisions"].is_array());
    let paused = ["pause", "--reason=x", "-o=json"];
    let paused: serde_json::Value = serde_json::from_str(&scene.call(&paused).done()).unwrap();
    assert_eq!(paused["shard"], "s1");
    assert_eq!(paused["address"], scene.shard.addr.to_string());
    let resumed = scene.call(&["resume", "--reason=x"]);
    let on = format!("on shard s1 at {}\n", scene.shard.addr);
    assert!(resumed.err.ends_with(&on), "{resumed:?}");
    let wrong = scene.call(&["get", "machines", "-o=table2"]).refused();
    assert!(wrong.contains("custom-columns"), "{wrong}");
    let version = scene.call(&["version"]).done();
    assert_eq!(version.lines().count(), 2, "{version}");
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_that_mean_nothing_are_errors_and_the_rest_is_printed() {
    let scene = Scene::new("habits-select").await;
    let serving = scene.serving();
    let count = |args: &[&str]| {
        let all = [&["get", "machines", "--no-headers"], args].concat();
        scene.call(&all).done().lines().count()
    };
    assert_eq!(count(&["--field-selector", "state=Configured"]), 1);
    assert_eq!(count(&["--field-selector", "price>1000"]), 0);
    assert_eq!(count(&["-l", "price<1000"]), 8);
    for (args, says) in [
        (
            &["get", "machines", "--field-selector", "colour=red"][..],
            "no machine has a field \"colour\"",
        ),
        (
            &["get", "machines", "-l", "zoen=a"],
            "no machine has \"zoen\"",
        ),
        (
            &["get", "machines", "-l", "state=Idel"],
            "\"Idel\" is not a state",
        ),
        (&["get", "machines", "-l", "zone>3"], "is not a number"),
        (
            &["get", "machines", "--sort-by", ".nothing"],
            "--sort-by: no machine has that",
        ),
        (&["get", "clusters", "--show-labels"], "have no labels"),
    ] {
        let said = scene.call(args).refused();
        assert!(said.contains(says), "{args:?}: {said}");
    }
    let sorted = ["get", "machines", "--sort-by", "price", "-o"];
    let path = "jsonpath={range .items[*]}{.price_per_hour}{\"\\n\"}{end}";
    let prices = scene.call(&[&sorted[..], &[path]].concat()).done();
    let prices: Vec<f64> = prices.lines().map(|price| price.parse().unwrap()).collect();
    assert!(prices.is_sorted() && prices.len() == 8, "{prices:?}");
    let some = scene.call(&["get", "machines", &serving, "nobody", "-o=name"]);
    assert_eq!(some.status, Some(1), "{some:?}");
    assert_eq!(some.out, format!("machine/{serving}\n"));
    assert!(some.err.contains("\"nobody\" not found"), "{some:?}");
    for kind in ["machines", "needs", "work", "actions"] {
        let said = scene.call(&["get", kind, "--cluster=nowhere"]).undone();
        assert!(
            said.contains("cluster \"nowhere\" not found"),
            "{kind}: {said}"
        );
    }
    // Requirements read a machine's fields under these keys, and so do columns and selectors.
    let attributes = [
        ("topology.kubernetes.io/zone", "zone"),
        ("node.kubernetes.io/instance-type", "instance_type"),
        ("bigfleet.lucy.sh/capacity-type", "capacity_type"),
    ];
    for (key, field) in attributes {
        let path = format!("-o=jsonpath={{.{field}}}");
        let value = scene.call(&["get", "machines", &serving, &path]).done();
        assert!(!value.is_empty(), "{field}");
        let columns = scene.call(&["get", "machines", &serving, "-L", key]).done();
        let last = columns.lines().map(|line| line.split_whitespace().last());
        let last: Vec<&str> = last.map(Option::unwrap).collect();
        let header = key.rsplit('/').next().unwrap().to_uppercase();
        assert_eq!(last, [&*header, &*value], "{columns}");
        let selected = [
            "get",
            "machines",
            "-o=name",
            "-l",
            &format!("{key}={value}"),
        ];
        let selected = scene.call(&selected).done();
        assert!(selected.contains(&serving), "{key}={value}: {selected}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_and_watching_end_when_it_is_so() {
    let scene = Scene::new("habits-wait").await;
    let serving = format!("machine/{}", scene.serving());
    let waited = scene.call(&["wait", &serving, "--for=state=Configured"]);
    waited.done();
    let never = scene.call(&["wait", &serving, "--for=state=Failed", "--timeout=700ms"]);
    assert!(never.undone().contains("not so within"));
    scene
        .call(&["wait", "machine/nobody", "--for=delete"])
        .done();
    let shard = format!("--shard={}", scene.shard.addr);
    let mut watching = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
        .args(["get", "pauses", "-w", "--every=50ms", &shard])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    scene.call(&["pause", "--reason=watched"]).done();
    // That everything is paused is said first, above the columns.
    let mut until = |what: &str| {
        let mut lines = lines.by_ref().map(|line| line.unwrap());
        lines.find(|line| line.contains(what)).unwrap()
    };
    until("SCOPE");
    until("watched");
    scene.call(&["resume", "--reason=enough"]).done();
    until("is gone");
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_names_a_shard_and_an_unsafe_file_is_not_followed() {
    let scene = Scene::new("habits-context").await;
    let home = Folder::new("habits-context-home");
    let target = scene.shard.addr.to_string();
    let set = ["config", "set-context", "here", "--shard", &target];
    call_in(&home.0, &set).done();
    call_in(&home.0, &["config", "set-context", "there", "--shard=x:1"]).done();
    let unknown = call_in(&home.0, &["config", "use-context", "nowhere"]);
    assert!(unknown.undone().contains("get-contexts"));
    let by_name = ["get", "clusters", "--context=here", "-o=name"];
    assert_eq!(call_in(&home.0, &by_name).done(), "cluster/a\n");
    call_in(&home.0, &["config", "use-context", "here"]).done();
    let listed = call_in(&home.0, &["config", "get-contexts", "--output=csv"]).done();
    assert!(listed.contains(&format!("*,here,{target}")), "{listed}");
    let paused = call_in(&home.0, &["pause", "--reason=x"]);
    assert!(
        paused.err.contains(&format!("shard s1 at {target}")),
        "{paused:?}"
    );
    let file = home.file("config.yaml");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&file, open).unwrap();
    let refused = call_in(&home.0, &["get", "clusters"]).undone();
    assert!(refused.contains("others may write to it"), "{refused}");
    // Somebody else's file in a folder for all is not followed, and that is said.
    let shared = Folder::new("habits-context-shared");
    let left = shared.file("bigfleet-up.addr");
    std::fs::write(&left, format!("{target} {}", std::process::id())).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&left, open).unwrap();
    let ignored = call_in(&shared.0, &["get", "clusters", "--timeout=5s"]);
    assert!(ignored.err.contains("is not followed"), "{ignored:?}");
    assert_ne!(ignored.status, Some(0), "{ignored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_nobody_named_is_steered_only_after_a_yes() {
    let scene = Scene::new("habits-asked").await;
    let home = Folder::new("habits-asked-home");
    let target = scene.shard.addr.to_string();
    let left = format!("{target} {}", std::process::id());
    std::fs::write(home.file("bigfleet-up.addr"), left).unwrap();
    let folder = home.0.display().to_string();
    let config = home.file("config.yaml").display().to_string();
    let variables = [
        ("XDG_RUNTIME_DIR", folder.as_str()),
        ("BIGFLEET_CONFIG", config.as_str()),
    ];
    let pauses = || scene.call(&["get", "pauses", "-o=name"]).done();
    for (answer, status, is_paused) in [("n\r", 1, false), ("y\r", 0, true)] {
        let mut asked = Terminal::start(&["pause", "--reason=x"], 120, 24, &variables);
        asked.shows(&format!("pause everything on shard s1 at {target}"));
        asked.shows("the one `bigfleet up` runs here)? [y/N]");
        asked.press(answer);
        assert_eq!(asked.ended(), status, "{}", asked.text());
        assert_eq!(!pauses().is_empty(), is_paused);
    }
    let named = ["resume", "--reason=x", "--shard", &target];
    let mut named = Terminal::start(&named, 120, 24, &variables);
    assert_eq!(named.ended(), 0, "{}", named.text());
}
