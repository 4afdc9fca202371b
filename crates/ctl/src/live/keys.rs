//! Keys: what each of them does to the screen, and what it asks of the shard.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::screen::{Mode, Pane, Screen};

/// What a key asks for that the screen cannot do by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// To leave.
    Leave,
    /// To pause all actuation.
    Pause,
    /// To lift that pause.
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
    ("/", "filter all lists: Enter keeps it, Esc drops it"),
    (
        "Enter e",
        "explain the selected Need; on a cluster, show its Needs",
    ),
    ("p", "pause all actuation; asks first"),
    ("r", "lift that pause"),
    ("?", "this page"),
    ("q Ctrl-C", "leave; the shard goes on"),
];

const PAGE: isize = 10;

/// Takes a key.
pub(super) fn press(screen: &mut Screen, key: KeyEvent) -> Option<Ask> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Ask::Leave);
    }
    screen.hand.said.clear();
    match &screen.hand.mode {
        Mode::Browse => browse(screen, key.code),
        Mode::Filter => {
            filter(screen, key.code);
            None
        }
        Mode::ConfirmPause => {
            screen.hand.mode = Mode::Browse;
            let sure = matches!(key.code, KeyCode::Char('y' | 'Y'));
            if !sure {
                screen.hand.said = "not paused".to_owned();
            }
            sure.then_some(Ask::Pause)
        }
        Mode::Help => {
            screen.hand.mode = Mode::Browse;
            None
        }
        Mode::Page(_) => {
            read(screen, key.code);
            None
        }
    }
}

fn browse(screen: &mut Screen, key: KeyCode) -> Option<Ask> {
    match key {
        KeyCode::Char('q') => return Some(Ask::Leave),
        KeyCode::Char('p') => screen.hand.mode = Mode::ConfirmPause,
        KeyCode::Char('r') => return Some(Ask::Resume),
        KeyCode::Char('?') => screen.hand.mode = Mode::Help,
        KeyCode::Char('/') => screen.hand.mode = Mode::Filter,
        KeyCode::Char('e') => return explain(screen),
        KeyCode::Enter => return enter(screen),
        KeyCode::Esc => {
            screen.hand.filter.clear();
            screen.settle();
        }
        KeyCode::Tab => screen.hand.pane = next(screen.hand.pane),
        KeyCode::BackTab => screen.hand.pane = next(next(screen.hand.pane)),
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

fn enter(screen: &mut Screen) -> Option<Ask> {
    if screen.hand.pane != Pane::Clusters {
        return explain(screen);
    }
    let id = screen.selected_cluster()?.id.clone();
    screen.hand.filter = id;
    screen.hand.pane = Pane::Needs;
    screen.settle();
    None
}

fn explain(screen: &mut Screen) -> Option<Ask> {
    let Some(need) = screen.selected_need() else {
        screen.hand.said = "there is no Need to explain".to_owned();
        return None;
    };
    Some(Ask::Explain {
        cluster: need.cluster.clone(),
        fingerprint: need.need_fingerprint.clone(),
        group: need.group.clone(),
    })
}

fn filter(screen: &mut Screen, key: KeyCode) {
    match key {
        KeyCode::Enter => screen.hand.mode = Mode::Browse,
        KeyCode::Esc => {
            screen.hand.filter.clear();
            screen.hand.mode = Mode::Browse;
        }
        KeyCode::Backspace => drop(screen.hand.filter.pop()),
        KeyCode::Char(c) => screen.hand.filter.push(c),
        _ => {}
    }
    screen.settle();
}

fn read(screen: &mut Screen, key: KeyCode) {
    let Mode::Page(page) = &mut screen.hand.mode else {
        return;
    };
    match (key, distance(key)) {
        (KeyCode::Char('q' | 'e') | KeyCode::Esc | KeyCode::Enter, _) => {
            screen.hand.mode = Mode::Browse;
        }
        (_, by) => {
            let last = page.lines.len().saturating_sub(1);
            page.scroll = page.scroll.saturating_add_signed(by).min(last);
        }
    }
}
