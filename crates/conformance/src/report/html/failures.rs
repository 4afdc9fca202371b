//! What failed: a card for each broken promise, with what was said last and how to try it again.

use crate::behaviour::Suite;
use crate::certificate::Certificate;
use crate::exchange::Exchange;
use crate::report::{escaped, reason};
use crate::runner::{Outcome, Report};

/// So many of the last exchanges are shown at once; what came before is a click away.
const SHOWN: usize = 6;

/// Those that decide, then those that do not.
pub(super) fn section(certificate: &Certificate) -> String {
    let failed = |decides: bool| -> String {
        let reports = certificate.reports.iter();
        let failed = reports.filter(|it| matches!(it.outcome, Outcome::Failed(_)));
        let failed = failed.filter(|it| certificate.decides(it) == decides);
        failed.map(|it| card(certificate, it)).collect()
    };
    let mut section = String::new();
    for (decides, title) in [
        (true, "What failed"),
        (false, "Found besides; this does not decide"),
    ] {
        let cards = failed(decides);
        if !cards.is_empty() {
            section += &format!("<h2>{title}</h2>\n{cards}");
        }
    }
    section
}

fn card(certificate: &Certificate, report: &Report) -> String {
    let behaviour = &report.behaviour;
    let aside = if certificate.decides(report) {
        ""
    } else {
        " aside"
    };
    let reference = match behaviour.reference {
        "" => String::new(),
        reference => format!(" <span class=\"soft\">{reference}</span>"),
    };
    let kind = match behaviour.suite() {
        Suite::Baseline => "baseline".to_owned(),
        Suite::Contract | Suite::Ours => behaviour.area().to_owned(),
    };
    format!(
        "<section class=\"card broken-promise{aside}\" id=\"{id}\"><h3><span class=\"id\">{id}</span>{reference} \
         <span class=\"soft\">· {kind}</span><br>{}</h3>\n<p class=\"why\">{}</p>\n{}\
         <p>Try it again: <code>{}</code></p></section>\n",
        escaped(behaviour.title),
        escaped(&reason(&report.outcome)),
        talk(&report.exchanges),
        escaped(&certificate.replay(report)),
        id = behaviour.id,
    )
}

fn talk(exchanges: &[Exchange]) -> String {
    if exchanges.is_empty() {
        return "<p class=\"soft\">Nothing was sent.</p>\n".to_owned();
    }
    let (before, last) = exchanges.split_at(exchanges.len().saturating_sub(SHOWN));
    let mut text =
        "<p class=\"soft\">What was sent (→) and what came back (←), the last at the end:</p>\n"
            .to_owned();
    if !before.is_empty() {
        let calls = before.len();
        text += &format!(
            "<details><summary class=\"soft\">{calls} exchanges before these</summary>{}</details>\n",
            lines(before, false)
        );
    }
    text + &lines(last, true)
}

fn lines(exchanges: &[Exchange], ends: bool) -> String {
    let line = |(at, exchange): (usize, &Exchange)| {
        let class = if ends && at + 1 == exchanges.len() {
            " class=\"last\""
        } else {
            ""
        };
        let times = match exchange.times {
            1 => String::new(),
            times => format!(" <span class=\"times\">{times} times in a row</span>"),
        };
        format!(
            "<li{class}><div class=\"sent\">{}</div><div class=\"came\">{}{times}</div></li>\n",
            escaped(&exchange.sent),
            escaped(&exchange.received)
        )
    };
    let lines: String = exchanges.iter().enumerate().map(line).collect();
    format!("<ul class=\"talk\">{lines}</ul>\n")
}
