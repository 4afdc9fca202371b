//! `bigfleet describe` and `bigfleet explain`.

use serde_json::Value;

use crate::called::page;
use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn everything_about_one_thing() {
    let scene = Scene::new("verbs-pages").await;
    let describe = |kind: &str, name: &str| scene.call(&["describe", kind, name]);
    let machine = scene.serving();
    let machine_page = describe("machine", &machine).done();
    for fact in [
        "Configured",
        "Serves:",
        "at priority 100",
        "Bootstrap",
        "success",
    ] {
        assert!(machine_page.contains(fact), "{fact}\n{machine_page}");
    }
    let cluster_page = describe("cl", "a").done();
    for fact in [
        "Operator:",
        "live",
        "drain-report.v1",
        "1 Configured",
        "served",
        "missing",
    ] {
        assert!(cluster_page.contains(fact), "{fact}\n{cluster_page}");
    }
    let short = scene.need("missing");
    insta::assert_snapshot!("describe-need", page(&describe("need", &short).done()));
    let missing = describe("machine", "m-0").undone();
    assert_eq!(
        missing,
        "machine \"m-0\" not found; `bigfleet get machines` lists what there is\n"
    );
    assert!(
        describe("cluster", "b")
            .undone()
            .starts_with("cluster \"b\" not found")
    );
    assert!(
        describe("need", "12345678")
            .undone()
            .starts_with("need \"12345678\" not found")
    );
    describe("node", "x").refused();
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_need_is_served_as_it_is() {
    let scene = Scene::new("verbs-explain").await;
    let explain = |args: &[&str]| scene.call(&[&["explain"], args].concat());
    insta::assert_snapshot!("explain", page(&explain(&["a"]).done()));

    let (short, covered) = (scene.need("missing"), scene.need("served"));
    let one = page(&explain(&["a", &short]).done());
    assert!(
        one.contains("missing cpu=4") && !one.contains(&format!("Need {covered} ")),
        "{one}"
    );
    assert_eq!(
        page(&explain(&[&format!("a/{short}")]).done()),
        one,
        "in one word, as decide has it"
    );
    assert_eq!(page(&explain(&["a", "-l", "status=missing"]).done()), one);
    let limited = explain(&["a", "--limit=1"]);
    assert!(
        limited
            .err
            .starts_with("1 of 2 Needs, those that are not served in full first"),
        "{}",
        limited.err
    );
    assert_eq!(page(&limited.done()), one);

    let json: Value =
        serde_json::from_str(&explain(&["a", &covered, "-o", "json"]).done()).unwrap();
    assert_eq!(json["need"]["satisfied"], true);
    assert_eq!(json["claims"][0]["machine"], scene.serving());
    let yaml: Value =
        serde_norway::from_str(&explain(&["a", &covered, "-o", "yaml"]).done()).unwrap();
    assert_eq!(yaml["claims"], json["claims"]);

    assert!(
        explain(&["b"])
            .undone()
            .starts_with("cluster \"b\" not found")
    );
    assert!(
        explain(&["a", "12345678"])
            .undone()
            .starts_with("need \"12345678\" not found")
    );
    let none = explain(&["a", "-l", "priority=7"]).undone();
    assert!(none.starts_with("cluster \"a\" has no such Need"), "{none}");
    explain(&[]).refused();
}
