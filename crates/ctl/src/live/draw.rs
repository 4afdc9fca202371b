//! Draw: a picture of the screen, and nothing else.
//!
//! ```text
//!  acting or paused, which shard, which cycle
//!  clusters
//!  machines
//!  needs            or a page over these four
//!  decisions
//!  what limits it, and what the caller says
//!  what can be pressed
//! ```
//!
//! Takes a value and a buffer: no clock, no terminal. The same screen is always the same picture.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Widget};

use super::keys::HELP;
use super::panes;
use super::screen::{Link, Mode, Page, Screen};
use crate::text::{Tint, printable};
use crate::when::{ago, ahead, rfc3339, span};

/// Below this nothing useful fits.
const LEAST: (u16, u16) = (60, 16);

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
    let [title, body, limits, noted, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(limit_lines(screen)),
        Constraint::Length(u16::try_from(notes).unwrap_or(0)),
        Constraint::Length(1),
    ])
    .areas(area);
    self::title(screen).render(title, buffer);
    if let Mode::Page(page) = &screen.hand.mode {
        draw_page(screen, page, body, buffer);
    } else if screen.hand.mode == Mode::Help {
        draw_page(screen, &help(), body, buffer);
    } else {
        lists(screen, body, buffer);
    }
    Paragraph::new(self::limits(screen)).render(limits, buffer);
    let shown = screen.notes.iter().skip(screen.notes.len() - notes);
    let lines: Vec<Line<'_>> = shown.map(|note| Line::from(note.as_str())).collect();
    Paragraph::new(lines).render(noted, buffer);
    bottom(screen).render(keys, buffer);
}

/// The four lists. Machines have as many lines as there are tiers, clusters no more than they need,
/// and the rest is for Needs and decisions.
fn lists(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let lines = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    let tiers = lines(3 + screen.picture.machines.tiers.len());
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

/// Which shard, which cycle, and whether it acts and answers.
fn title(screen: &Screen) -> Line<'_> {
    let place = &screen.picture.place;
    let bold = Style::default().add_modifier(Modifier::BOLD);
    let (text, tint) = standing(screen);
    let mut spans = vec![
        Span::styled("bigfleet  ", bold),
        Span::styled(text, style(screen, tint)),
    ];
    if !place.shard.is_empty() {
        spans.push(Span::raw(format!("  {}", printable(&place.shard))));
    }
    spans.push(Span::raw(format!("  {}", printable(&screen.target))));
    if 0 < place.cycle {
        spans.push(Span::raw(format!("  cycle {}", place.cycle)));
    }
    if let Some(every) = place.cycle_every {
        spans.push(Span::raw(format!(", every {}", span(every))));
    }
    if let Some(took) = place.cycle_took {
        spans.push(Span::raw(format!(", {:.1} ms", took.as_secs_f64() * 1e3)));
    }
    Line::from(spans)
}

fn standing(screen: &Screen) -> (String, Tint) {
    let limits = &screen.picture.limits;
    match &screen.link {
        Link::Waiting => ("waiting for an answer".to_owned(), Tint::Notable),
        Link::Lost { since: None, .. } => ("no answer yet".to_owned(), Tint::Bad),
        Link::Lost {
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
        Link::Live if limits.fenced => ("FENCED: another process runs it".to_owned(), Tint::Bad),
        Link::Live if limits.dry_run => ("DRY RUN".to_owned(), Tint::Notable),
        Link::Live if limits.pauses.iter().any(|pause| pause.scope == "all") => {
            ("PAUSED".to_owned(), Tint::Bad)
        }
        Link::Live if !limits.pauses.is_empty() => ("PAUSED IN PART".to_owned(), Tint::Notable),
        Link::Live => ("acting".to_owned(), Tint::Good),
    }
}

/// A line per pause, rail that holds something back, and pool left alone; at most four.
fn limits(screen: &Screen) -> Vec<Line<'_>> {
    let limits = &screen.picture.limits;
    let now = screen.now();
    let mut lines = Vec::new();
    let line = |text: String, tint| Line::styled(printable(&text), style(screen, tint));
    for pause in &limits.pauses {
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
        let text = format!("rail {}{of}: {}", rail.name, rail.detail);
        lines.push(line(text, Tint::Notable));
    }
    for pool in &limits.breakers {
        let text = format!(
            "left alone: {} in {} after {} failures, again in {}",
            pool.instance_type,
            pool.zone,
            pool.failures,
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
    if lines.is_empty() && screen.link != Link::Waiting {
        let on = limits.rails.iter().filter(|rail| rail.enabled).count();
        lines.push(Line::from(format!(
            "rails: {on} on, none holds anything back"
        )));
    }
    lines
}

fn limit_lines(screen: &Screen) -> u16 {
    u16::try_from(limits(screen).len().max(1)).unwrap_or(1)
}

/// What can be pressed, or what is being asked, or what came of it.
fn bottom(screen: &Screen) -> Line<'_> {
    let hand = &screen.hand;
    let asking = style(screen, Tint::Notable).add_modifier(Modifier::BOLD);
    match &hand.mode {
        Mode::ConfirmPause => Line::styled(
            format!(
                "Pause all actuation for {}? y pauses, any other key does not",
                span(screen.pause_for)
            ),
            asking,
        ),
        Mode::Filter => Line::styled(format!("/{}▏", printable(&hand.filter)), asking),
        Mode::Help => Line::from("any key goes back"),
        Mode::Page(_) => Line::from("j k move   Esc goes back"),
        Mode::Browse if !hand.said.is_empty() => Line::styled(hand.said.as_str(), asking),
        Mode::Browse => match (&screen.link, hand.filter.as_str()) {
            (Link::Lost { why, .. }, _) => Line::styled(why.as_str(), style(screen, Tint::Bad)),
            (_, "") => Line::from(
                "jk move  Tab list  / filter  e explain  p pause  r resume  ? help  q leave",
            ),
            (_, filter) => Line::from(format!(
                "only what contains \"{}\"; Esc shows all  ? help  q leave",
                printable(filter)
            )),
        },
    }
}

fn help() -> Page {
    let mut lines: Vec<String> = HELP
        .iter()
        .map(|(keys, what)| format!("{keys:<10} {what}"))
        .collect();
    lines.extend([
        String::new(),
        "$/h is what exists: a slot that was never bought costs nothing.".to_owned(),
        "COVERED is the share of the resource that is covered worst.".to_owned(),
        "MACHINES of a cluster: those that serve, + on their way to it, - leaving.".to_owned(),
        "A pause from here ends by itself; `bigfleet pause` says when and why.".to_owned(),
    ]);
    Page {
        title: "Keys".to_owned(),
        lines,
        scroll: 0,
    }
}

fn draw_page(screen: &Screen, page: &Page, area: Rect, buffer: &mut Buffer) {
    Clear.render(area, buffer);
    let inner = panes::frame(screen, &page.title, true, area, buffer);
    let lines = page.lines.iter().map(|line| Line::from(line.as_str()));
    let text: Vec<Line<'_>> = lines.skip(page.scroll).collect();
    Paragraph::new(text).render(inner, buffer);
}
