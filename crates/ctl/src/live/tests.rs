//! The live view as text, at the sizes people have, and what keys do to it.

use bigfleet_model::quantity::{format_milli, parse_demand};
use std::collections::BTreeMap;
use std::time::Duration;

use bigfleet_wire::v1alpha1::InspectHeader;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::backend::TestBackend;

use super::draw::draw;
use super::keys::{KeyRequest, press};
use super::overview::{Demand, Limits, MachineCounts};
use super::poll::PollUpdate;
use super::screen::{InputMode, Pane, Screen};
use crate::error::CtlError;
use crate::record::{
    ActionRecord, BreakerRecord, ClusterRecord, MachineRecord, NeedRecord, PauseRecord, RailRecord,
    need_name,
};

const SECOND: i64 = 1_000_000_000;
const NOW: i64 = 1_735_689_600 * SECOND;

fn amounts(text: &str) -> BTreeMap<String, String> {
    let pairs = text
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    pairs
        .map(|(name, amount)| (name.to_owned(), amount.to_owned()))
        .collect()
}

/// What is wanted without what is missing.
fn serving(wants: &str, missing: &str) -> BTreeMap<String, String> {
    let milli = |text: &String| parse_demand(text).unwrap();
    let (mut serving, missing) = (amounts(wants), amounts(missing));
    for (name, amount) in &mut serving {
        *amount = format_milli(milli(amount) - missing.get(name).map_or(0, milli));
    }
    serving.retain(|_, amount| milli(amount) != 0);
    serving
}

fn cluster(id: &str, configured: u32, unmet: u32) -> ClusterRecord {
    ClusterRecord {
        id: id.to_owned(),
        session_ended: Some(NOW),
        ready: true,
        acquire: true,
        needs: 2,
        needs_unmet: unmet,
        machines: BTreeMap::from([
            ("Configured".to_owned(), configured),
            ("Draining".to_owned(), 1),
        ]),
        ..ClusterRecord::default()
    }
}

fn need(cluster: &str, priority: i32, wants: &str, missing: &str) -> NeedRecord {
    let fingerprint = format!("p={priority}|ipb=0|rpb=0|reqs=|spr=");
    NeedRecord {
        cluster: cluster.to_owned(),
        need: need_name(&fingerprint, ""),
        need_fingerprint: fingerprint,
        priority,
        aggregate_resources: amounts(wants),
        serving: serving(wants, missing),
        missing: amounts(missing),
        claimed: 3,
        why: match missing {
            "" => String::new(),
            missing => format!(
                "missing {missing} for 3 min: 0 idle, 7 configured and 0 speculative machines fit, but serve Needs this one does not outrank"
            ),
        },
        ..NeedRecord::default()
    }
}

fn machines() -> MachineCounts {
    let mut tally = MachineCounts::default();
    let some = [
        ("BareMetal", "Configured", 0.0, 12),
        ("OnDemand", "Configured", 0.192, 40),
        ("OnDemand", "Speculative", 0.192, 1000),
        ("OnDemand", "Creating", 0.192, 3),
        ("Spot", "Draining", 0.05, 2),
        ("Spot", "Failed", 0.05, 1),
    ];
    for (tier, state, price, count) in some {
        for _ in 0..count {
            tally.add(&MachineRecord {
                capacity_type: tier.to_owned(),
                state: state.to_owned(),
                price_per_hour: price,
                not_ready: state == "Draining",
                ..MachineRecord::default()
            });
        }
    }
    tally
}

fn action(ago: i64, kind: &str, machine: &str, outcome: &str, detail: &str) -> ActionRecord {
    ActionRecord {
        time: Some(NOW - ago * SECOND),
        kind: Some(kind.to_owned()),
        machine: machine.to_owned(),
        cluster: "prod-eu".to_owned(),
        outcome: outcome.to_owned(),
        detail: detail.to_owned(),
        ..ActionRecord::default()
    }
}

fn guard() -> RailRecord {
    RailRecord {
        name: "rollup-guard".to_owned(),
        cluster: String::new(),
        enabled: true,
        engaged: false,
        setting: String::new(),
        detail: String::new(),
        withheld_total: 0,
    }
}

/// A shard in the middle of its work.
fn header(cycle: i64, computed_at_unix_nanos: i64) -> InspectHeader {
    InspectHeader {
        cycle,
        computed_at_unix_nanos,
        shard_id: "shard-0".to_owned(),
        cycle_took_nanos: 3_210_000,
        ..InspectHeader::default()
    }
}

fn busy() -> Screen {
    let mut screen = Screen::new("127.0.0.1:7780", false, Duration::from_secs(1800));
    screen.clock = NOW;
    let mut demand = Demand::default();
    demand.add(need("prod-eu", 1000, "cpu=48 memory=192Gi", ""));
    demand.add(need("prod-eu", 100, "cpu=16", "cpu=4"));
    demand.add(need("batch\u{1b}[2J", 10, "cpu=8", ""));
    demand.trim();
    for update in [
        PollUpdate::CycleStatus(header(41, NOW - 10 * SECOND)),
        PollUpdate::CycleStatus(header(42, NOW)),
        PollUpdate::Clusters(vec![
            cluster("batch\u{1b}[2J", 2, 0),
            cluster("prod-eu", 12, 1),
        ]),
        PollUpdate::Demand(demand),
        PollUpdate::Machines(machines()),
        PollUpdate::Actions(vec![
            action(
                1,
                "Provision",
                "m-17",
                "committed",
                "to cover prod-eu at priority 100",
            ),
            action(
                75,
                "Preempt",
                "m-3",
                "success",
                "for a Need that outranks it",
            ),
            action(90, "Delete", "m-9", "suppressed", "actuation is paused"),
        ]),
        PollUpdate::Limits(Limits {
            rails: vec![guard()],
            ..Limits::default()
        }),
    ] {
        screen.take(update);
    }
    screen
}

fn picture(screen: &Screen, width: u16, height: u16) -> String {
    let mut terminal = ratatui::Terminal::new(TestBackend::new(width, height)).unwrap();
    let drawn = terminal.draw(|frame| draw(screen, frame.area(), frame.buffer_mut()));
    drawn.unwrap();
    terminal.backend().to_string()
}

fn typed(screen: &mut Screen, key: KeyCode) -> Option<KeyRequest> {
    press(screen, KeyEvent::new(key, KeyModifiers::NONE))
}

#[test]
fn a_busy_shard_on_a_small_screen() {
    insta::assert_snapshot!(picture(&busy(), 80, 24));
}

#[test]
fn a_busy_shard_on_a_large_screen() {
    insta::assert_snapshot!(picture(&busy(), 120, 40));
}

#[test]
fn before_the_first_answer() {
    let screen = Screen::new("127.0.0.1:7780", false, Duration::from_secs(1800));
    insta::assert_snapshot!(picture(&screen, 80, 24));
}

#[test]
fn a_lost_shard_leaves_its_last_picture() {
    let mut screen = busy();
    screen.take(PollUpdate::Lost(CtlError::NotListening {
        target: "127.0.0.1:7780".to_owned(),
    }));
    screen.clock = NOW + 65 * SECOND;
    let shown = picture(&screen, 80, 24);
    assert!(
        shown.contains("no answer since 00:00:00Z (1m5s)"),
        "{shown}"
    );
    assert!(shown.contains("prod-eu"), "{shown}");
    screen.take(PollUpdate::Clusters(vec![cluster("prod-eu", 1, 0)]));
    assert!(!picture(&screen, 80, 24).contains("no answer"));
}

#[test]
fn what_limits_the_shard_is_said() {
    let mut screen = busy();
    screen.take(PollUpdate::Limits(Limits {
        rails: vec![RailRecord {
            name: "reclaim-cap".to_owned(),
            engaged: true,
            detail: "7 reclaims of the last cycle wait for the next".to_owned(),
            ..guard()
        }],
        pauses: vec![PauseRecord {
            id: "admin:all".to_owned(),
            scope: "all".to_owned(),
            origin: "Admin".to_owned(),
            requested_by: "spiffe".to_owned(),
            reason: "looking \u{1b}[31mround".to_owned(),
            started: Some(NOW),
            expires: Some(NOW + 1800 * SECOND),
            withheld_total: 0,
        }],
        breakers: vec![BreakerRecord {
            provider: "p".to_owned(),
            instance_type: "m5".to_owned(),
            zone: "a".to_owned(),
            failures: 3,
            retry: Some(NOW + 20 * SECOND),
            last_error: String::new(),
        }],
        dry_run: false,
        fenced: false,
    }));
    screen.note("t+12s batch-eu asks for 40 more");
    insta::assert_snapshot!(picture(&screen, 100, 30));
}

#[test]
fn what_is_wrong_with_the_whole_shard_is_drawn_first_on_every_page() {
    let mut screen = busy();
    let lost = "PROVIDER LOST for 25 s: cloud:9000 cannot be reached: connection refused by the host that was asked";
    screen.take(PollUpdate::CycleStatus(InspectHeader {
        troubles: vec![lost.to_owned(), "DRY RUN: decisions are shown".to_owned()],
        ..header(43, NOW)
    }));
    let shown = picture(&screen, 80, 24);
    let lines: Vec<&str> = shown
        .lines()
        .map(|line| line.trim_matches(['"', ' ']))
        .collect();
    assert!(
        lines[0].starts_with("bigfleet  PROVIDER LOST  shard-0"),
        "{shown}"
    );
    assert_eq!(
        lines[1..4],
        [
            "PROVIDER LOST for 25 s: cloud:9000 cannot be reached: connection refused by the",
            "host that was asked",
            "DRY RUN: decisions are shown",
        ],
        "{shown}"
    );
    assert!(!shown.contains("acting"), "{shown}");
    typed(&mut screen, KeyCode::Char('?'));
    assert!(
        picture(&screen, 80, 24).contains(&lost[..70]),
        "above a page, too"
    );
    screen.take(PollUpdate::CycleStatus(InspectHeader {
        not_ready: "no complete List yet".to_owned(),
        ..header(44, NOW)
    }));
    let shown = picture(&screen, 80, 24);
    assert!(shown.contains("NOT READY: no complete List yet"), "{shown}");
    screen.take(PollUpdate::CycleStatus(header(45, NOW)));
    assert!(picture(&screen, 80, 24).contains("bigfleet  acting"));
}

#[test]
fn a_terminal_that_is_too_small_says_so_in_one_line() {
    let shown = picture(&busy(), 59, 24);
    let lines: Vec<&str> = shown
        .lines()
        .filter(|line| !line.trim_matches(['"', ' ']).is_empty())
        .collect();
    assert_eq!(lines.len(), 1, "{shown}");
    assert!(
        lines[0].contains("the terminal is 59x24 and the live view needs 60x16"),
        "{shown}"
    );
    assert!(!picture(&busy(), 60, 16).contains("the terminal is"));
}

#[test]
fn no_size_of_a_terminal_breaks_the_picture() {
    let mut screen = busy();
    screen.focus.mode = InputMode::Help;
    for (width, height) in [(1, 1), (60, 16), (61, 17), (109, 16), (110, 16), (500, 200)] {
        picture(&screen, width, height);
        picture(&busy(), width, height);
    }
}

#[test]
fn nothing_from_the_wire_reaches_the_terminal_raw() {
    for (width, height) in [(80, 24), (120, 40)] {
        let shown = picture(&busy(), width, height);
        let raw = shown.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(raw, None, "{shown:?}");
    }
}

#[test]
fn keys_move_and_never_leave_the_list() {
    let mut screen = busy();
    assert_eq!(screen.focus.pane, Pane::Needs);
    assert_eq!(
        screen.selected_need().unwrap().priority,
        100,
        "short ones come first"
    );
    typed(&mut screen, KeyCode::Char('j'));
    assert_eq!(screen.selected_need().unwrap().priority, 1000);
    for key in [KeyCode::PageDown, KeyCode::End, KeyCode::Down] {
        typed(&mut screen, key);
        assert_eq!(screen.selected_need().unwrap().priority, 10);
    }
    typed(&mut screen, KeyCode::Home);
    typed(&mut screen, KeyCode::Up);
    assert_eq!(screen.selected_need().unwrap().priority, 100);
    typed(&mut screen, KeyCode::Tab);
    assert_eq!(screen.focus.pane, Pane::Decisions);
    typed(&mut screen, KeyCode::BackTab);
    assert_eq!(screen.focus.pane, Pane::Needs);
    typed(&mut screen, KeyCode::End);
    screen.take(PollUpdate::Demand(Demand::default()));
    assert!(
        screen.selected_need().is_none(),
        "a list may become shorter than the cursor"
    );
}

#[test]
fn a_filter_narrows_every_list() {
    let mut screen = busy();
    typed(&mut screen, KeyCode::Char('/'));
    for c in "PROD".chars() {
        typed(&mut screen, KeyCode::Char(c));
    }
    typed(&mut screen, KeyCode::Enter);
    assert_eq!((screen.clusters().len(), screen.needs().len()), (1, 2));
    assert!(picture(&screen, 80, 24).contains("only what contains \"PROD\""));
    typed(&mut screen, KeyCode::Esc);
    assert_eq!(screen.clusters().len(), 2);
    screen.focus.pane = Pane::Clusters;
    typed(&mut screen, KeyCode::End);
    typed(&mut screen, KeyCode::Enter);
    assert_eq!((screen.focus.pane, screen.needs().len()), (Pane::Needs, 2));
}

fn words(screen: &mut Screen, keys: &str) -> Option<KeyRequest> {
    for c in keys.chars() {
        typed(screen, KeyCode::Char(c));
    }
    typed(screen, KeyCode::Enter)
}

#[test]
fn a_filter_without_a_match_says_so() {
    let mut screen = busy();
    words(&mut screen, "/nowhere");
    let shown = picture(&screen, 80, 24);
    let said = "nothing contains \"nowhere\"; Esc shows all";
    assert_eq!(shown.matches(said).count(), 3, "{shown}");
}

#[test]
fn a_colon_goes_to_a_list_by_name_or_says_which_there_are() {
    let mut screen = busy();
    for (command, pane) in [
        (":clusters", Pane::Clusters),
        (":ac", Pane::Decisions),
        (":needs", Pane::Needs),
    ] {
        assert_eq!(words(&mut screen, command), None);
        assert_eq!(screen.focus.pane, pane, "{command}");
    }
    typed(&mut screen, KeyCode::Char(':'));
    typed(&mut screen, KeyCode::Char('x'));
    assert!(picture(&screen, 80, 24).contains(":x▏"));
    typed(&mut screen, KeyCode::Enter);
    assert!(picture(&screen, 80, 24).contains("there is no :x; there is :clusters"));
    assert_eq!(words(&mut screen, ":q"), Some(KeyRequest::Leave));
}

#[test]
fn an_operation_has_one_line_with_what_came_of_it_last() {
    let mut screen = busy();
    let action = |operation: &str, outcome: &str| ActionRecord {
        operation: operation.to_owned(),
        outcome: outcome.to_owned(),
        ..ActionRecord::default()
    };
    screen.take(PollUpdate::Actions(vec![
        action("2", "success"),
        action("1", "provider_error"),
        action("2", "committed"),
        action("", "suppressed"),
        action("1", "committed"),
        action("", "suppressed"),
    ]));
    let shown: Vec<&str> = screen
        .decisions()
        .iter()
        .map(|one| one.outcome.as_str())
        .collect();
    assert_eq!(
        shown,
        ["success", "provider_error", "suppressed", "suppressed"]
    );
}

#[test]
fn what_does_not_fit_is_marked_and_can_be_scrolled() {
    let mut screen = busy();
    let far = "x".repeat(200) + "the end";
    let action = |number: usize| ActionRecord {
        operation: number.to_string(),
        detail: far.clone(),
        ..ActionRecord::default()
    };
    screen.take(PollUpdate::Actions((0..40).map(action).collect()));
    let shown = picture(&screen, 80, 24);
    assert!(shown.contains("more ↓"), "{shown}");
    assert!(shown.contains("xxx…"), "{shown}");
    assert!(!shown.contains("the end"), "{shown}");
    for _ in 0..9 {
        typed(&mut screen, KeyCode::Char('l'));
    }
    let scrolled = picture(&screen, 80, 24);
    assert!(scrolled.contains("…xxx"), "{scrolled}");
    assert!(scrolled.contains("the end"), "{scrolled}");
    let page = vec!["y".repeat(300) + "its end"];
    screen.take(PollUpdate::Page("Why".to_owned(), page));
    assert!(picture(&screen, 80, 24).contains("its end"), "pages wrap");
}

#[test]
fn a_pause_is_asked_for_only_when_it_is_confirmed() {
    let mut screen = busy();
    assert_eq!(typed(&mut screen, KeyCode::Char('p')), None);
    assert!(picture(&screen, 80, 24).contains("Stop all changes to machines for 30m? y pauses"));
    assert_eq!(typed(&mut screen, KeyCode::Char('n')), None);
    assert!(picture(&screen, 80, 24).contains("not paused"));
    typed(&mut screen, KeyCode::Char('p'));
    assert_eq!(
        typed(&mut screen, KeyCode::Char('y')),
        Some(KeyRequest::Pause)
    );
    assert_eq!(
        typed(&mut screen, KeyCode::Char('r')),
        Some(KeyRequest::Resume)
    );
    screen.take(PollUpdate::Said("paused all for 30m".to_owned()));
    assert!(picture(&screen, 80, 24).contains("paused all for 30m"));
}

#[test]
fn an_explanation_lies_over_the_lists_until_it_is_read() {
    let mut screen = busy();
    let asked = typed(&mut screen, KeyCode::Char('e'));
    let Some(KeyRequest::Explain {
        cluster,
        fingerprint,
        ..
    }) = asked
    else {
        panic!("{asked:?}");
    };
    assert_eq!(
        (cluster.as_str(), fingerprint.as_str()),
        ("prod-eu", "p=100|ipb=0|rpb=0|reqs=|spr=")
    );
    let lines = (0..100).map(|at| format!("line {at} \u{1b}[2J"));
    screen.take(PollUpdate::Page("Why".to_owned(), lines.collect()));
    let shown = picture(&screen, 80, 24);
    assert!(
        shown.contains("line 0 \\u{1b}") && !shown.contains("Clusters"),
        "{shown}"
    );
    assert!(shown.contains("Why, 80 more ↓"), "{shown}");
    typed(&mut screen, KeyCode::PageDown);
    assert!(!picture(&screen, 80, 24).contains("line 0 "));
    typed(&mut screen, KeyCode::Esc);
    assert!(picture(&screen, 80, 24).contains("Clusters"));
}

#[test]
fn every_way_out_is_a_key() {
    let mut screen = busy();
    assert_eq!(
        typed(&mut screen, KeyCode::Char('q')),
        Some(KeyRequest::Leave)
    );
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for mode in [
        InputMode::Browse,
        InputMode::Filter,
        InputMode::ConfirmPause,
        InputMode::Help,
    ] {
        screen.focus.mode = mode;
        assert_eq!(press(&mut screen, interrupt), Some(KeyRequest::Leave));
    }
    screen.focus.mode = InputMode::Browse;
    typed(&mut screen, KeyCode::Char('?'));
    insta::assert_snapshot!(picture(&screen, 80, 24));
}
