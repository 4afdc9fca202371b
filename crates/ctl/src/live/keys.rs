//! Keys: what each of them does to the screen, and what it asks of the shard.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draw::LEAST_WIDTH;
use super::screen::{InputMode, Pane, Screen};
use crate::text::printable;

/// What a key asks for that the screen cannot do by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyRequest {
    /// To leave.
    Leave,
    /// To stop all changes to machines.
    Pause,
    /// To end that pause.
    Resume,
    /// To be told why a Need is served as it is.
    Explain {
        cluster: String,
        fingerprint: String,
        group: String,
    },
}

/// What every key does, as the help page shows it.
pub(super) const HELP: &[(&str, &str)] = &[
    (
        "j k ↑ ↓",
        "move; PgUp PgDn by ten, Home and End to the ends",
    ),
    ("Tab", "to the next list; Shift-Tab to the one before"),
    (
        "h l ← →",
        "scroll the wide column of the lists; … marks what is cut off",
    ),
    ("/", "filter all lists: Enter keeps it, Esc drops it"),
    (
        ":",
        "go to a list by name: :clusters :needs :decisions, or :help, :q",
    ),
    (
        "Enter e",
        "explain the selected Need; on a cluster, show its Needs",
    ),
    ("p", "pause: stop all changes to machines; asks first"),
    ("r", "resume: end that pause"),
    ("?", "this page"),
    ("q Ctrl-C", "leave; the shard goes on"),
];

const PAGE: isize = 10;
/// Columns by which the wide column is scrolled at once.
const SHIFT: usize = 20;

/// Takes a key.
pub(super) fn press(screen: &mut Screen, key: KeyEvent) -> Option<KeyRequest> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(KeyRequest::Leave);
    }
    screen.focus.said.clear();
    match &screen.focus.mode {
        InputMode::Browse => browse(screen, key.code),
        InputMode::Filter => {
            filter(screen, key.code);
            None
        }
        InputMode::Command(_) => command(screen, key.code),
        InputMode::ConfirmPause => {
            screen.focus.mode = InputMode::Browse;
            let sure = matches!(key.code, KeyCode::Char('y' | 'Y'));
            if !sure {
                screen.focus.said = "not paused".to_owned();
            }
            sure.then_some(KeyRequest::Pause)
        }
        InputMode::Help => {
            screen.focus.mode = InputMode::Browse;
            None
        }
        InputMode::Page(_) => {
            read(screen, key.code);
            None
        }
    }
}

fn browse(screen: &mut Screen, key: KeyCode) -> Option<KeyRequest> {
    match key {
        KeyCode::Char('q') => return Some(KeyRequest::Leave),
        KeyCode::Char('p') => screen.focus.mode = InputMode::ConfirmPause,
        KeyCode::Char('r') => return Some(KeyRequest::Resume),
        KeyCode::Char('?') => screen.focus.mode = InputMode::Help,
        KeyCode::Char('/') => screen.focus.mode = InputMode::Filter,
        KeyCode::Char(':') => screen.focus.mode = InputMode::Command(String::new()),
        KeyCode::Char('l') | KeyCode::Right => screen.focus.shift += SHIFT,
        KeyCode::Char('h') | KeyCode::Left => {
            screen.focus.shift = screen.focus.shift.saturating_sub(SHIFT);
        }
        KeyCode::Char('e') => return explain(screen),
        KeyCode::Enter => return enter(screen),
        KeyCode::Esc => {
            screen.focus.filter.clear();
            screen.settle();
        }
        KeyCode::Tab => screen.focus.pane = next(screen.focus.pane),
        KeyCode::BackTab => screen.focus.pane = next(next(screen.focus.pane)),
        _ => screen.step(distance(key)),
    }
    None
}

/// How far a key moves a cursor or a page; 0 if it does not.
fn distance(key: KeyCode) -> isize {
    match key {
        KeyCode::Char('j') | KeyCode::Down => 1,
        KeyCode::Char('k') | KeyCode::Up => -1,
        KeyCode::PageDown => PAGE,
        KeyCode::PageUp => -PAGE,
        KeyCode::End => isize::MAX,
        KeyCode::Home => isize::MIN,
        _ => 0,
    }
}

fn next(pane: Pane) -> Pane {
    match pane {
        Pane::Clusters => Pane::Needs,
        Pane::Needs => Pane::Decisions,
        Pane::Decisions => Pane::Clusters,
    }
}

fn enter(screen: &mut Screen) -> Option<KeyRequest> {
    if screen.focus.pane != Pane::Clusters {
        return explain(screen);
    }
    let id = screen.selected_cluster()?.id.clone();
    screen.focus.filter = id;
    screen.focus.pane = Pane::Needs;
    screen.settle();
    None
}

fn explain(screen: &mut Screen) -> Option<KeyRequest> {
    let Some(need) = screen.selected_need() else {
        screen.focus.said = "there is no Need to explain".to_owned();
        return None;
    };
    Some(KeyRequest::Explain {
        cluster: need.cluster.clone(),
        fingerprint: need.need_fingerprint.clone(),
        group: need.group.clone(),
    })
}

/// Types a command, or does it.
fn command(screen: &mut Screen, key: KeyCode) -> Option<KeyRequest> {
    let InputMode::Command(typed) = &mut screen.focus.mode else {
        return None;
    };
    match key {
        KeyCode::Char(c) => typed.push(c),
        KeyCode::Backspace => drop(typed.pop()),
        KeyCode::Enter => {
            let word = typed.trim().to_owned();
            screen.focus.mode = InputMode::Browse;
            match word.as_str() {
                "clusters" | "cluster" | "cl" => screen.focus.pane = Pane::Clusters,
                "needs" | "need" | "nd" => screen.focus.pane = Pane::Needs,
                "decisions" | "actions" | "action" | "ac" => screen.focus.pane = Pane::Decisions,
                "help" | "h" => screen.focus.mode = InputMode::Help,
                "q" | "quit" | "exit" => return Some(KeyRequest::Leave),
                "" => {}
                other => {
                    screen.focus.said = format!(
                        "there is no :{}; there is :clusters :needs :decisions :help :q",
                        printable(other)
                    );
                }
            }
        }
        KeyCode::Esc => screen.focus.mode = InputMode::Browse,
        _ => {}
    }
    None
}

fn filter(screen: &mut Screen, key: KeyCode) {
    match key {
        KeyCode::Enter => screen.focus.mode = InputMode::Browse,
        KeyCode::Esc => {
            screen.focus.filter.clear();
            screen.focus.mode = InputMode::Browse;
        }
        KeyCode::Backspace => drop(screen.focus.filter.pop()),
        KeyCode::Char(c) => screen.focus.filter.push(c),
        _ => {}
    }
    screen.settle();
}

fn read(screen: &mut Screen, key: KeyCode) {
    let InputMode::Page(page) = &mut screen.focus.mode else {
        return;
    };
    match (key, distance(key)) {
        (KeyCode::Char('q' | 'e') | KeyCode::Esc | KeyCode::Enter, _) => {
            screen.focus.mode = InputMode::Browse;
        }
        (_, by) => {
            // On the narrowest terminal, where the page has the most lines.
            let wrapped = |line: &String| 1 + line.chars().count() / usize::from(LEAST_WIDTH);
            let last = page
                .lines
                .iter()
                .map(wrapped)
                .sum::<usize>()
                .saturating_sub(1);
            page.scroll = page.scroll.saturating_add_signed(by).min(last);
        }
    }
}
