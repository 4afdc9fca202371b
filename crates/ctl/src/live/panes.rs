//! Panes: the four lists of the live view.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row, StatefulWidget, Table, TableState, Widget};

use super::draw::style;
use super::overview::{STATES, TIERS, TierCounts};
use super::screen::{Connection, Pane, Screen};
use crate::record::{ActionRecord, ClusterRecord, NeedRecord};
use crate::text::{Tint, printable, quantities};
use crate::when::ago;

/// A line with a title, and the room below it.
pub(super) fn frame(
    screen: &Screen,
    title: &str,
    in_hand: bool,
    area: Rect,
    buffer: &mut Buffer,
) -> Rect {
    let bold = Style::default().add_modifier(Modifier::BOLD);
    let title_style = if in_hand {
        bold.patch(style(screen, Tint::Good))
    } else {
        Style::default()
    };
    let mark = if in_hand { "▶ " } else { "  " };
    let title = cut(&format!("{mark}{} ", printable(title)), area.width);
    let dashes = usize::from(area.width).saturating_sub(title.chars().count());
    let line = Line::from(vec![
        Span::styled(title, title_style),
        Span::raw("─".repeat(dashes)),
    ]);
    let [top, below] =
        ratatui::layout::Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    line.render(top, buffer);
    below
}

/// One column: its head, how wide it may be, and whether numbers stand in it.
struct Column(&'static str, Width, bool);

/// How wide a column may be.
#[derive(Clone, Copy)]
enum Width {
    /// As its widest cell, but at most so many hundredths of the room there is.
    Upto(u16),
    /// What the others leave.
    Rest,
}

impl Column {
    /// As wide as it needs to be among these rows; `None` for what the others leave.
    fn width(&self, at: usize, rows: &[Vec<(String, Tint)>], room: u16) -> Option<u16> {
        let Width::Upto(share) = self.1 else {
            return None;
        };
        let cells = rows.iter().filter_map(|row| row.get(at));
        let widest = cells.map(|(text, _)| printable(text).chars().count()).max();
        let widest = widest.unwrap_or(0).max(self.0.len());
        let most = usize::from(room) * usize::from(share) / 100;
        let width = widest.min(most.max(self.0.len()));
        Some(u16::try_from(width).unwrap_or(u16::MAX))
    }
}

use Width::{Rest, Upto};

struct List {
    pane: Pane,
    title: String,
    columns: Vec<Column>,
    rows: Vec<Vec<(String, Tint)>>,
    /// What to say where there is nothing.
    nothing: &'static str,
}

impl List {
    fn draw(self, screen: &Screen, area: Rect, buffer: &mut Buffer) {
        let in_hand = screen.focus.pane == self.pane;
        // One line for the title and one for the heads of the columns.
        let fit = usize::from(area.height.saturating_sub(2));
        let hidden = self.rows.len().saturating_sub(fit);
        let title = match hidden {
            0 => self.title.clone(),
            hidden => format!("{}, {hidden} more ↓", self.title),
        };
        let inner = frame(screen, &title, in_hand, area, buffer);
        if self.rows.is_empty() {
            let nothing = match (&screen.connection, screen.focus.filter.as_str()) {
                (Connection::Waiting, _) => "…".to_owned(),
                (_, "") => self.nothing.to_owned(),
                (_, filter) => format!("nothing contains \"{filter}\"; Esc shows all"),
            };
            let nothing = cut(&format!("  {}", printable(&nothing)), inner.width);
            Line::from(nothing).render(inner, buffer);
            return;
        }
        let widths = self.widths(inner.width);
        let mut state = TableState::new().with_selected(in_hand.then(|| screen.cursor(self.pane)));
        let rows = self.rows.into_iter().map(|row| {
            let cells = row.into_iter().zip(&self.columns).zip(&widths);
            Row::new(cells.map(|((cell, column), width)| self::cell(screen, cell, column, *width)))
        });
        let dim = Style::default().add_modifier(Modifier::DIM);
        let heads = self.columns.iter().zip(&widths).map(|(of, width)| {
            let head = Line::from(cut(of.0, *width));
            Cell::from(if of.2 { head.right_aligned() } else { head })
        });
        let table = Table::new(rows, widths.iter().map(|width| Constraint::Length(*width)))
            .header(Row::new(heads).style(dim))
            .row_highlight_style(Style::default().add_modifier(Modifier::REVERSED))
            .column_spacing(1);
        StatefulWidget::render(table, inner, buffer, &mut state);
    }
}

impl List {
    /// The width of every column; the widest text gets what the others leave.
    fn widths(&self, room: u16) -> Vec<u16> {
        let columns = self.columns.iter().enumerate();
        let widths: Vec<Option<u16>> = columns
            .map(|(at, column)| column.width(at, &self.rows, room))
            .collect();
        let spacing = u16::try_from(widths.len().saturating_sub(1)).unwrap_or(0);
        let taken = widths
            .iter()
            .flatten()
            .fold(spacing, |sum, width| sum.saturating_add(*width));
        let rest = room.saturating_sub(taken);
        widths
            .into_iter()
            .map(|width| width.unwrap_or(rest))
            .collect()
    }
}

/// As much of a text as fits; a mark at its end says that there is more.
pub(super) fn cut(text: &str, width: u16) -> String {
    let width = usize::from(width);
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    if width == 0 { kept } else { kept + "…" }
}

fn cell<'a>(
    screen: &Screen,
    (text, tint): (String, Tint),
    column: &Column,
    width: u16,
) -> Cell<'a> {
    let text = printable(&text);
    let shift = match column.1 {
        Rest => screen.focus.shift.min(text.chars().count()),
        Upto(_) => 0,
    };
    let text = match shift {
        0 => text,
        shift => format!("…{}", text.chars().skip(shift + 1).collect::<String>()),
    };
    let line = Line::styled(cut(&text, width), style(screen, tint));
    Cell::from(if column.2 { line.right_aligned() } else { line })
}

/// Clusters: what they ask for, what of it they have.
pub(super) fn clusters(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let shown = screen.clusters();
    let row = |one: &&ClusterRecord| {
        let sum = screen.overview.demand.by_cluster.get(&one.id);
        let served = sum.map(|sum| sum.served_per_cent());
        let short = sum.map(|sum| sum.missing()).unwrap_or_default();
        let tint = match served {
            Some(100) if short.is_empty() => Tint::Good,
            None => Tint::Plain,
            Some(_) => Tint::Bad,
        };
        let (operator, connected) = one.operator();
        let price = screen.overview.machines.by_cluster.get(&one.id);
        let machines = format!("{} +{} -{}", one.serving(), one.coming(), one.leaving());
        vec![
            (one.id.clone(), Tint::Plain),
            (operator.to_owned(), connected),
            (one.needs.to_string(), Tint::Plain),
            (served.map_or_else(String::new, |of| format!("{of}%")), tint),
            (machines, Tint::Plain),
            (
                price.map_or_else(String::new, |price| format!("{price:.2}")),
                Tint::Plain,
            ),
            (sum.map(|sum| sum.wanted()).unwrap_or_default(), Tint::Plain),
            (short, Tint::Bad),
        ]
    };
    let list = List {
        pane: Pane::Clusters,
        title: format!("Clusters {}", shown.len()),
        columns: vec![
            Column("CLUSTER", Upto(25), false),
            Column("OPERATOR", Upto(10), false),
            Column("NEEDS", Upto(10), true),
            Column("SERVED", Upto(10), true),
            Column("MACHINES", Upto(20), true),
            Column("$/H", Upto(12), true),
            Column("DEMAND", Upto(30), false),
            Column("LACKS", Rest, false),
        ],
        rows: shown.iter().map(row).collect(),
        nothing: "no cluster has reported yet",
    };
    list.draw(screen, area, buffer);
}

/// Needs: what is not served first.
pub(super) fn needs(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let shown = screen.needs();
    let row = |one: &&NeedRecord| {
        let per_mille = one.served_per_mille();
        let tint = one.status_field().tint;
        let why = if one.is_served() {
            one.status().to_owned()
        } else {
            one.why.clone()
        };
        vec![
            (one.cluster.clone(), Tint::Plain),
            (one.need.clone(), Tint::Plain),
            (one.priority.to_string(), Tint::Plain),
            (quantities(&one.aggregate_resources), Tint::Plain),
            (format!("{}%", per_mille / 10), tint),
            (one.claimed.to_string(), Tint::Plain),
            (why, tint),
        ]
    };
    let demand = &screen.overview.demand;
    let short = demand.rows.iter().filter(|row| !row.is_served()).count();
    let title = if shown.len() == demand.total {
        format!("Needs {}, not served {short}", demand.total)
    } else {
        format!(
            "Needs {} of {}, not served {short}",
            shown.len(),
            demand.total
        )
    };
    let list = List {
        pane: Pane::Needs,
        title,
        columns: vec![
            Column("CLUSTER", Upto(15), false),
            Column("NEED", Upto(10), false),
            Column("PRIORITY", Upto(12), true),
            Column("WANTS", Upto(20), false),
            Column("SERVED", Upto(10), true),
            Column("MACHINES", Upto(10), true),
            Column("STATUS", Rest, false),
        ],
        rows: shown.iter().map(row).collect(),
        nothing: "no cluster asks for anything",
    };
    list.draw(screen, area, buffer);
}

/// Decisions: newest first.
pub(super) fn decisions(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let shown = screen.decisions();
    let now = screen.now();
    let row = |one: &&ActionRecord| {
        vec![
            (ago(now, one.time), Tint::Plain),
            (one.kind.clone().unwrap_or_default(), Tint::Plain),
            (one.machine.clone(), Tint::Plain),
            (one.cluster().to_owned(), Tint::Plain),
            (one.outcome.clone(), one.outcome_tint()),
            (one.detail.clone(), Tint::Plain),
        ]
    };
    let list = List {
        pane: Pane::Decisions,
        title: "Decisions, newest first".to_owned(),
        columns: vec![
            Column("AGO", Upto(10), true),
            Column("ACTION", Upto(12), false),
            Column("MACHINE", Upto(20), false),
            Column("CLUSTER", Upto(15), false),
            Column("OUTCOME", Upto(14), false),
            Column("WHY", Rest, false),
        ],
        rows: shown.iter().map(row).collect(),
        nothing: "nothing was decided yet",
    };
    list.draw(screen, area, buffer);
}

/// Machines by tier and state, with what each tier costs per hour.
pub(super) fn machines(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let tally = &screen.overview.machines;
    let total = tally.total();
    let count: u64 = total.states.values().sum();
    let mut title = format!("Machines {count}");
    if 0 < tally.flagged {
        title += &format!(", {} with a flag", tally.flagged);
    }
    let inner = frame(screen, &title, false, area, buffer);
    const HEADS: [&str; 8] = [
        "slots", "create", "idle", "config", "serving", "drain", "delete", "failed",
    ];
    let number = |text: String| Cell::from(Line::from(text).right_aligned());
    let line = |name: &str, tier: &TierCounts| {
        let mut cells = vec![Cell::from(name.to_owned())];
        for state in STATES {
            let count = tier.states.get(state).copied().unwrap_or(0);
            let text = match count {
                0 => "·".to_owned(),
                count => count.to_string(),
            };
            let tint = if state == "Failed" && 0 < count {
                Tint::Bad
            } else {
                Tint::Plain
            };
            cells.push(number(text).style(style(screen, tint)));
        }
        cells.push(number(format!("{:.2}", tier.price)));
        Row::new(cells)
    };
    let known = TIERS
        .iter()
        .filter_map(|name| Some((*name, tally.tiers.get(*name)?)));
    let newer = tally
        .tiers
        .iter()
        .filter(|(name, _)| !TIERS.contains(&name.as_str()));
    let newer = newer.map(|(name, tier)| (name.as_str(), tier));
    let mut rows: Vec<Row<'_>> = known
        .chain(newer)
        .map(|(name, tier)| line(name, tier))
        .collect();
    rows.push(line("all", &total));
    let mut heads = vec![Cell::from("TIER")];
    heads.extend(HEADS.map(|head| number(head.to_uppercase())));
    heads.push(number("$/H".to_owned()));
    let mut widths = vec![Constraint::Length(10)];
    widths.extend([Constraint::Fill(1); 8]);
    widths.push(Constraint::Length(9));
    let dim = Style::default().add_modifier(Modifier::DIM);
    let table = Table::new(rows, widths)
        .header(Row::new(heads).style(dim))
        .column_spacing(1);
    Widget::render(table, inner, buffer);
}
