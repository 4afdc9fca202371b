//! `report.html`: the page a person reads. One file, without scripts and without anything from elsewhere.

use std::fmt::Write;

use super::{escaped, reason, status};
use crate::behaviour::{Profile, Suite};
use crate::certificate::{Certificate, Verdict};
use crate::runner::{Outcome, Report};

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--pass:#1a7f37;--fail:#cf222e;--skip:#9a6700;--none:#6e7781}\
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}\
h1{margin:0}h2{margin:2rem 0 .5rem}table{border-collapse:collapse;width:100%}\
td,th{text-align:left;vertical-align:top;padding:.3rem .6rem;border-top:1px solid var(--line)}\
td:first-child{white-space:nowrap;font-family:ui-monospace,monospace}\
.passed{color:var(--pass)}.failed{color:var(--fail)}.skipped{color:var(--skip)}.not_implemented{color:var(--none)}\
.verdict{font-size:1.6rem;font-weight:700}\
.levels span{display:inline-block;border:1px solid var(--line);border-radius:1rem;padding:.1rem .8rem;margin:.2rem .3rem 0 0}\
.levels .reached{border-color:var(--pass);color:var(--pass)}\
pre{overflow:auto;border:1px solid var(--line);padding:.6rem;font-size:13px;white-space:pre-wrap;overflow-wrap:anywhere}\
code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}";

pub(super) fn report(certificate: &Certificate, timestamp: &str) -> String {
    let verdict = certificate.verdict();
    let colour = match verdict {
        Verdict::Certified => "passed",
        Verdict::Failed => "failed",
        Verdict::Incomplete => "skipped",
    };
    let provider = escaped(&certificate.provider);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>{provider}: {verdict}</title><style>{STYLE}</style></head><body>\n\
         <h1>Provider {provider}</h1>\n<p class=\"verdict {colour}\">{verdict}</p>\n"
    );
    let profiles: Vec<&str> = certificate.profiles.iter().map(|it| it.word()).collect();
    let counts = certificate.counts(Suite::Contract);
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "<p>{} · profiles {} · {} of {} behaviours kept · random seed {}</p>",
        escaped(timestamp),
        profiles.join(", "),
        counts.passed,
        counts.tests(),
        certificate.rng_seed
    );
    page += "<p class=\"levels\">Levels: ";
    let levels = certificate.levels();
    for profile in Profile::ALL {
        let class = if levels.contains(&profile) {
            " class=\"reached\""
        } else {
            ""
        };
        let mark = if levels.contains(&profile) {
            "✓ "
        } else {
            ""
        };
        let _ = write!(page, "<span{class}>{mark}{}</span>", profile.word());
    }
    page += "</p>\n";
    page += &list("Not tried", &certificate.missing());
    let lacks: Vec<String> = certificate
        .lacks()
        .iter()
        .map(ToString::to_string)
        .collect();
    page += &list("The provider does without", &lacks);
    let failed = certificate.reports.iter();
    let failed = failed.filter(|report| matches!(report.outcome, Outcome::Failed(_)));
    for (at, report) in failed.enumerate() {
        if at == 0 {
            page += "<h2>What failed</h2>\n";
        }
        page += &failure(certificate, report);
    }
    for (suite, title) in [
        (Suite::Contract, "The contract"),
        (Suite::Baseline, "The baseline"),
        (Suite::Ours, "In addition; these do not decide"),
    ] {
        let _ = write!(
            page,
            "<h2>{title}</h2>\n<table><tr><th>Behaviour</th><th>Promise</th><th>Profiles</th>\
             <th>Outcome</th><th>Seconds</th></tr>\n"
        );
        for report in certificate.suite(suite) {
            page += &row(report);
        }
        page += "</table>\n";
    }
    page + "</body></html>\n"
}

fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: Vec<String> = lines
        .iter()
        .map(|line| format!("<li>{}</li>", escaped(line)))
        .collect();
    format!("<h2>{title}</h2>\n<ul>{}</ul>\n", items.join("\n"))
}

fn failure(certificate: &Certificate, report: &Report) -> String {
    let behaviour = &report.behaviour;
    let mut text = String::new();
    for exchange in &report.exchanges {
        let times = match exchange.times {
            1 => String::new(),
            times => format!("  (×{times})"),
        };
        let _ = writeln!(text, "→ {}\n← {}{times}", exchange.sent, exchange.received);
    }
    if text.is_empty() {
        text = "nothing was sent".to_owned();
    }
    let decides = if behaviour.suite() == Suite::Ours {
        " (does not decide)"
    } else {
        ""
    };
    format!(
        "<h3 id=\"{id}\">{id}: {}{decides}</h3>\n<p class=\"failed\">{}</p>\n\
         <details open><summary>What was sent (→) and what came back (←)</summary><pre>{}</pre></details>\n\
         <p>Try it again: <code>{}</code></p>\n",
        escaped(behaviour.title),
        escaped(&reason(&report.outcome)),
        escaped(&text),
        escaped(&certificate.replay(report)),
        id = behaviour.id,
    )
}

fn row(report: &Report) -> String {
    let (behaviour, outcome) = (&report.behaviour, &report.outcome);
    let id = match (outcome, behaviour.reference) {
        (Outcome::Failed(_), _) => format!("<a href=\"#{0}\">{0}</a>", behaviour.id),
        (_, "") => behaviour.id.to_owned(),
        (_, reference) => format!("<span title=\"{reference}\">{}</span>", behaviour.id),
    };
    let word = match status(outcome) {
        "not_implemented" => "not tried",
        word => word,
    };
    let why = match reason(outcome) {
        why if why.is_empty() => why,
        why => format!(": {}", escaped(&why)),
    };
    let profiles = if behaviour.suite() == Suite::Baseline {
        String::new()
    } else {
        let words: Vec<&str> = behaviour.profiles().iter().map(|it| it.word()).collect();
        words.join(", ")
    };
    format!(
        "<tr><td>{id}</td><td>{}</td><td>{profiles}</td><td class=\"{}\">{word}{why}</td><td>{:.2}</td></tr>\n",
        escaped(behaviour.title),
        status(outcome),
        report.took.as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::tests::certificate;
    use crate::exchange::Exchange;

    #[test]
    fn the_page_shows_what_was_sent_where_it_failed() {
        let mut run = certificate(|id| match id {
            "LIFE-01" => Outcome::Failed("<script>".to_owned()),
            _ => Outcome::Passed,
        });
        let broken = run
            .reports
            .iter_mut()
            .find(|it| it.behaviour.id == "LIFE-01")
            .unwrap();
        broken.exchanges = vec![Exchange {
            sent: "create \"m\"".to_owned(),
            received: "Internal: no & never".to_owned(),
            times: 2,
        }];
        let page = report(&run, "2026-01-01T00:00:00Z");
        assert!(page.contains("<p class=\"verdict failed\">FAILED</p>"));
        assert!(page.contains("→ create &quot;m&quot;\n← Internal: no &amp; never  (×2)"));
        assert!(
            !page.contains("<script"),
            "what a provider says is not markup"
        );
        for id in ["META-05", "FullLifecycle", "X-16"] {
            assert!(page.contains(id), "{id}");
        }
    }
}
