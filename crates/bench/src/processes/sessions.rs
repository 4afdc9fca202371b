//! Sessions: many operators that say the same again, a few that do not, and the cycles decided meanwhile.
//!
//! ```text
//! each session, every ten seconds: 100 rows ─▶ acknowledged
//! one in fifty: a machine more, and ten seconds later a machine less
//! ```

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::ShardSettings;
use super::demand::{ROWS, of_session};
use super::meter::Meter;
use super::operators::{Operator, Operators};
use super::report::{NotMeasured, SessionsReport};
use super::scene::{FAST_LISTS, Folder};
use super::walk::configured;
use crate::Progress;
use crate::percentiles::{Percentiles, rounded};

/// One session in so many changes its demand with every roll-up.
const ONE_CHANGES_IN: usize = 50;

pub(crate) async fn run(
    settings: &ShardSettings,
    progress: Progress<'_>,
) -> Result<SessionsReport, NotMeasured> {
    let (machines, sessions) = (settings.machines, settings.sessions);
    // A tenth is left for those that grow.
    let of_each = machines * 9 / 10 / sessions;
    if of_each < 2 {
        let problem = format!("{machines} machines are too few for {sessions} sessions");
        return Err(NotMeasured::Wrong(problem));
    }
    let folder = Folder::new(&settings.folder, "sessions")?;
    let provider = folder.provider(&settings.program, machines).await?;
    let shard = folder.shard(&settings.program, &provider, &FAST_LISTS);
    let mut shard = shard.await?;
    shard.ready().await?;
    let operators = Operators::connect(shard.addr, sessions, |so_far| {
        progress("connecting", so_far, sessions);
    })
    .await?;
    for operator in &operators.each {
        let demand = of_session(operator.number, of_each, false);
        operator.roll_up(demand).await;
    }
    let bound = of_each * sessions;
    configured(&operators, &mut shard, bound, |so_far| {
        progress("binding", so_far, bound);
    })
    .await?;

    let told = &operators.told;
    let mut accepted = told.accepted.subscribe();
    let before = *accepted
        .wait_for(|count| sessions <= *count)
        .await
        .map_err(gone)?;
    let _ = (shard.timings(), told.take_ack_ms()); // of the walk there
    let meters = [shard.pid(), provider.pid(), std::process::id()].map(Meter::start);
    let began = Instant::now();
    let mut rounds = JoinSet::new();
    for operator in &operators.each {
        let offset = settings.every * operator.number as u32 / sessions as u32;
        let until = began + settings.watched;
        rounds.spawn(round(
            operator.clone(),
            of_each,
            (began + offset, until),
            settings.every,
        ));
    }
    let seconds = settings.watched.as_secs() as usize;
    let mut look = tokio::time::interval(Duration::from_secs(1));
    let (mut rollups, mut changed) = (0, 0);
    loop {
        tokio::select! {
            ended = rounds.join_next() => match ended {
                Some(Ok((sent, of_those))) => {
                    rollups += sent;
                    changed += of_those;
                }
                Some(Err(why)) => return Err(NotMeasured::Wrong(why.to_string())),
                None => break,
            },
            _ = look.tick() => {
                shard.is_alive()?;
                progress("watching", began.elapsed().as_secs() as usize, seconds);
            }
        }
    }
    let all = accepted.wait_for(|count| before + rollups <= *count);
    // A shard that is too slow to answer is a result too: the report says how many it did.
    drop(tokio::time::timeout(settings.every, all).await);
    let took = began.elapsed();
    let [shard_cost, provider_cost, operators_cost] = meters.map(|meter| meter.read());
    let refused = told.refused.load(Ordering::Relaxed);
    if 0 < refused {
        return Err(shard.failed(&format!("{refused} roll-ups were held or rejected")));
    }
    Ok(SessionsReport {
        machines,
        configured: bound,
        sessions,
        held: sessions - told.ended.load(Ordering::Relaxed),
        rows_per_rollup: ROWS,
        every_seconds: settings.every.as_secs_f64(),
        seconds: rounded(took.as_secs_f64()),
        rollups,
        changed,
        accepted: *told.accepted.borrow() - before,
        ack_ms: Percentiles::of_numbers(told.take_ack_ms()),
        shard: shard_cost,
        provider: provider_cost,
        operators: operators_cost,
        timings: shard.timings(),
    })
}

fn gone(why: tokio::sync::watch::error::RecvError) -> NotMeasured {
    NotMeasured::Wrong(why.to_string())
}

/// One session's roll-ups until the end: how many, and how many of them said something new.
async fn round(
    operator: Operator,
    machines: usize,
    (first, until): (Instant, Instant),
    every: Duration,
) -> (usize, usize) {
    let changes = operator.number.is_multiple_of(ONE_CHANGES_IN);
    let (mut sent, mut has_grown) = (0, false);
    let mut due = first;
    while due < until {
        tokio::time::sleep_until(due).await;
        has_grown ^= changes;
        let demand = of_session(operator.number, machines, has_grown);
        operator.roll_up(demand).await;
        sent += 1;
        due += every;
    }
    (sent, if changes { sent } else { 0 })
}
