//! `badge.json`: an endpoint badge.

use serde::Serialize;

use crate::behaviour::Suite;
use crate::certificate::{Certificate, Verdict};

#[derive(Serialize)]
struct Badge {
    #[serde(rename = "schemaVersion")]
    schema_version: u8,
    label: &'static str,
    message: String,
    color: &'static str,
}

pub(super) fn report(certificate: &Certificate) -> serde_json::Result<String> {
    let (verdict, counts) = (certificate.verdict(), certificate.counts(Suite::Contract));
    serde_json::to_string_pretty(&Badge {
        schema_version: 1,
        label: "bigfleet conformance",
        message: format!("{verdict} ({}/{})", counts.passed, counts.tests()),
        color: match verdict {
            Verdict::Certified => "brightgreen",
            Verdict::Failed => "red",
            Verdict::Incomplete => "yellow",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::tests::certificate;
    use crate::runner::Outcome;

    #[test]
    fn the_badge_counts_what_was_looked_at() {
        let run = certificate(|id| match id {
            "LIFE-01" => Outcome::Failed("broken".to_owned()),
            "SCALE-01" => Outcome::NotTried("not asked for".to_owned()),
            _ => Outcome::Passed,
        });
        let badge: serde_json::Value = serde_json::from_str(&report(&run).unwrap()).unwrap();
        assert_eq!(badge["schemaVersion"], 1);
        assert_eq!(badge["message"], "FAILED (91/92)");
        assert_eq!(badge["color"], "red");
    }
}
