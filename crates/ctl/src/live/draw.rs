//! Draw: the screen onto a buffer of characters.
//!
//! ```text
//!  acting or not, which shard, which cycle
//!  what is wrong with the shard as a whole
//!  clusters
//!  machines
//!  needs            or a page over these four
//!  decisions
//!  what limits it, and what the caller says
//!  what can be pressed
//! ```
//!
//! Takes a value and a buffer: no clock, no terminal. The same value is always drawn the same.

use bigfleet_model::counted;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Widget, Wrap};

use super::keys::HELP;
use super::panes;
use super::screen::{Connection, InputMode, Screen, TextPage};
use super::troubles;
use crate::record::PauseRecord;
use crate::text::{Tint, printable};
use crate::when::{ago, ahead, rfc3339, span};

/// Below this nothing useful fits.
pub(super) const LEAST_WIDTH: u16 = 60;
const LEAST: (u16, u16) = (LEAST_WIDTH, 16);

/// What to say about a terminal in which nothing useful fits.
pub(super) fn too_small(area: Rect) -> Option<String> {
    let (width, height) = LEAST;
    let fits = width <= area.width && height <= area.height;
    (!fits).then(|| {
        format!(
            "the terminal is {}x{} and the live view needs {width}x{height}: enlarge it, or use \
             `bigfleet get`",
            area.width, area.height
        )
    })
}

/// Draws the screen.
pub(super) fn draw(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    if let Some(problem) = too_small(area) {
        Line::from(problem).render(area, buffer);
        return;
    }
    let notes = screen.notes.len().min(if area.height < 30 { 1 } else { 4 });
    let most = if area.height < 24 { 2 } else { 4 };
    let wrong = troubles::lines(&troubles::of(screen), area.width, most);
    let [title, troubled, body, limits, noted, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::try_from(wrong.len()).unwrap_or(0)),
        Constraint::Fill(1),
        Constraint::Length(limit_lines(screen)),
        Constraint::Length(u16::try_from(notes).unwrap_or(0)),
        Constraint::Length(1),
    ])
    .areas(area);
    fitted(self::title(screen), area.width).render(title, buffer);
    let bad = style(screen, Tint::Bad);
    let wrong = wrong.into_iter().map(|line| Line::styled(line, bad));
    Paragraph::new(wrong.collect::<Vec<_>>()).render(troubled, buffer);
    if let InputMode::Page(page) = &screen.focus.mode {
        draw_page(screen, page, body, buffer);
    } else if screen.focus.mode == InputMode::Help {
        draw_page(screen, &help(), body, buffer);
    } else {
        lists(screen, body, buffer);
    }
    let limited = self::limits(screen).into_iter();
    let limited: Vec<Line<'_>> = limited.map(|line| fitted(line, area.width)).collect();
    Paragraph::new(limited).render(limits, buffer);
    let shown = screen.notes.iter().skip(screen.notes.len() - notes);
    let note = |note: &String| Line::from(panes::cut(note, area.width));
    let lines: Vec<Line<'_>> = shown.map(note).collect();
    Paragraph::new(lines).render(noted, buffer);
    fitted(bottom(screen), area.width).render(keys, buffer);
}

/// A line that does not fit ends in a mark.
fn fitted(line: Line<'_>, width: u16) -> Line<'_> {
    if line.width() <= usize::from(width) {
        return line;
    }
    let mut left = width;
    let mut spans = Vec::new();
    for span in line.spans {
        let text = panes::cut(&span.content, left);
        left = left.saturating_sub(u16::try_from(span.width()).unwrap_or(u16::MAX));
        spans.push(Span::styled(text, span.style));
        if left == 0 {
            break;
        }
    }
    // What ends exactly at the edge had more to say all the same.
    if let Some(last) = spans.last_mut()
        && !last.content.ends_with('…')
    {
        let kept = last.content.chars().count().saturating_sub(1);
        last.content = (last.content.chars().take(kept).collect::<String>() + "…").into();
    }
    Line {
        spans,
        ..Line::default()
    }
    .style(line.style)
}

/// The four lists. Machines have as many lines as there are tiers, clusters no more than they need,
/// and the rest is for Needs and decisions.
fn lists(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let lines = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    let tiers = lines(3 + screen.overview.machines.tiers.len());
    let clusters = lines(2 + screen.clusters().len().max(1));
    let left = area.height.saturating_sub(tiers);
    let [clusters, machines, needs, decisions] = Layout::vertical([
        Constraint::Length(clusters.min(left / 3)),
        Constraint::Length(tiers),
        Constraint::Fill(1),
        Constraint::Fill(1),
    ])
    .areas(area);
    panes::clusters(screen, clusters, buffer);
    panes::machines(screen, machines, buffer);
    panes::needs(screen, needs, buffer);
    panes::decisions(screen, decisions, buffer);
}

/// The style of a tint, as far as there are colours.
pub(super) fn style(screen: &Screen, tint: Tint) -> Style {
    let plain = Style::default();
    match (tint, screen.colour) {
        (Tint::Plain, _) => plain,
        (Tint::Bad, false) => plain.add_modifier(Modifier::BOLD),
        (Tint::Good | Tint::Notable, false) => plain,
        (Tint::Good, true) => plain.fg(Color::Green),
        (Tint::Notable, true) => plain.fg(Color::Yellow),
        (Tint::Bad, true) => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
    }
}

/// Which shard, which cycle, and whether it answers and acts.
fn title(screen: &Screen) -> Line<'_> {
    let status = &screen.overview.status;
    let bold = Style::default().add_modifier(Modifier::BOLD);
    let (text, tint) = standing(screen);
    let mut spans = vec![
        Span::styled("bigfleet  ", bold),
        Span::styled(text, style(screen, tint)),
    ];
    if !status.shard.is_empty() {
        spans.push(Span::raw(format!("  {}", printable(&status.shard))));
    }
    spans.push(Span::raw(format!("  {}", printable(&screen.target))));
    if 0 < status.cycle {
        spans.push(Span::raw(format!("  cycle {}", status.cycle)));
    }
    if let Some(every) = status.cycle_every {
        spans.push(Span::raw(format!(", every {}", span(every))));
    }
    if let Some(took) = status.cycle_took {
        spans.push(Span::raw(format!(", {:.1} ms", took.as_secs_f64() * 1e3)));
    }
    Line::from(spans)
}

fn standing(screen: &Screen) -> (String, Tint) {
    let limits = &screen.overview.limits;
    if let Some(worst) = troubles::of(screen).first() {
        return (troubles::headline(worst), Tint::Bad);
    }
    match &screen.connection {
        Connection::Waiting => ("waiting for an answer".to_owned(), Tint::Notable),
        Connection::Lost { since: None, .. } => ("no answer yet".to_owned(), Tint::Bad),
        Connection::Lost {
            since: Some(since), ..
        } => {
            let clock = rfc3339(*since - since.rem_euclid(1_000_000_000));
            let clock = clock.split_once('T').map_or("", |(_, time)| time);
            let text = format!(
                "no answer since {clock} ({})",
                ago(screen.clock, Some(*since))
            );
            (text, Tint::Bad)
        }
        Connection::Live if limits.fenced => (
            "STOPPED: another process runs this shard (fenced)".to_owned(),
            Tint::Bad,
        ),
        Connection::Live if limits.dry_run => ("DRY RUN".to_owned(), Tint::Notable),
        Connection::Live if limits.pauses.iter().any(|pause| pause.scope == "all") => {
            ("PAUSED".to_owned(), Tint::Bad)
        }
        Connection::Live if !limits.pauses.is_empty() => {
            ("PAUSED IN PART".to_owned(), Tint::Notable)
        }
        Connection::Live => ("acting".to_owned(), Tint::Good),
    }
}

/// A line for each pause, each rail that holds something back, and each pool that is not bought for
/// now; at most four lines.
fn limits(screen: &Screen) -> Vec<Line<'_>> {
    let limits = &screen.overview.limits;
    let now = screen.now();
    let mut lines = Vec::new();
    let line = |text: String, tint| Line::styled(printable(&text), style(screen, tint));
    // What stops everything is said above, with since when.
    let is_said =
        |pause: &&PauseRecord| pause.scope == "all" && !screen.overview.status.troubles.is_empty();
    for pause in limits.pauses.iter().filter(|pause| !is_said(pause)) {
        let until = match pause.expires {
            None => "until lifted".to_owned(),
            expires => format!("for {} more", ahead(now, expires)),
        };
        let by = match pause.requested_by.as_str() {
            "" => pause.origin.to_lowercase(),
            who => who.to_owned(),
        };
        let text = format!("paused: {} {until}, by {by}: {}", pause.scope, pause.reason);
        lines.push(line(text, Tint::Bad));
    }
    for rail in limits.rails.iter().filter(|rail| rail.engaged) {
        let of = match rail.cluster.as_str() {
            "" => String::new(),
            cluster => format!(" of {cluster}"),
        };
        let text = format!("safety limit {}{of}: {}", rail.name, rail.detail);
        lines.push(line(text, Tint::Notable));
    }
    for pool in &limits.breakers {
        let text = format!(
            "not bought for now: {} in {}, after {}; tried again in {}",
            pool.instance_type,
            pool.zone,
            counted(pool.failures, "failure", "failures"),
            ahead(now, pool.retry)
        );
        lines.push(line(text, Tint::Notable));
    }
    const MOST: usize = 4;
    if MOST < lines.len() {
        let left = lines.len() - (MOST - 1);
        lines.truncate(MOST - 1);
        lines.push(line(format!("and {left} more limits"), Tint::Notable));
    }
    if lines.is_empty() && screen.connection != Connection::Waiting {
        let on = limits.rails.iter().filter(|rail| rail.enabled).count();
        lines.push(Line::from(format!(
            "safety limits (rails): {on} on, none holds anything back"
        )));
    }
    lines
}

fn limit_lines(screen: &Screen) -> u16 {
    u16::try_from(limits(screen).len().max(1)).unwrap_or(1)
}

/// Which keys there are, or what is being asked, or what came of the last request.
fn bottom(screen: &Screen) -> Line<'_> {
    let focus = &screen.focus;
    let asking = style(screen, Tint::Notable).add_modifier(Modifier::BOLD);
    match &focus.mode {
        InputMode::ConfirmPause => Line::styled(
            format!(
                "Stop all changes to machines for {}? y pauses, any other key does not",
                span(screen.pause_for)
            ),
            asking,
        ),
        InputMode::Filter => Line::styled(format!("/{}▏", printable(&focus.filter)), asking),
        InputMode::Command(typed) => Line::styled(format!(":{}▏", printable(typed)), asking),
        InputMode::Help => Line::from("any key goes back"),
        InputMode::Page(_) => Line::from("j k move   Esc goes back"),
        InputMode::Browse if !focus.said.is_empty() => Line::styled(focus.said.as_str(), asking),
        InputMode::Browse => match (&screen.connection, focus.filter.as_str()) {
            (Connection::Lost { why, .. }, _) => {
                Line::styled(why.as_str(), style(screen, Tint::Bad))
            }
            (_, "") => Line::from(
                "jk hl move  Tab : list  / filter  e explain  p pause  r resume  ? help  q leave",
            ),
            (_, filter) => Line::from(format!(
                "only what contains \"{}\"; Esc shows all  ? help  q leave",
                printable(filter)
            )),
        },
    }
}

fn help() -> TextPage {
    let mut lines: Vec<String> = HELP
        .iter()
        .map(|(keys, what)| format!("{keys:<10} {what}"))
        .collect();
    lines.extend([
        String::new(),
        "A Need is what a cluster asks for. SERVED is how much of it serves, of the".to_owned(),
        "scarcest resource. MACHINES of a cluster: serving, + coming, - leaving.".to_owned(),
        "SLOTS are machines that could be bought; they cost nothing, and $/H leaves".to_owned(),
        "them out. A pause from here ends by itself; `bigfleet get pauses` says when.".to_owned(),
    ]);
    TextPage {
        title: "Keys".to_owned(),
        lines,
        scroll: 0,
    }
}

fn draw_page(screen: &Screen, page: &TextPage, area: Rect, buffer: &mut Buffer) {
    Clear.render(area, buffer);
    let lines = page.lines.iter().map(|line| Line::from(line.as_str()));
    let text = Paragraph::new(lines.collect::<Vec<_>>()).wrap(Wrap { trim: false });
    let seen = page.scroll + usize::from(area.height.saturating_sub(1)); // the title is a line
    let title = match drawn_lines(&text, page, area.width).saturating_sub(seen) {
        0 => page.title.clone(),
        hidden => format!("{}, {hidden} more ↓", page.title),
    };
    let inner = panes::frame(screen, &title, true, area, buffer);
    let scroll = u16::try_from(page.scroll).unwrap_or(u16::MAX);
    text.scroll((scroll, 0)).render(inner, buffer);
}

/// How many lines a page has at this width: as many as it is drawn with, at most a thousand.
fn drawn_lines(text: &Paragraph<'_>, page: &TextPage, width: u16) -> usize {
    const MOST: usize = 1000;
    // Words that do not fit go to the next line, so that a line is at least half full.
    let room = |line: &String| 1 + 2 * line.chars().count() / usize::from(width.max(1));
    let room = page.lines.iter().map(room).sum::<usize>().min(MOST);
    let area = Rect::new(0, 0, width, u16::try_from(room).unwrap_or(0));
    let mut drawn = Buffer::empty(area);
    text.render(area, &mut drawn);
    let is_blank = |row: &u16| (0..width).all(|column| drawn[(column, *row)].symbol() == " ");
    let blank = (0..area.height).rev().take_while(is_blank).count();
    room - blank
}
