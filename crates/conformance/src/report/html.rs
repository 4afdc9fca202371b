//! `report.html`: the page a person reads. One file, without scripts and without anything from elsewhere.
//!
//! ```text
//! verdict, in a sentence ─▶ how much of it ─▶ levels ─▶ what failed, as it was said ─▶ what was not tried ─▶ every promise
//! ```
//!
//! What matters first comes first: who reads no further than the first screen knows whether the provider may be used, and if not, why.

mod failures;
mod promises;

use std::fmt::Write;

use super::escaped;
use crate::behaviour::{Profile, Suite};
use crate::certificate::{Certificate, Verdict};
use crate::runner::{Outcome, Report};

const STYLE: &str = include_str!("html/style.css");

pub(super) fn report(certificate: &Certificate, timestamp: &str) -> String {
    let verdict = certificate.verdict();
    let provider = escaped(&certificate.provider);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{provider}: {verdict}</title>\n<style>{STYLE}</style></head>\n<body><main>\n"
    );
    page += &hero(certificate, &provider);
    page += &format!("<h2>Levels</h2>\n{}", levels(certificate));
    page += &failures::section(certificate);
    page += &reasons("What could not be tried", &certificate.missing());
    page += &lacks(certificate);
    page += &promises::section(certificate);
    page += &format!(
        "<h2>The run</h2>\n{}",
        facts(certificate, &provider, timestamp)
    );
    page += "<footer>Ids such as LIFE-01 are those of the BigFleet provider contract; the numbers beside them (B101) are those \
             of its public registry. The same results for machines: report.json, junit.xml and badge.json beside this file.</footer>\n";
    page + "</main></body></html>\n"
}

/// What became of a behaviour, as a class of the style sheet: what the profiles do not ask for is no omission.
fn class(certificate: &Certificate, report: &Report) -> &'static str {
    let asked = certificate.asks_for(report);
    match report.outcome {
        Outcome::NotTried(_) if !asked => "unasked",
        _ => super::status(&report.outcome),
    }
}

fn hero(certificate: &Certificate, provider: &str) -> String {
    let verdict = certificate.verdict();
    let (colour, mark) = match verdict {
        Verdict::Certified => ("passed", "✓"),
        Verdict::Failed => ("failed", "✗"),
        Verdict::Incomplete => ("skipped", "…"),
    };
    let contract: Vec<&Report> = certificate.suite(Suite::Contract).collect();
    format!(
        "<header class=\"card hero {colour}\"><p class=\"kicker\">BigFleet provider conformance</p>\n<h1>{provider}</h1>\n\
         <p class=\"verdict {colour}\">{mark} {verdict}</p>\n<p>{}</p>\n{}{}</header>\n",
        sentence(certificate),
        bar(certificate, &contract),
        key(certificate, &contract)
    )
}

/// The verdict for somebody who has not read what the words mean.
fn sentence(certificate: &Certificate) -> String {
    let profiles = words(&certificate.profiles);
    match certificate.verdict() {
        Verdict::Certified => {
            format!(
                "Everything that {profiles} ask for was tried, and the provider kept all of it."
            )
        }
        Verdict::Failed => {
            let broken = certificate.required_failed() + certificate.counts(Suite::Baseline).failed;
            let promises = if broken == 1 {
                "promise that a shard relies on is"
            } else {
                "promises that a shard relies on are"
            };
            format!("{broken} {promises} broken. What was sent and what came back is below.")
        }
        Verdict::Incomplete => {
            let missing = certificate.required_missing();
            format!(
                "Nothing was found broken, but of what {profiles} ask for {missing} could not be tried. Why is below."
            )
        }
    }
}

/// `core, cloud and spot`.
fn words(profiles: &[Profile]) -> String {
    let words: Vec<&str> = profiles.iter().map(|it| it.word()).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => format!("profile {last}"),
        None => String::new(),
    }
}

const CLASSES: [(&str, &str); 5] = [
    ("passed", "kept"),
    ("failed", "broken"),
    ("skipped", "skipped: the provider does without"),
    ("not_implemented", "not tried"),
    ("unasked", "not asked for"),
];

fn counted(certificate: &Certificate, reports: &[&Report], wanted: &str) -> usize {
    let of_class = reports.iter().filter(|it| class(certificate, it) == wanted);
    of_class.count()
}

/// The shares of the outcomes, drawn.
fn bar(certificate: &Certificate, reports: &[&Report]) -> String {
    let mut bar = "<div class=\"bar\" aria-hidden=\"true\">".to_owned();
    for (class, _) in CLASSES {
        let count = counted(certificate, reports, class);
        if count != 0 {
            // Writing to a string does not fail.
            let _ = write!(bar, "<i class=\"{class}\" style=\"flex:{count}\"></i>");
        }
    }
    bar + "</div>\n"
}

fn key(certificate: &Certificate, reports: &[&Report]) -> String {
    let mut key = "<ul class=\"key\">".to_owned();
    for (class, word) in CLASSES {
        let count = counted(certificate, reports, class);
        if count != 0 {
            let _ = write!(key, "<li class=\"{class}\"><b>{count}</b> {word}</li>");
        }
    }
    key + "</ul>\n"
}

/// What became of each profile, from the lowest level to the highest, and how far that comes without a gap.
fn levels(certificate: &Certificate) -> String {
    let steps: [&[Profile]; 5] = [
        &[Profile::Core],
        &[Profile::Cloud, Profile::Spot, Profile::BareMetal],
        &[Profile::Durable],
        &[Profile::Fault],
        &[Profile::Scale],
    ];
    let mut list = "<ol class=\"levels\">".to_owned();
    for step in steps {
        list += "<li>";
        for profile in step {
            let (class, mark) = if certificate.breaks(*profile) {
                ("broken", "✗ ")
            } else if certificate.reached(*profile) {
                ("reached", "✓ ")
            } else if certificate.profiles.contains(profile) {
                ("missing", "… ")
            } else {
                ("unasked", "")
            };
            let _ = write!(
                list,
                "<span class=\"chip {class}\">{mark}{}</span>",
                profile.word()
            );
        }
        list += "</li>";
    }
    let reached: Vec<&str> = certificate.levels().iter().map(|it| it.word()).collect();
    let without_a_gap = match reached.last() {
        Some(highest) => format!("Highest level without a gap below it: <b>{highest}</b>."),
        None => "No level is reached: core comes first.".to_owned(),
    };
    format!(
        "{list}</ol>\n<p>{without_a_gap} <span class=\"soft\">✓ kept, ✗ broken, … not tried, dashed: not asked for; \
         of cloud, spot and bare-metal one is enough.</span></p>\n"
    )
}

fn reasons(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: Vec<String> = lines
        .iter()
        .map(|line| format!("<li>{}</li>", escaped(line)))
        .collect();
    format!(
        "<h2>{title}</h2>\n<div class=\"card\"><ul class=\"reasons\">{}</ul></div>\n",
        items.join("\n")
    )
}

fn lacks(certificate: &Certificate) -> String {
    let lacks = certificate.lacks();
    let lines: Vec<String> = lacks
        .iter()
        .map(|what| {
            let needs = certificate.reports.iter();
            let needs = needs.filter(|it| it.outcome == Outcome::Lacks(*what));
            let ids: Vec<&str> = needs.map(|it| it.behaviour.id).collect();
            format!("{what}: {} skipped ({})", ids.len(), ids.join(", "))
        })
        .collect();
    reasons("What the provider does without", &lines)
}

fn facts(certificate: &Certificate, provider: &str, timestamp: &str) -> String {
    let took: f64 = certificate
        .reports
        .iter()
        .map(|it| it.took.as_secs_f64())
        .sum();
    let profiles: Vec<&str> = certificate.profiles.iter().map(|it| it.word()).collect();
    let strict = if certificate.strict_skips {
        "what the provider does without counts as not tried (--strict-skips)"
    } else {
        "what the provider does without is skipped"
    };
    let facts = [
        ("Provider", provider.to_owned()),
        ("Finished", moment(timestamp)),
        ("Checks took", format!("{took:.1} s")),
        ("Profiles", profiles.join(", ")),
        ("Skips", strict.to_owned()),
        ("Random seed", certificate.rng_seed.to_string()),
        (
            "Command",
            format!("<code>{}</code>", escaped(&certificate.command)),
        ),
    ];
    let rows = facts.map(|(name, value)| format!("<dt>{name}</dt><dd>{value}</dd>"));
    format!("<dl class=\"card facts\">{}</dl>\n", rows.join("\n"))
}

/// As people write it; as it is if it is no moment.
fn moment(timestamp: &str) -> String {
    let parsed: Result<jiff::Timestamp, _> = timestamp.parse();
    parsed.map_or_else(
        |_| escaped(timestamp),
        |at| at.strftime("%-d %B %Y, %H:%M UTC").to_string(),
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
        assert!(page.contains("<p class=\"verdict failed\">✗ FAILED</p>"));
        assert!(page.contains("1 promise that a shard relies on is broken"));
        assert!(page.contains("<div class=\"sent\">create &quot;m&quot;</div>"));
        assert!(page.contains("Internal: no &amp; never"));
        assert!(page.contains("2 times in a row"));
        assert!(page.contains("--filter LIFE-01"), "how to try it again");
        assert!(
            !page.contains("<script"),
            "what a provider says is not markup"
        );
        for id in ["META-05", "FullLifecycle", "X-16"] {
            assert!(page.contains(id), "{id}");
        }
        assert!(page.contains("1 January 2026, 00:00 UTC"));
    }

    #[test]
    fn what_was_not_asked_for_is_no_omission() {
        let untried = |why: &str| Outcome::NotTried(why.to_owned());
        let run = certificate(|id| match id.split('-').next() {
            Some("SCALE") => untried("profile scale was not asked for"),
            Some("META") => untried("no machine is left"),
            _ => Outcome::Passed,
        });
        let contract: Vec<&Report> = run.suite(Suite::Contract).collect();
        assert_eq!(counted(&run, &contract, "unasked"), 9);
        assert_eq!(counted(&run, &contract, "not_implemented"), 5);
        let page = report(&run, "");
        assert!(page.contains("of what core and cloud ask for 5 could not be tried"));
        assert!(page.contains("META-01, META-02, META-03, META-04 and 1 more: no machine is left"));
        assert!(page.contains("<span class=\"chip unasked\">scale</span>"));
        assert!(page.contains("<span class=\"chip missing\">… core</span>"));
    }

    /// Nothing is fetched and nothing runs: the file may be mailed, archived, and opened from anywhere.
    #[test]
    fn the_page_needs_nothing_else() {
        let page = report(&certificate(|_| Outcome::Passed), "2026-01-01T00:00:00Z");
        for foreign in ["http:", "https:", "<script", "<link", "url(", "@import"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        assert!(page.contains("✓ CERTIFIED"));
        assert!(page.contains("core and cloud ask for was tried, and the provider kept all of it"));
    }
}
