//! Members: a replica leaves the group for good, or lets another one lead.

use std::collections::BTreeSet;
use std::time::Duration;

use bigfleet_wire::v1alpha1::peer_call::Kind;
use openraft::ChangeMembers;
use tokio::task::JoinSet;

use super::Replica;
use crate::Member;
use crate::consensus::{Consensus, MemberRefused, View};

/// Another leader has this long to appear.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(2);
/// A replica that is there says so within this.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

fn named<'v>(view: &'v View, name: &str) -> Result<&'v (u64, Member, bool), MemberRefused> {
    let mut members = view.members.iter();
    let found = members.find(|(_, member, _)| member.name == name);
    found.ok_or_else(|| MemberRefused::Unknown(name.to_owned()))
}

fn not_now<T>(why: impl Into<String>) -> Result<T, MemberRefused> {
    Err(MemberRefused::NotNow(why.into()))
}

/// Takes the replica of that name out of the group. The voters that are left must have a majority that answers now: else
/// nothing could be agreed on any more, and nobody could undo it.
pub(super) async fn remove(replica: &Replica, name: &str) -> Result<(), MemberRefused> {
    let view = replica.view();
    let (leaving, _, is_voter) = named(&view, name)?;
    if view.leader == Some(*leaving) {
        return not_now(format!(
            "replica {name} leads; let another one lead first, with `bigfleet raft transfer-leader`"
        ));
    }
    if !is_voter {
        let change = ChangeMembers::RemoveNodes(BTreeSet::from([*leaving]));
        return replica.change(change).await.or_else(not_now);
    }
    let left = view.members.iter();
    let left = left.filter(|(one, _, is_voter)| *is_voter && one != leaving);
    let left: Vec<&(u64, Member, bool)> = left.collect();
    let silent = silent(replica, &left).await;
    let needed = left.len() / 2 + 1;
    if left.len() - silent.len() < needed {
        return not_now(format!(
            "of the {} replicas that would be left {needed} must answer, and these do not: {}",
            left.len(),
            silent.join(", ")
        ));
    }
    let voters = left.into_iter().map(|(one, _, _)| *one).collect();
    let change = ChangeMembers::ReplaceAllVoters(voters);
    replica.change(change).await.or_else(not_now)
}

/// The names of those that do not answer.
async fn silent(replica: &Replica, members: &[&(u64, Member, bool)]) -> Vec<String> {
    let mut asked = JoinSet::new();
    let others = members
        .iter()
        .filter(|(one, _, _)| *one != replica.own.directory);
    for (directory, member, _) in others {
        let peer = replica.own.peer(*directory, &member.raft_address);
        let name = member.name.clone();
        asked.spawn(async move {
            let answered = peer.exchange(Kind::Ping, Vec::new(), ANSWERED_WITHIN).await;
            answered.is_err().then_some(name)
        });
    }
    let mut silent: Vec<String> = asked.join_all().await.into_iter().flatten().collect();
    silent.sort();
    silent
}

/// Lets another replica lead.
pub(super) async fn hand_over(
    replica: &Replica,
    to: Option<&str>,
) -> Result<String, MemberRefused> {
    let view = replica.view();
    if !view.is_elected {
        return not_now("this replica does not lead");
    }
    let (directory, member) = successor(&view, to)?;
    if directory == replica.own.directory {
        return Ok(member.name);
    }
    let peer = replica.own.peer(directory, &member.raft_address);
    // Voters refuse a candidate for as long as they have a leader's word that it is alive, which is
    // for the longest election timeout. Nobody stands of himself before that has passed twice.
    let config = replica.raft.runtime_config();
    config.heartbeat(false);
    tokio::time::sleep(replica.pace.election.1).await;
    let asked = peer.exchange(Kind::Handover, Vec::new(), HANDED_OVER_WITHIN);
    let asked = asked.await;
    let led = match &asked {
        Ok(_) => {
            let wait = replica.raft.wait(Some(HANDED_OVER_WITHIN));
            let own = replica.own.directory;
            let another = wait.metrics(
                |now| now.current_leader.is_some_and(|leader| leader != own),
                "another leader",
            );
            another.await.ok().and_then(|now| now.current_leader)
        }
        Err(_) => None,
    };
    // Whoever leads next time shows that it is there, also if it is this one.
    config.heartbeat(true);
    match (asked, led) {
        (Err(why), _) => not_now(format!("replica {} does not answer: {why}", member.name)),
        (Ok(_), None) => not_now(format!(
            "no other leader was seen in {HANDED_OVER_WITHIN:?}"
        )),
        (Ok(_), Some(leader)) => {
            let mut members = view.members.iter();
            let found = members.find(|(one, _, _)| *one == leader);
            Ok(found.map_or(member.name, |(_, one, _)| one.name.clone()))
        }
    }
}

/// The one that was named, or else the voter that lacks least.
fn successor(view: &View, to: Option<&str>) -> Result<(u64, Member), MemberRefused> {
    if let Some(name) = to {
        let (directory, member, is_voter) = named(view, name)?;
        if !is_voter {
            return not_now(format!("replica {name} does not vote yet"));
        }
        return Ok((*directory, member.clone()));
    }
    let voters = view.members.iter().filter(|(_, _, is_voter)| *is_voter);
    let others = voters.filter_map(|(directory, member, _)| {
        let (_, lag) = view.lags.iter().find(|(one, _)| one == directory)?;
        Some((*lag, *directory, member))
    });
    let furthest = others.min_by_key(|(lag, directory, _)| (*lag, *directory));
    match furthest {
        Some((_, directory, member)) => Ok((directory, member.clone())),
        None => not_now("there is no other replica that votes"),
    }
}
