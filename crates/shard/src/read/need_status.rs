//! Need status: operators that ask for it are told where their rows stand, for the people who wait there (SV-11).
//!
//! ```text
//! every 2 s: verdicts ─▶ rows of connected clusters ─▶ those not known as served: where they stand now
//!                                                        └─▶ word, amounts, sentence ─ differ ─▶ outbox
//! ```
//!
//! A reader like any other: the core is asked for bounded pages and decides nothing differently.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bigfleet_model::{Amounts, ClusterId, NeedKey, Time};
use bigfleet_shard_core::{NeedView, Pool, Progress, SessionId};
use bigfleet_wire::v1alpha1::{NeedStatusRow, UnmetReason};

use super::{Reads, needs, shortfall_text};
use crate::hub::Stopping;
use crate::panics::Task;
use crate::untold_rows::RowName;

const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The least time between two words on a row.
const WORD_EVERY: Duration = Duration::from_secs(10);
/// The least time between two sentences with the same word.
const SENTENCE_EVERY: Duration = Duration::from_secs(60);
/// Rows a session is told of, those of the highest priority.
const MOST_ROWS: usize = 8192;
/// Bytes of a sentence.
const MOST_SENTENCE: usize = 400;
/// Rows that are looked at at once.
const AT_ONCE: usize = 128;

const SERVED: &str = "Served";

/// What sessions were told.
#[derive(Debug, Default)]
struct ToldSessions {
    sessions: BTreeMap<SessionId, BTreeMap<RowName, ToldRow>>,
}

#[derive(Clone, Debug)]
struct ToldRow {
    row: NeedStatusRow,
    at: Time,
}

impl ToldRow {
    /// Whether a row's new status is to be told now.
    fn is_due(&self, row: &NeedStatusRow, now: Time) -> bool {
        let waited = now.duration_since(self.at);
        if self.row == *row || waited < WORD_EVERY {
            return false;
        }
        outline(&self.row) != outline(row) || SENTENCE_EVERY <= waited
    }
}

/// The word, and which of the amounts are more than nothing.
fn outline(row: &NeedStatusRow) -> (&str, [bool; 4]) {
    let amounts = [&row.serving, &row.coming, &row.stuck, &row.missing];
    let is_some = |amounts: &Option<bigfleet_wire::v1alpha1::Resources>| {
        amounts.as_ref().is_some_and(|of| !of.resources.is_empty())
    };
    (&row.reason, amounts.map(is_some))
}

impl Reads {
    /// Tells operators where their rows stand, until the shard stops.
    pub(crate) async fn tell_needs(self) {
        let mut told = ToldSessions::default();
        loop {
            self.info.sleep(LOOK_EVERY).await;
            let look = self.look(&mut told);
            let looked = self.hub.survive(Task::NeedStatus, look).await;
            if let Ok(Err(Stopping)) = looked {
                return std::future::pending().await; // the shard ends without hurry
            }
        }
    }

    async fn look(&self, told: &mut ToldSessions) -> Result<(), Stopping> {
        let mut links = self.sessions.told_of_needs();
        let open: Vec<SessionId> = links.keys().copied().collect();
        told.sessions
            .retain(|session, _| links.contains_key(session));
        if open.is_empty() {
            return Ok(());
        }
        let asked = self.hub.ask(move |core| {
            let heard = |session: &SessionId| 0 < core.roll_ups_accepted(*session);
            let heard: BTreeSet<SessionId> = open.into_iter().filter(heard).collect();
            (heard, core.decided().cloned(), core.rails().breakers)
        });
        let (heard, decided, breakers) = asked.await?;
        let Some(decided) = decided else {
            return Ok(());
        };
        links.retain(|session, _| heard.contains(session));
        let pools: Vec<Pool> = breakers.into_iter().map(|one| one.pool).collect();
        let clusters = links
            .iter()
            .map(|(session, link)| (&link.cluster, *session));
        let clusters: BTreeMap<&ClusterId, SessionId> = clusters.collect();
        let mut rows: BTreeMap<SessionId, Vec<&NeedView>> = BTreeMap::new();
        for view in &decided.needs {
            let session = clusters.get(&view.verdict.need.cluster);
            if let Some(session) = session {
                rows.entry(*session).or_default().push(view);
            }
        }
        for (session, link) in &links {
            let rows = rows.remove(session).unwrap_or_default();
            let before = told.sessions.get(session);
            let is_first = before.is_none();
            let empty = BTreeMap::new();
            let found = self
                .standings(&rows, before.unwrap_or(&empty), &pools)
                .await?;
            if is_first && found.is_empty() {
                continue; // its rows were not decided on yet
            }
            let before = told.sessions.entry(*session).or_default();
            let (news, complete) = news(before, found, self.info.now());
            if complete || !news.is_empty() {
                let complete = complete && rows.len() <= MOST_ROWS;
                link.tell_needs(news, complete);
            }
        }
        Ok(())
    }

    /// Where each of a cluster's rows stands; one that is known as served and lacks nothing still does.
    async fn standings(
        &self,
        rows: &[&NeedView],
        told: &BTreeMap<RowName, ToldRow>,
        pools: &[Pool],
    ) -> Result<Vec<(RowName, NeedStatusRow)>, Stopping> {
        let mut found = Vec::with_capacity(rows.len());
        let mut names = BTreeSet::new();
        let mut rest = &rows[..rows.len().min(MOST_ROWS)];
        while !rest.is_empty() {
            let (page, left) = rest.split_at(rest.len().min(AT_ONCE));
            rest = left;
            let mut wanted: Vec<(NeedKey, Amounts, bool)> = Vec::new();
            for view in page {
                let need = &view.verdict.need;
                let key = need.key();
                let is_served = told
                    .get(&row_name(&key))
                    .is_some_and(|told| told.row.reason == SERVED);
                wanted.push((key, need.row.aggregate.clone(), is_served));
            }
            for (view, progress) in page.iter().zip(self.where_they_stand(wanted).await?) {
                let name = row_name(&view.verdict.need.key());
                // Profiles whose texts collide have one word: that of the first.
                if names.insert(name.clone()) {
                    let row = row(view, &progress, pools);
                    found.push((name, row));
                }
            }
        }
        Ok(found)
    }

    async fn where_they_stand(
        &self,
        mut wanted: Vec<(NeedKey, Amounts, bool)>,
    ) -> Result<Vec<Progress>, Stopping> {
        let mut found = Vec::with_capacity(wanted.len());
        while !wanted.is_empty() {
            let asked = self.hub.ask(move |core| {
                let (mut looked, mut page) = (0, Vec::new());
                for (need, wants, is_served) in &wanted {
                    if needs::MOST_MACHINES <= looked {
                        break;
                    }
                    if *is_served && core.lacking_since(need).is_none() {
                        page.push(Progress {
                            serving: wants.clone(),
                            ..Progress::default()
                        });
                    } else {
                        let (progress, machines) = core.progress(need, wants);
                        page.push(progress);
                        looked += machines;
                    }
                }
                wanted.drain(..page.len());
                (page, wanted)
            });
            let (page, left) = asked.await?;
            found.extend(page);
            wanted = left;
        }
        Ok(found)
    }
}

/// What is to be told of the rows a session has now, and whether that is all there is to know.
fn news(
    told: &mut BTreeMap<RowName, ToldRow>,
    found: Vec<(RowName, NeedStatusRow)>,
    now: Time,
) -> (Vec<NeedStatusRow>, bool) {
    let names: BTreeSet<&RowName> = found.iter().map(|(name, _)| name).collect();
    let is_any_gone = told.keys().any(|name| !names.contains(name));
    let complete = told.is_empty() || is_any_gone;
    if is_any_gone {
        told.retain(|name, _| names.contains(name));
    }
    let mut news = Vec::new();
    for (name, row) in found {
        match told.get_mut(&name) {
            Some(known) if known.is_due(&row, now) => {
                *known = ToldRow { row, at: now };
                news.push(known.row.clone());
            }
            // Named once more, as it was told.
            Some(known) if complete => news.push(known.row.clone()),
            Some(_) => {}
            None => {
                news.push(row.clone());
                told.insert(name, ToldRow { row, at: now });
            }
        }
    }
    (news, complete)
}

fn row_name(need: &NeedKey) -> RowName {
    let group = need.group.as_str().to_owned();
    (need.fingerprint.as_str().to_owned(), group)
}

fn row(view: &NeedView, progress: &Progress, pools: &[Pool]) -> NeedStatusRow {
    let key = view.verdict.need.key();
    let (fingerprint, group) = row_name(&key);
    let reason = needs::reason(view, pools);
    let mut sentence = shortfall_text::status_without_ages(view, progress, reason);
    if MOST_SENTENCE < sentence.len() {
        let end = sentence.floor_char_boundary(MOST_SENTENCE - '…'.len_utf8());
        sentence.truncate(end);
        sentence.push('…');
    }
    NeedStatusRow {
        profile_fingerprint: fingerprint,
        group,
        serving: Some((&progress.serving).into()),
        coming: Some((&progress.coming).into()),
        stuck: Some((&progress.stuck).into()),
        missing: Some((&progress.missing).into()),
        reason: word(progress, reason).to_owned(),
        sentence,
    }
}

/// Why a row is not served, in one word that a condition can have for its reason.
fn word(progress: &Progress, reason: UnmetReason) -> &'static str {
    if progress.is_served() {
        return SERVED;
    }
    if progress.missing.is_zero() {
        return if progress.stuck.is_zero() {
            "Coming"
        } else {
            "Stuck"
        };
    }
    match reason {
        UnmetReason::Unspecified if progress.held_back.is_some() => "ActuationPaused",
        // Machines for it are chosen, and none has begun yet.
        UnmetReason::Unspecified => "Coming",
        UnmetReason::PriorityStarved => "PriorityStarved",
        UnmetReason::NoMatchingSupply => "NoMatchingSupply",
        UnmetReason::TopologyUnsatisfiable => "TopologyUnsatisfiable",
        UnmetReason::PreemptionExhausted => "PreemptionExhausted",
        UnmetReason::SpreadUnsatisfiable => "SpreadUnsatisfiable",
        UnmetReason::NoOperatorSession => "NoOperatorSession",
        UnmetReason::ProviderBackoff => "ProviderBackoff",
        UnmetReason::ActuationPaused => "ActuationPaused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::core;

    fn at(seconds: i64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    fn rows_of(fleet: &str) -> Vec<NeedStatusRow> {
        let core = core(fleet);
        let decided = core.decided().unwrap();
        let row = |view: &NeedView| {
            let need = &view.verdict.need;
            let (progress, _) = core.progress(&need.key(), &need.row.aggregate);
            row(view, &progress, &[])
        };
        decided.needs.iter().map(row).collect()
    }

    fn status(reason: &str, sentence: &str) -> NeedStatusRow {
        NeedStatusRow {
            reason: reason.to_owned(),
            sentence: sentence.to_owned(),
            ..NeedStatusRow::default()
        }
    }

    fn found(rows: &[(&str, NeedStatusRow)]) -> Vec<(RowName, NeedStatusRow)> {
        let named = |(group, row): &(&str, NeedStatusRow)| {
            let name = (String::new(), (*group).to_owned());
            (name, row.clone())
        };
        rows.iter().map(named).collect()
    }

    #[test]
    fn a_row_says_where_it_stands_and_why_in_a_word_and_a_sentence_without_an_age() {
        let rows = rows_of("m1 Idle cpu=4\nneed a cpu=4 prio=9\nneed a cpu=64 prio=5 min:cpu=64");
        let words: Vec<(&str, &str)> = rows
            .iter()
            .map(|row| (row.reason.as_str(), row.sentence.as_str()))
            .collect();
        assert_eq!(
            words,
            [
                (
                    "Coming",
                    "coming cpu=4: 1 machine, Configure: on its way to the disk"
                ),
                (
                    "NoMatchingSupply",
                    "missing cpu=64: no machine that works, not even one that could be bought, meets its requirements \
                     and smallest size"
                ),
            ]
        );
    }

    #[test]
    fn a_row_is_told_once_and_again_when_its_word_changes_but_not_at_once() {
        let mut told = BTreeMap::new();
        let mut say = |row: NeedStatusRow, now: i64| {
            let (news, complete) = news(&mut told, found(&[("g", row)]), at(now));
            let words: Vec<String> = news.into_iter().map(|row| row.reason).collect();
            (words.join(" "), complete)
        };
        let nothing = (String::new(), false);
        assert_eq!(say(status("Coming", "one"), 0), ("Coming".to_owned(), true));
        assert_eq!(
            say(status("Coming", "one"), 600),
            nothing,
            "the same for ever"
        );
        assert_eq!(
            say(status("Coming", "two"), 600),
            ("Coming".to_owned(), false)
        );
        assert_eq!(say(status("Stuck", "two"), 609), nothing, "within 10 s");
        assert_eq!(
            say(status("Stuck", "two"), 610),
            ("Stuck".to_owned(), false)
        );
        assert_eq!(
            say(status("Stuck", "three"), 669),
            nothing,
            "only its sentence, within 60 s"
        );
        assert_eq!(
            say(status("Stuck", "three"), 670),
            ("Stuck".to_owned(), false)
        );
    }

    #[test]
    fn an_amount_that_becomes_zero_is_news_like_a_word() {
        let coming = Some(
            (&bigfleet_model::Amounts::from_entries([(
                bigfleet_model::Dimension::new("cpu").unwrap(),
                4000,
            )]))
                .into(),
        );
        let some = NeedStatusRow {
            coming,
            ..status("PriorityStarved", "")
        };
        let known = ToldRow {
            row: some,
            at: at(0),
        };
        assert!(known.is_due(&status("PriorityStarved", ""), at(10)));
    }

    #[test]
    fn once_a_row_is_gone_all_others_are_named() {
        let mut told = BTreeMap::new();
        let two = found(&[("g", status("Coming", "")), ("h", status("Served", ""))]);
        assert_eq!(news(&mut told, two, at(0)).0.len(), 2);
        let one = found(&[("h", status("Stuck", ""))]);
        let (rows, complete) = news(&mut told, one, at(1));
        assert_eq!(
            (rows, complete),
            (vec![status("Served", "")], true),
            "as it was told"
        );
        assert_eq!(news(&mut told, Vec::new(), at(2)), (Vec::new(), true));
    }
}
