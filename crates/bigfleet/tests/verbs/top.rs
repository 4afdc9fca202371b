//! `bigfleet top` in a real terminal.

use crate::called::call;
use crate::scene::Scene;
use crate::terminal::Terminal;

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_is_seen_explained_paused_and_left() {
    let scene = Scene::new("verbs-top").await;
    let shard = format!("--shard={}", scene.shard.addr);
    let mut terminal = Terminal::start(&["top", &shard, "--every=100ms"], 120, 40, &[]);
    terminal.shows("acting  s1");
    terminal.shows("Clusters 1");
    terminal.shows("Needs 2, not served 1");
    terminal.shows("Machines 8");
    terminal.shows("Bootstrap");
    terminal.press("e");
    terminal.shows("What would change it, each tried on a copy of the fleet:");
    terminal.press("\u{1b}");
    terminal.shows("Clusters 1");
    terminal.press("p");
    terminal.shows("Stop all changes to machines for 30m? y pauses");
    terminal.press("y");
    // In the first line instead of "acting", and below it since when, by whom and why.
    terminal.looks("a pause that is drawn first", |text| {
        let mut lines = text.lines();
        let is_first = lines
            .next()
            .is_some_and(|line| line.starts_with("bigfleet  PAUSED"));
        is_first
            && lines
                .next()
                .is_some_and(|line| line.starts_with("PAUSED for "))
    });
    terminal.looks("why, over as many lines as it takes", |text| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").contains("from the live view")
    });
    let pauses = scene.call(&["get", "pauses", "--no-headers"]).done();
    assert!(pauses.contains("admin:all"), "{pauses}");
    terminal.press("r");
    terminal.shows("resumed all");
    terminal.shows("acting");
    assert!(
        !terminal.raw().contains("no\u{1b}[2Jwhere"),
        "a name is obeyed"
    );
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_shard_leaves_its_picture_and_every_end_gives_the_terminal_back() {
    let scene = Scene::new("verbs-lost").await;
    let shard = format!("--shard={}", scene.shard.addr);
    let args = ["top", &shard, "--every=100ms"];
    let mut interrupted = Terminal::start(&args, 80, 24, &[]);
    let mut terminated = Terminal::start(&args, 80, 24, &[("NO_COLOR", "1")]);
    for terminal in [&interrupted, &terminated] {
        terminal.shows("Needs 2, not served 1");
    }
    scene.shard.kill();
    for terminal in [&interrupted, &terminated] {
        terminal.shows("no answer since ");
        terminal.shows("nothing answers at");
        terminal.shows("Needs 2, not served 1");
    }
    interrupted.press("\u{3}");
    assert_eq!(interrupted.ended(), 0);
    terminated.terminate();
    assert_eq!(terminated.ended(), 0);
    assert!(interrupted.raw().contains("\u{1b}[38;5;"), "it has colours");
    assert!(
        !terminated.raw().contains("\u{1b}[38;5;"),
        "NO_COLOR is honoured"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_dies_is_drawn_first_whatever_else_there_is() {
    let scene = Scene::new("verbs-top-lost").await;
    let shard = format!("--shard={}", scene.shard.addr);
    let mut terminal = Terminal::start(&["top", &shard, "--every=100ms"], 80, 24, &[]);
    terminal.shows("acting  s1");
    let Scene {
        folder: _folder,
        provider,
        shard: _shard,
        operator: _operator,
    } = scene;
    provider.kill();
    let is_first = |text: &str| {
        let mut lines = text.lines();
        let title = lines.next().unwrap_or_default();
        let second = lines.next().unwrap_or_default();
        title.starts_with("bigfleet  PROVIDER LOST") && second.starts_with("PROVIDER LOST for ")
    };
    terminal.looks("a lost provider in the first lines", is_first);
    terminal.press("?");
    terminal.shows("any key goes back");
    terminal.looks("and above a page", is_first);
    terminal.press("x");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_can_be_shown_one_line_says_so() {
    let mut small = Terminal::start(&["top"], 59, 15, &[]);
    assert_eq!(small.ended(), 1);
    small.looks("what is wrong", |text| {
        let line = text.replace('\n', "");
        line.starts_with("the terminal is 59x15 and the live view needs 60x16: enlarge it")
    });
    let none = call(&["top"]).undone();
    assert_eq!(
        none,
        "the live view needs a terminal; without one, use `bigfleet get`\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn colours_are_for_terminals_that_want_them() {
    let scene = Scene::new("verbs-colours").await;
    let shard = format!("--shard={}", scene.shard.addr);
    let args = ["get", "clusters", shard.as_str()];
    let mut coloured = Terminal::start(&args, 120, 24, &[]);
    assert_eq!(coloured.ended(), 0);
    coloured.shows("live");
    assert!(coloured.raw().contains('\u{1b}'), "{:?}", coloured.raw());
    for no in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut plain = Terminal::start(&args, 120, 24, &[no]);
        assert_eq!(plain.ended(), 0);
        plain.shows("live");
        assert!(!plain.raw().contains('\u{1b}'), "{:?}", plain.raw());
    }
    assert!(!scene.call(&["get", "clusters"]).done().contains('\u{1b}'));
}
