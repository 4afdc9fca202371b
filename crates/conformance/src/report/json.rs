//! `report.json`: the keys of the public suite, and ours beside them.

use serde::Serialize;

use super::{reason, status};
use crate::behaviour::Suite;
use crate::certificate::{Certificate, Counts};
use crate::runner::{Outcome, Report};

#[derive(Serialize)]
struct Lane {
    tests: usize,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl From<Counts> for Lane {
    fn from(counts: Counts) -> Self {
        Self {
            tests: counts.tests(),
            passed: counts.passed,
            failed: counts.failed,
            skipped: counts.skipped,
        }
    }
}

#[derive(Serialize)]
struct Sent {
    sent: String,
    received: String,
    times: usize,
}

#[derive(Serialize)]
struct Line {
    id: &'static str,
    reference: &'static str,
    area: &'static str,
    title: &'static str,
    profiles: Vec<&'static str>,
    phase: u8,
    required: bool,
    status: &'static str,
    tests: Vec<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exchanges: Vec<Sent>,
}

#[derive(Serialize)]
struct Summary {
    total_behaviors: usize,
    passed: usize,
    failed: usize,
    skipped: usize,
    not_implemented: usize,
    required_failed: usize,
    required_missing: usize,
}

#[derive(Serialize)]
struct Document<'c> {
    provider: &'c str,
    profiles: Vec<&'static str>,
    timestamp: &'c str,
    baseline: Lane,
    extension: Lane,
    behaviors: Vec<Line>,
    summary: Summary,
    verdict: String,
    /// Why the verdict is INCOMPLETE.
    incomplete: Vec<String>,
    levels: Vec<&'static str>,
    lacks: Vec<String>,
    rng_seed: u64,
    baseline_tests: Vec<Line>,
    /// Ours, which never decide.
    additional: Vec<Line>,
}

pub(super) fn report(certificate: &Certificate, timestamp: &str) -> serde_json::Result<String> {
    let lines = |suite| -> Vec<Line> {
        let reports = certificate.suite(suite);
        reports.map(|report| line(certificate, report)).collect()
    };
    let contract = certificate.counts(Suite::Contract);
    let words = |profiles: &[crate::Profile]| profiles.iter().map(|it| it.word()).collect();
    let document = Document {
        provider: &certificate.provider,
        profiles: words(&certificate.profiles),
        timestamp,
        baseline: certificate.counts(Suite::Baseline).into(),
        extension: contract.into(),
        behaviors: lines(Suite::Contract),
        summary: Summary {
            total_behaviors: contract.tests() + contract.untried,
            passed: contract.passed,
            failed: contract.failed,
            skipped: contract.skipped,
            not_implemented: contract.untried,
            required_failed: certificate.required_failed(),
            required_missing: certificate.required_missing(),
        },
        verdict: certificate.verdict().to_string(),
        incomplete: certificate.missing(),
        levels: words(&certificate.levels()),
        lacks: certificate
            .lacks()
            .iter()
            .map(ToString::to_string)
            .collect(),
        rng_seed: certificate.rng_seed,
        baseline_tests: lines(Suite::Baseline),
        additional: lines(Suite::Ours),
    };
    serde_json::to_string_pretty(&document)
}

fn line(certificate: &Certificate, report: &Report) -> Line {
    let behaviour = &report.behaviour;
    let failed = matches!(report.outcome, Outcome::Failed(_));
    let exchanges = report.exchanges.iter().map(|exchange| Sent {
        sent: exchange.sent.clone(),
        received: exchange.received.clone(),
        times: exchange.times,
    });
    let tried = !matches!(report.outcome, Outcome::NotTried(_));
    Line {
        id: behaviour.id,
        reference: behaviour.reference,
        area: behaviour.area(),
        title: behaviour.title,
        profiles: behaviour.profiles().iter().map(|it| it.word()).collect(),
        phase: behaviour.phase(),
        required: certificate.is_required(report),
        status: status(&report.outcome),
        tests: if tried {
            vec![behaviour.id]
        } else {
            Vec::new()
        },
        reason: reason(&report.outcome),
        seconds: (report.took.as_secs_f64() * 1e3).round() / 1e3,
        replay: failed.then(|| certificate.replay(report)),
        exchanges: exchanges.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::tests::certificate;

    #[test]
    fn the_keys_are_those_of_the_public_suite() {
        let run = certificate(|id| match id {
            "LIFE-01" => Outcome::Failed("broken".to_owned()),
            "LIFE-02" => Outcome::NotTried("no machine is left".to_owned()),
            _ => Outcome::Passed,
        });
        let text = report(&run, "2026-01-01T00:00:00Z").unwrap();
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        for key in ["provider", "profiles", "timestamp", "verdict"] {
            assert!(!object[key].is_null(), "{key}");
        }
        for lane in ["baseline", "extension"] {
            for key in ["tests", "passed", "failed", "skipped"] {
                assert!(object[lane][key].is_u64(), "{lane}.{key}");
            }
        }
        let summary = serde_json::json!({
            "total_behaviors": 93, "passed": 91, "failed": 1, "skipped": 0, "not_implemented": 1,
            "required_failed": 1, "required_missing": 1,
        });
        assert_eq!(object["summary"], summary);
        let first = &object["behaviors"][0];
        for key in [
            "id", "area", "title", "profiles", "phase", "required", "status", "tests",
        ] {
            assert!(!first[key].is_null(), "{key}");
        }
        let replay = "bigfleet conformance --binary p --rng-seed 7 --filter LIFE-01";
        assert_eq!(first["replay"], replay);
        assert_eq!(object["behaviors"].as_array().map(Vec::len), Some(93));
        assert_eq!(object["additional"].as_array().map(Vec::len), Some(17));
        assert_eq!(object["baseline_tests"].as_array().map(Vec::len), Some(25));
    }
}
