//! `assign`, `unassign`, `move`, `remove` and `raft`: who has which part of the fleet, and who decides it.

use crate::{
    connection::{ConnectionArgs, CoordinatorArgs, confirm, print},
    failure::Failure,
    output::FormArgs,
};
use bigfleet_ctl::{
    Answer, ChangesRefused, CoordinatorClient, CtlError, DomainChanges, SteeredCoordinator,
};
use clap::{Args as ClapArgs, Subcommand};
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// More than this is no list of domains.
const MOST_FILE_BYTES: u64 = 16 << 20;

/// Whether to do it or only to say what would be done, and how to say it.
#[derive(Debug, ClapArgs)]
pub(crate) struct SteerArgs {
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl SteerArgs {
    /// Finds the replica that leads, asks wherever somebody is there to answer, does the work, and says where.
    pub(crate) fn steer(
        &self,
        question: impl AsyncFnOnce(&CoordinatorClient) -> Result<String, CtlError>,
        work: impl AsyncFnOnce(&CoordinatorClient) -> Result<Answer, CtlError>,
    ) -> Result<(), Failure> {
        let answer = self.connection.with_coordinator(
            &self.coordinator,
            async |client: CoordinatorClient| {
                let steered = SteeredCoordinator::ask(&client).await?;
                if !self.yes && !self.dry_run {
                    let question = question(&client).await?;
                    confirm(&format!("{question} on {steered}?"), "say --yes")?;
                }
                let answer = work(&client).await?;
                Ok(steered.sign(answer, self.dry_run, &self.form.output)?)
            },
        )?;
        print(answer)
    }

    /// Whether nothing is to be changed.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    fn change(&self, question: String, changes: &DomainChanges) -> Result<(), Failure> {
        self.steer(
            async |_| Ok(question),
            async |client| bigfleet_ctl::change_domains(client, changes, self.dry_run).await,
        )
    }
}

/// Which domain goes to which shard.
#[derive(Debug, ClapArgs)]
struct AssignmentArgs {
    /// The domain: all machines with this value of this label
    #[arg(value_name = "KEY=VALUE", required_unless_present = "file")]
    domain: Option<String>,
    /// The shard, as `bigfleet get shards` shows it
    #[arg(required_unless_present = "file")]
    shard: Option<String>,
    /// Many at once, a line each, KEY=VALUE SHARD; - for stdin
    #[arg(short, long, conflicts_with_all = ["domain", "shard"], default_value = None)]
    file: Option<PathBuf>,
    #[command(flatten)]
    steer: SteerArgs,
}

fn wrong(refused: &ChangesRefused) -> Failure {
    Failure::Input(refused.to_string())
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    match path.to_str() {
        Some("-") => std::io::stdin()
            .lock()
            .take(MOST_FILE_BYTES)
            .read_to_string(&mut text)?,
        _ => File::open(path)?
            .take(MOST_FILE_BYTES)
            .read_to_string(&mut text)?,
    };
    Ok(text)
}

impl AssignmentArgs {
    fn run(&self, verb: &str, is_move: bool) -> Result<(), Failure> {
        if let Some(path) = &self.file {
            let unreadable = |why| Failure::Input(format!("{}: {why}", path.display()));
            let text = text_of(path).map_err(unreadable)?;
            let changes = DomainChanges::read(&text, is_move)
                .map_err(|why| Failure::Input(format!("{}: {why}", path.display())))?;
            let question = format!("{verb} {} domains", changes.count());
            return self.steer.change(question, &changes);
        }
        let domain = self.domain.as_deref().unwrap_or_default();
        let shard = self.shard.as_deref().unwrap_or_default();
        let changes = DomainChanges::one(domain, shard, is_move).map_err(|why| wrong(&why))?;
        let question = format!("{verb} {domain} to {shard}");
        self.steer.change(question, &changes)
    }
}

/// `bigfleet assign`.
#[derive(Debug, ClapArgs)]
pub(crate) struct AssignArgs {
    #[command(subcommand)]
    what: Assigned,
}

#[derive(Debug, Subcommand)]
enum Assigned {
    /// Give a domain that is nobody's to a shard.
    Domain(AssignmentArgs),
}

/// Gives.
pub(crate) fn assign(args: &AssignArgs) -> Result<(), Failure> {
    let Assigned::Domain(args) = &args.what;
    args.run("assign", false)
}

/// `bigfleet move`.
#[derive(Debug, ClapArgs)]
pub(crate) struct MoveArgs {
    #[command(subcommand)]
    what: Moved,
}

#[derive(Debug, Subcommand)]
enum Moved {
    /// Give a domain of one shard to another; it gets it when the first has let go.
    Domain(AssignmentArgs),
}

/// Gives what is another's.
pub(crate) fn moved(args: &MoveArgs) -> Result<(), Failure> {
    let Moved::Domain(args) = &args.what;
    args.run("move", true)
}

/// `bigfleet unassign`.
#[derive(Debug, ClapArgs)]
pub(crate) struct UnassignArgs {
    #[command(subcommand)]
    what: Unassigned,
}

#[derive(Debug, Subcommand)]
enum Unassigned {
    /// Take a domain from its shard: it acquires nothing more there, and keeps what serves until that is drained.
    Domain(UnassignDomainArgs),
}

#[derive(Debug, ClapArgs)]
struct UnassignDomainArgs {
    /// The domain: all machines with this value of this label
    #[arg(value_name = "KEY=VALUE")]
    domain: String,
    #[command(flatten)]
    steer: SteerArgs,
}

/// Takes.
pub(crate) fn unassign(args: &UnassignArgs) -> Result<(), Failure> {
    let Unassigned::Domain(args) = &args.what;
    let changes = DomainChanges::one(&args.domain, "", false).map_err(|why| wrong(&why))?;
    let question = format!("unassign {}", args.domain);
    args.steer.change(question, &changes)
}

/// `bigfleet remove`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RemoveArgs {
    #[command(subcommand)]
    what: Removed,
}

#[derive(Debug, Subcommand)]
enum Removed {
    /// Forget a shard: its domains and clusters become nobody's.
    Shard(RemoveShardArgs),
}

#[derive(Debug, ClapArgs)]
struct RemoveShardArgs {
    /// The shard, as `bigfleet get shards` shows it
    shard: String,
    /// No process of it will ever run again: what it has is free at once, and its id is used up
    #[arg(long)]
    gone: bool,
    #[command(flatten)]
    steer: SteerArgs,
}

/// Forgets.
pub(crate) fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    let Removed::Shard(args) = &args.what;
    let (shard, gone, steer) = (&args.shard, args.gone, &args.steer);
    steer.steer(
        async |client| bigfleet_ctl::remove_shard_question(client, shard, gone).await,
        async |client| bigfleet_ctl::remove_shard(client, shard, gone, steer.dry_run).await,
    )
}

/// `bigfleet raft`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RaftArgs {
    #[command(subcommand)]
    what: Raft,
}

#[derive(Debug, Subcommand)]
enum Raft {
    /// Take a replica out of the group; refused if the others could not go on without it.
    RemovePeer(RemovePeerArgs),
    /// Let another replica lead.
    TransferLeader(TransferLeaderArgs),
}

#[derive(Debug, ClapArgs)]
struct RemovePeerArgs {
    /// The replica, as `bigfleet get replicas` shows it
    replica: String,
    #[command(flatten)]
    steer: SteerArgs,
}

#[derive(Debug, ClapArgs)]
struct TransferLeaderArgs {
    /// The replica that shall lead [default: the one that is furthest]
    replica: Option<String>,
    #[command(flatten)]
    steer: SteerArgs,
}

/// Changes the group.
pub(crate) fn raft(args: &RaftArgs) -> Result<(), Failure> {
    match &args.what {
        Raft::RemovePeer(args) => args.steer.steer(
            async |_| Ok(format!("remove replica {}", args.replica)),
            async |client| {
                bigfleet_ctl::remove_replica(client, &args.replica, args.steer.dry_run).await
            },
        ),
        Raft::TransferLeader(args) => args.steer.steer(
            async |_| Ok("let another replica lead".to_owned()),
            async |client| {
                let to = args.replica.as_deref();
                bigfleet_ctl::transfer_leader(client, to, args.steer.dry_run).await
            },
        ),
    }
}
