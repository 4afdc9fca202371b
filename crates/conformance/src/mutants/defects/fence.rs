//! The fence: tokens that pass and should not, and the other way round.

use tonic::{Code, Status};

use super::Plant::{Ack, Asked, Got};
use super::{Answer, Defect, Shown, code};
use crate::mutants::proxy::{Ask, Kind, Memory};

pub(super) static ALL: &[Defect] = &[
    defect!(
        "fence-is-open",
        "accepts every token",
        ["FENCE-03"],
        Asked(open_fence)
    ),
    defect!(
        "fence-lets-equal-pass",
        "accepts a token twice",
        ["FENCE-03"],
        Asked(equal_passes)
    ),
    defect!(
        "fence-forgets-epochs",
        "compares sequences alone",
        ["FENCE-09"],
        Asked(no_epochs)
    ),
    defect!(
        "fence-per-shard",
        "keeps one mark for all machines of a shard",
        ["FENCE-02"],
        Asked(per_shard)
    ),
    defect!(
        "fence-per-machine",
        "keeps one mark for all shards",
        ["FENCE-02"],
        Asked(per_machine)
    ),
    defect!(
        "fence-after-existence",
        "says NOT_FOUND to a stale token",
        ["FENCE-01"],
        Asked(after_existence)
    ),
    defect!(
        "fence-after-replay",
        "replays for a stale token",
        ["FENCE-05", "FENCE-06"],
        Asked(after_replay)
    ),
    defect!(
        "refused-call-leaves-no-mark",
        "forgets the token of a refused call",
        ["FENCE-10"],
        Asked(no_mark_if_refused)
    ),
    defect!(
        "fenced-out-shard-moves-the-mark",
        "takes a stale token as the new mark",
        ["FENCE-03"],
        Asked(mark_moves_back)
    ),
    defect!(
        "fence-wraps-around",
        "has no room for the largest token",
        ["ERR-10"],
        Asked(wraps)
    ),
    defect!(
        "fence-refuses-negative",
        "fences negative tokens of a new shard",
        ["ERR-09"],
        Asked(refuses_negative)
    ),
    defect!(
        "fence-wants-a-token",
        "fences calls without a token",
        ["FENCE-07"],
        Asked(wants_token)
    ),
    defect!(
        "fenced-is-aborted",
        "answers ABORTED where the fence has a code",
        ["FENCE-03"],
        Ack(fenced_is_aborted)
    ),
    defect!(
        "reads-are-fenced",
        "hides a machine from a fenced-out shard",
        ["FENCE-04"],
        Ack(notes_fenced),
        Got(hides_fenced)
    ),
];

fn notes_fenced(ask: &Ask, answer: Answer, memory: &mut Memory) -> Answer {
    if code(&answer) == Code::FailedPrecondition {
        memory.names.insert(ask.machine.clone(), String::new());
    }
    answer
}

fn hides_fenced(id: &str, answer: Shown, memory: &mut Memory) -> Shown {
    if memory.names.contains_key(id) {
        return Err(Status::failed_precondition("fenced"));
    }
    answer
}

fn open_fence(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    ask.without_token();
    None
}

/// The name of a pair of shard and machine.
fn pair(ask: &Ask) -> String {
    format!("{}|{}", ask.shard, ask.machine)
}

fn equal_passes(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    let (key, token) = (pair(ask), ask.token());
    if memory.marks.get(&key) == Some(&token) {
        ask.without_token();
    } else if memory.marks.get(&key).is_none_or(|mark| *mark < token) {
        memory.marks.insert(key, token);
    }
    None
}

fn no_epochs(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    if !ask.shard.is_empty() {
        ask.epoch = 1;
    }
    None
}

/// Fences with a mark of our own under this name.
fn fenced_by(key: String, ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    if ask.shard.is_empty() {
        return None;
    }
    let token = ask.token();
    if memory.marks.get(&key).is_some_and(|mark| token <= *mark) {
        return Some(Status::failed_precondition("fenced"));
    }
    memory.marks.insert(key, token);
    ask.without_token();
    None
}

fn per_shard(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    fenced_by(ask.shard.clone(), ask, memory)
}

fn per_machine(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    fenced_by(ask.machine.clone(), ask, memory)
}

fn after_existence(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    if ask.before.is_none() {
        ask.without_token();
    }
    None
}

fn after_replay(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    // A Create or Drain of a machine that is where it leads is a retry, and so is a Configure.
    if ask.kind != Kind::Create && ask.is_at(ask.kind.target()) {
        ask.without_token();
    }
    None
}

fn no_mark_if_refused(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    if !ask.is_at(ask.kind.source()) && !ask.is_at(ask.kind.target()) {
        ask.without_token();
    }
    None
}

fn mark_moves_back(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    if ask.shard.is_empty() {
        return None;
    }
    let (key, token) = (pair(ask), ask.token());
    let stale = memory.marks.get(&key).is_some_and(|mark| token <= *mark);
    memory.marks.insert(key, token);
    ask.without_token();
    stale.then(|| Status::failed_precondition("fenced"))
}

fn wraps(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    if ask.epoch == i64::MAX {
        ask.without_token();
    }
    None
}

fn refuses_negative(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    (ask.epoch < 0 || ask.sequence < 0).then(|| Status::failed_precondition("negative"))
}

fn wants_token(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    let again = memory
        .names
        .insert(ask.machine.clone(), String::new())
        .is_some();
    let replayed = again && ask.kind == Kind::Create;
    (ask.shard.is_empty() && replayed).then(|| Status::failed_precondition("no token"))
}

fn fenced_is_aborted(_: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    match code(&answer) {
        Code::FailedPrecondition => Err(Status::aborted("fenced")),
        _ => answer,
    }
}
