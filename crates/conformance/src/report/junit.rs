//! `junit.xml`: what a build server shows.

use std::fmt::Write;

use super::{escaped, reason};
use crate::behaviour::Suite;
use crate::certificate::Certificate;
use crate::runner::{Outcome, Report};

const SUITES: [(Suite, &str); 3] = [
    (Suite::Baseline, "upstream-baseline"),
    (Suite::Contract, "extension"),
    (Suite::Ours, "additional"),
];

pub(super) fn report(certificate: &Certificate) -> String {
    let mut suites = String::new();
    let (mut tests, mut failures, mut skipped) = (0, 0, 0);
    for (suite, name) in SUITES {
        let counts = certificate.counts(suite);
        if suite == Suite::Baseline && counts.tests() == 0 {
            continue;
        }
        let all = counts.tests() + counts.untried;
        let not_run = counts.skipped + counts.untried;
        (tests, failures, skipped) = (tests + all, failures + counts.failed, skipped + not_run);
        let head = format!(
            "  <testsuite name=\"{name}\" tests=\"{all}\" failures=\"{}\" skipped=\"{not_run}\">\n",
            counts.failed
        );
        suites += &head;
        for report in certificate.suite(suite) {
            suites += &case(certificate, report, name);
        }
        suites += "  </testsuite>\n";
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"bigfleet-conformance:{}\" tests=\"{tests}\" failures=\"{failures}\" \
         skipped=\"{skipped}\">\n{suites}</testsuites>\n",
        escaped(&certificate.provider)
    )
}

fn case(certificate: &Certificate, report: &Report, suite: &str) -> String {
    let behaviour = &report.behaviour;
    let head = format!(
        "    <testcase name=\"{}\" classname=\"{suite}.{}\" time=\"{:.3}\"",
        behaviour.id,
        behaviour.area(),
        report.took.as_secs_f64()
    );
    let message = escaped(&reason(&report.outcome));
    match &report.outcome {
        Outcome::Passed => format!("{head}/>\n"),
        Outcome::Lacks(_) | Outcome::NotTried(_) => {
            format!("{head}><skipped message=\"{message}\"/></testcase>\n")
        }
        Outcome::Failed(_) => {
            let mut body = format!(
                "{}\nreplay: {}\n",
                behaviour.title,
                certificate.replay(report)
            );
            for exchange in &report.exchanges {
                let (sent, received, times) = (&exchange.sent, &exchange.received, exchange.times);
                // Writing to a string does not fail.
                let _ = writeln!(body, "> {sent}\n< {received} (x{times})");
            }
            let body = escaped(&body);
            format!("{head}><failure message=\"{message}\">{body}</failure></testcase>\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::tests::certificate;

    #[test]
    fn a_failure_has_its_words_whatever_they_are() {
        let run = certificate(|id| match id {
            "LIFE-01" => Outcome::Failed("a < b & \"c\"\u{0}".to_owned()),
            "X-01" => Outcome::NotTried("no".to_owned()),
            _ => Outcome::Passed,
        });
        let text = report(&run);
        assert!(text.contains("name=\"bigfleet-conformance:test\" tests=\"135\" failures=\"1\""));
        assert!(
            text.contains("message=\"a &lt; b &amp; &quot;c&quot;\u{fffd}\""),
            "{text}"
        );
        assert!(text.contains("<testsuite name=\"upstream-baseline\" tests=\"25\""));
        assert!(text.contains("<skipped message=\"no\"/>"));
    }
}
