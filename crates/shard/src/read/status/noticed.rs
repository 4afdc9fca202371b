//! Noticed: what `status` lists becomes an event when it begins and when it ends.
//!
//! ```text
//! every second ── surroundings, Needs, work ──▶ begun? ended? ──▶ `get events` and the audit log
//! ```
//!
//! A certificate that ends in the night, or a cluster that lacked machines from two to three, is in the log of that
//! night and not only on the screen of whoever looked in time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::Time;
use bigfleet_shard_core::ShardCore;
use bigfleet_wire::v1alpha1::ProblemSeverity;

use super::surroundings::Noted;
use super::{lacking_by_cluster, lacking_text, stuck_by_reason, stuck_text};
use crate::events::{News, Severity};
use crate::hub::Stopping;
use crate::panics::Task;
use crate::read::Reads;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// An operation that was refused is often tried again with success; what is stuck for so long is news.
const REFUSED_FOR: Duration = Duration::from_secs(60);

/// What a problem is about, the same as long as it lasts: the kind of its event, and what tells it from others.
type Topic = (&'static str, String);

impl Reads {
    /// Tells what begins and what ends, until the shard stops.
    pub(crate) async fn tell_problems(self) {
        let mut before = BTreeMap::new();
        loop {
            // Of the host's time: whoever is paged reads a clock on a wall.
            tokio::time::sleep(LOOK_EVERY).await;
            let looked = self.hub.survive(Task::Problems, self.problems()).await;
            match looked {
                Ok(Ok(after)) => {
                    for news in turned(&before, &after) {
                        self.events.add(self.info.now(), news);
                    }
                    before = after;
                }
                Ok(Err(Stopping)) => return std::future::pending().await,
                Err(_) => {} // said already; the next look may go better
            }
        }
    }

    async fn problems(&self) -> Result<BTreeMap<Topic, News>, Stopping> {
        let around = Arc::clone(&self.surroundings);
        // It asks the disk how full it is, which may take its time.
        let noted = tokio::task::spawn_blocking(move || around.noted());
        let noted = noted.await.map_err(|_| Stopping)?;
        let now = self.info.now();
        let topics: Vec<&'static str> = noted.iter().map(|one| one.topic).collect();
        self.surroundings.remember(&topics, now);
        let noted = noted
            .iter()
            .map(|one| ((one.topic, String::new()), of(one)));
        let mut problems: BTreeMap<Topic, News> = noted.collect();
        let asked = self.hub.ask(move |core| of_core(core, now));
        problems.extend(asked.await?);
        Ok(problems)
    }
}

fn of(noted: &Noted) -> News {
    match noted.severity {
        ProblemSeverity::Critical => News::error(noted.topic, noted.what.as_str()),
        _ => News::warning(noted.topic, noted.what.as_str()),
    }
}

/// Clusters that lack something for long, and work that does not get on. Runs on the core.
fn of_core(core: &ShardCore, now: Time) -> Vec<(Topic, News)> {
    let lacking = lacking_by_cluster(core, now).into_iter();
    let lacking = lacking.map(|(cluster, (count, _))| {
        let news = News::error("needs-lacking", lacking_text(count));
        let topic = ("needs-lacking", cluster.to_string());
        (topic, news.of(cluster))
    });
    let mut stuck = BTreeMap::new();
    for ((why, action), (count, _)) in stuck_by_reason(core, now, REFUSED_FOR) {
        let topic = ("work-stuck", action.to_owned());
        let news = || News::warning("work-stuck", stuck_text(count, action, &why));
        stuck.entry(topic).or_insert_with(news);
    }
    lacking.chain(stuck).collect()
}

/// What began and what ended. What goes on in other words is known.
fn turned(before: &BTreeMap<Topic, News>, after: &BTreeMap<Topic, News>) -> Vec<News> {
    let begun = after
        .iter()
        .filter(|(topic, _)| !before.contains_key(topic));
    let ended = before
        .iter()
        .filter(|(topic, _)| !after.contains_key(topic));
    let ended = ended.map(|(_, news)| News {
        kind: "settled",
        severity: Severity::Info,
        cluster: news.cluster.clone(),
        text: format!("no more: {}", news.text),
    });
    begun.map(|(_, news)| news.clone()).chain(ended).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::ClusterId;

    #[test]
    fn what_goes_on_is_said_once_and_its_end_too() {
        let low = |left: u64| {
            let topic = ("disk-low", String::new());
            (
                topic,
                News::warning("disk-low", format!("{left} MiB are left")),
            )
        };
        let cluster = ClusterId::new("a").unwrap();
        let lacking = {
            let topic = ("needs-lacking", "a".to_owned());
            (
                topic,
                News::error("needs-lacking", "cluster a: 1 Need").of(&cluster),
            )
        };
        let begun = turned(
            &BTreeMap::new(),
            &BTreeMap::from([low(300), lacking.clone()]),
        );
        let kinds: Vec<_> = begun.iter().map(|one| (one.kind, one.severity)).collect();
        assert_eq!(
            kinds,
            [
                ("disk-low", Severity::Warning),
                ("needs-lacking", Severity::Error)
            ]
        );
        let (before, after) = (BTreeMap::from([low(300)]), BTreeMap::from([low(290)]));
        assert_eq!(turned(&before, &after), [], "it is known");
        let ended = turned(&BTreeMap::from([low(290), lacking]), &after);
        let [settled] = &ended[..] else {
            panic!("{ended:?}");
        };
        assert_eq!(
            (
                settled.kind,
                settled.text.as_str(),
                settled.cluster.as_ref()
            ),
            ("settled", "no more: cluster a: 1 Need", Some(&cluster))
        );
    }
}
