//! Troubles: what concerns the whole shard, in words, before anything else that is said of it (SV-5).

use bigfleet_model::{Time, shown};
use bigfleet_shard_core::Trouble;

use super::shortfall_text::span;
use crate::news::twin_text;

/// What is wrong with the shard as a whole. The provider's words are the runtime's to know.
pub(super) fn words(trouble: &Trouble, provider: &str, said: &str, now: Time) -> String {
    match trouble {
        Trouble::Fenced => {
            "FENCED: another process runs this shard, and nothing leaves this one".to_owned()
        }
        Trouble::Twin(seen, own) => format!("STOPPED: {}", twin_text(*seen, *own)),
        Trouble::Incident(what) => format!(
            "STOPPED: something happened that cannot: {}; nothing leaves until a restart",
            shown(what)
        ),
        Trouble::Paused(pause) => {
            let until = pause.until.map_or_else(String::new, |until| {
                format!(", for {} more", span(now, until))
            });
            let since = span(pause.since, now);
            format!("PAUSED for {since}{until}: {}", pause.words())
        }
        Trouble::DryRun => "DRY RUN: decisions are shown, and nothing leaves this shard".to_owned(),
        Trouble::ProviderLost(since) => {
            let (provider, since) = (shown(provider), span(*since, now));
            format!("PROVIDER LOST for {since}: {provider} {said}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_shard_core::{Pause, PauseNote, PausedBy, Scope};

    fn at(seconds: i64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn each_trouble_has_its_own_words() {
        let said = |trouble| {
            words(
                &trouble,
                "cloud:9000",
                "does not answer: connection refused",
                at(1000),
            )
        };
        let pause = |until| Pause {
            scope: Scope::All,
            by: PausedBy::Admin,
            since: at(940),
            until,
            note: PauseNote {
                requested_by: "alice".to_owned(),
                reason: "storage work".to_owned(),
            },
            withheld: 0,
        };
        let expected = [
            (
                Trouble::Fenced,
                "FENCED: another process runs this shard, and nothing leaves this one",
            ),
            (
                Trouble::Incident("m1 is twice".to_owned()),
                "STOPPED: something happened that cannot: m1 is twice; nothing leaves until a restart",
            ),
            (
                Trouble::Paused(pause(Some(at(4600)))),
                "PAUSED for 60 s, for 60 min more: everything is paused by alice: storage work",
            ),
            (
                Trouble::DryRun,
                "DRY RUN: decisions are shown, and nothing leaves this shard",
            ),
            (
                Trouble::ProviderLost(at(975)),
                "PROVIDER LOST for 25 s: cloud:9000 does not answer: connection refused",
            ),
        ];
        for (trouble, text) in expected {
            assert_eq!(said(trouble), text);
        }
    }
}
