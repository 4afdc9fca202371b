//! The tour: `docs/tour.md` is true, command by command, and the scenario shows everything there is.

use crate::process::{Home, Running, count, root, says};
use serde_json::Value;
use std::process::Command;

/// A command of the page, and what the page says it prints.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) command: String,
    prints: Option<String>,
}

/// The commands of a section, in order. A block of output belongs to the last command before it.
fn typed(section: &str) -> Vec<Typed> {
    typed_in("docs/tour.md", section)
}

/// The same of another page.
pub(crate) fn typed_in(page: &str, section: &str) -> Vec<Typed> {
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let text = page.split("\n## ").find(|text| text.starts_with(section));
    let text = text.unwrap_or_else(|| panic!("the page has no section \"{section}\""));
    let mut all: Vec<Typed> = Vec::new();
    for block in text.split("```").skip(1).step_by(2) {
        let (kind, lines) = block.split_once('\n').unwrap();
        match kind {
            "sh" => all.extend(lines.lines().map(|line| Typed {
                command: line.to_owned(),
                prints: None,
            })),
            "text" => all.last_mut().unwrap().prints = Some(lines.to_owned()),
            other => panic!("the page has a block of \"{other}\""),
        }
    }
    all
}

/// Output with a name in the place of everything that varies, and columns one space apart.
fn normal(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut cycle = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Numbers of cycles look like any other number; the head of their column tells.
        if let Some(at) = words.iter().position(|word| *word == "CYCLE") {
            cycle = Some(at);
        }
        let head = words.contains(&"CYCLE");
        let named = words.iter().enumerate().map(|(at, word)| {
            if cycle == Some(at) && !head && word.parse::<u64>().is_ok() {
                "<cycle>".to_owned()
            } else {
                name(word)
            }
        });
        lines.push(named.collect::<Vec<_>>().join(" "));
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// The name of what varies, or the word itself.
fn name(word: &str) -> String {
    if let Some(inside) = word.strip_prefix('(') {
        return format!("({}", name(inside));
    }
    let bare = word.trim_end_matches([',', ';']);
    let rest = &word[bare.len()..];
    let digest = bare.len() == 32 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    let moment = bare.len() > 19 && bare.ends_with('Z') && bare.as_bytes()[10] == b'T';
    let named = match bare {
        _ if bare.strip_prefix("127.0.0.1:").is_some() => "<port>",
        _ if digest => "<digest>",
        _ if moment => "<time>",
        _ if is_age(bare) => "<age>",
        _ => return host(word),
    };
    format!("{named}{rest}")
}

/// `host-0006-…`: the cloud counts the hosts it makes.
fn host(word: &str) -> String {
    let numbered = word
        .strip_prefix("host-")
        .and_then(|rest| rest.split_once('-'));
    match numbered {
        Some((number, slot)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("host-<number>-{slot}")
        }
        _ => word.to_owned(),
    }
}

/// `0s`, `13m26s`, `2h5m`; with a sign or a t in front for moments of a story.
fn is_age(word: &str) -> bool {
    let word = word.strip_prefix("t+").unwrap_or(word);
    let word = word.replace("ms", "s"); // fresher than a second
    let mut digits = false;
    let parts = word.chars().all(|letter| match letter {
        '0'..='9' | '.' => {
            digits = true;
            true
        }
        'd' | 'h' | 'm' | 's' => std::mem::take(&mut digits),
        _ => false,
    });
    parts && !digits && !word.is_empty()
}

/// Runs a command of the page as a shell would, with this binary in the path.
#[track_caller]
pub(crate) fn run(home: &Home, typed: &Typed) {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_bigfleet"));
    let mut path = binary.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    home.settle(&mut shell);
    shell.args(["-c", &typed.command]).env("PATH", path);
    let output = shell.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let trouble = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {trouble}", typed.command);
    // What is long, or never the same twice, the page leaves out.
    let Some(expected) = typed.prints.as_deref() else {
        return;
    };
    assert_eq!(
        normal(&text),
        normal(expected),
        "docs/tour.md: `{}` prints\n{text}{trouble}",
        typed.command
    );
}

#[test]
fn every_command_of_the_page_prints_what_the_page_says() {
    let home = Home::new("page");
    let mut asked = typed("2. Ask it");
    let first = asked.remove(0);
    let flags = first.command.strip_prefix("bigfleet up ").unwrap();
    let mut running = home.up(&flags.split(' ').collect::<Vec<_>>());
    served(&mut running);
    for section in ["3. Stop it", "4. Take it home", "5. Let others in"] {
        asked.extend(typed(section));
    }
    for typed in asked {
        run(&home, &typed);
    }
    let (code, _) = running.end("-INT");
    assert_eq!(code, Some(0));
    home.is_empty();
}

/// Waits until everybody has what the page shows.
pub(crate) fn served(running: &mut Running) {
    running.until("20 machines serve and reports are in", |line| {
        count(line, "machines", "Configured") == 20 && count(line, "decided", "Bootstrap") == 0
    });
    // The node of the last one is reported with the next roll-up.
    let then = running.seen.last().unwrap()["fleet_seconds"]
        .as_f64()
        .unwrap();
    running.until("another minute", |line| {
        then + 60.0 < line["fleet_seconds"].as_f64().unwrap_or(0.0)
    });
}

#[test]
fn the_tour_shows_every_action_and_every_state_and_leaves_nothing() {
    let home = Home::new("tour");
    let mut running = home.up(&["--seed", "1", "--speed", "120"]);
    running.step("train-eu asks for no training Pods");
    let seen = running.seen.clone();
    let (code, last) = running.end("-TERM");
    home.is_empty();

    assert_eq!(code, Some(0));
    for (of, least) in [("actions", 6), ("states", 8)] {
        let counts = last[of].as_object().unwrap();
        assert_eq!(counts.len(), least, "{last}");
        assert!(
            counts.values().all(|count| 0 < count.as_u64().unwrap()),
            "{last}"
        );
    }
    assert_eq!(last["left_running"], serde_json::json!([]));
    is_told_as_on_the_page(&seen);
    is_fair(&seen);
}

/// The steps are those of the page, at its moments or a little later. It shows the usual speed, at which a second
/// is a minute of the fleet.
fn is_told_as_on_the_page(seen: &[Value]) {
    let page = typed("1. Watch").remove(0).prints.unwrap();
    let mut told = seen.iter().filter(|line| says(line).is_some());
    for line in page.lines() {
        let (moment, text) = line.split_once(' ').unwrap();
        let minute: f64 = moment[2..].trim_end_matches('s').parse().unwrap();
        let step = told.next().unwrap_or_else(|| panic!("never told: {line}"));
        // Which machines the cloud takes depends on which still serve when it does.
        let plain = |text: &str| text.trim_start().split(" (").next().map(str::to_owned);
        assert_eq!(says(step).and_then(plain), plain(text));
        let late = step["fleet_seconds"].as_f64().unwrap() / 60.0 - minute;
        assert!((0.0..5.0).contains(&late), "{step}: {line}");
    }
    assert_eq!(told.next(), None);
}

/// Nobody is preempted before somebody outranks, and a silent cluster loses nothing.
fn is_fair(seen: &[Value]) {
    let at = |text: &str| {
        let said = |line: &Value| says(line).is_some_and(|said| said.contains(text));
        let found = seen.iter().position(said);
        found.unwrap_or_else(|| panic!("nothing said \"{text}\""))
    };
    let decided = |from: &str, to: &str, kind: &str| -> u64 {
        let lines = &seen[at(from)..at(to)];
        lines.iter().map(|line| count(line, "decided", kind)).sum()
    };
    assert_eq!(decided("web-eu asks", "pay-eu asks for 12", "Preempt"), 0);
    assert!(0 < decided("pay-eu asks for 12", "pay-eu asks for no", "Preempt"));
    assert!(0 < decided("spot machines back", "edge-eu goes silent", "Provision"));
    let (silent, back) = ("edge-eu goes silent", "edge-eu is back");
    // What is reclaimed meanwhile is the dip's, and all of it is taken back.
    assert_eq!(
        decided(silent, back, "Reclaim"),
        decided(silent, back, "Restore")
    );
    let lines = &seen[at(silent)..at(back)];
    assert!(
        lines.iter().any(|line| line["sessions"] == 4),
        "it never went silent"
    );
}

#[test]
fn what_varies_is_named_and_nothing_else() {
    let lines = normal(
        " AGO    CYCLE  ACTION\n 8m29s     91  Bootstrap\n 7s 91 4 machines\n\
         paused for 29m59s, until 2026-11-16T05:34:49.594Z; host-0006-m1 on 127.0.0.1:46601\n\
         digest fe0e2ac460f6125d90c98b7db2c6f3f9 of m6i.2xlarge, cpu=4 t+12s",
    );
    assert_eq!(
        lines,
        [
            "AGO CYCLE ACTION",
            "<age> <cycle> Bootstrap",
            "<age> <cycle> 4 machines",
            "paused for <age>, until <time>; host-<number>-m1 on <port>",
            "digest <digest> of m6i.2xlarge, cpu=4 <age>",
        ]
    );
}
