//! `snapshot` and `finish-restore`: backups of the coordinator, made, looked at, and put back.

use crate::{
    connection::{ConnectionArgs, CoordinatorArgs, confirm, print},
    failure::Failure,
    output::FormArgs,
    ownership::SteerArgs,
};
use bigfleet_coordinator::{
    Archive, ArchiveWriter, Member, RestoreSettings, Restored, USUAL_TERM_BUMP, restore,
};
use bigfleet_ctl::{Answer, CtlError, SnapshotPiece, answer_of};
use bigfleet_net::chain;
use clap::{Args as ClapArgs, Subcommand};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// `bigfleet snapshot`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Save what the coordinator knows into a file.
    Save(SaveArgs),
    /// Say what is in a backup; needs no coordinator.
    Inspect(InspectArgs),
    /// Check that a backup can be restored; needs no coordinator.
    Verify(VerifyArgs),
    /// Make the data directory of one replica from a backup, while the coordinator is stopped. The last resort: with a majority of the
    /// replicas left, start the others with empty directories instead.
    Restore(RestoreArgs),
}

#[derive(Debug, ClapArgs)]
struct SaveArgs {
    /// The file; one that is there is replaced once the new one is known to be whole
    file: PathBuf,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, ClapArgs)]
struct InspectArgs {
    /// A file of `bigfleet snapshot save`, or a folder of --snapshot-export-dir such as its `latest`
    backup: PathBuf,
    #[command(flatten)]
    form: FormArgs,
}

#[derive(Debug, ClapArgs)]
struct VerifyArgs {
    /// A file of `bigfleet snapshot save`, or a folder of --snapshot-export-dir such as its `latest`
    backup: PathBuf,
}

#[derive(Debug, ClapArgs)]
struct RestoreArgs {
    /// A file of `bigfleet snapshot save`, or a folder of --snapshot-export-dir such as its `latest`
    backup: PathBuf,
    /// The data directory of the replica that is started first; what is in it is kept beside
    #[arg(long)]
    data_dir: PathBuf,
    /// The id of that replica, as `bigfleet coordinator --id` will have it
    #[arg(long)]
    id: String,
    /// The address at which other replicas will reach it [default: it says so when it is started]
    #[arg(long, default_value = "", hide_default_value = true)]
    raft_advertise: String,
    /// How far the reign is raised; more than there can have been leaders since the backup
    #[arg(long, default_value_t = USUAL_TERM_BUMP)]
    term_bump: u64,
    /// Only check, and say what would happen
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// A backup, as it is shown.
#[derive(Debug, Serialize)]
struct BackupRecord {
    index: u64,
    term: u64,
    written_by: bigfleet_coordinator::WrittenBy,
    /// The group; absent in a backup of the reference.
    cluster: Option<String>,
    restores: u64,
    reign: u64,
    /// It was made between a restore and its end.
    restored: bool,
    shards: usize,
    gone: usize,
    clusters: usize,
    domains: usize,
    machines: usize,
    transfers: usize,
    sha256: String,
}

impl BackupRecord {
    fn of(archive: &Archive) -> Self {
        let rows = &archive.rows;
        Self {
            index: archive.index,
            term: archive.term,
            written_by: archive.written_by,
            cluster: rows.cluster.clone(),
            restores: rows.generation,
            reign: rows.reign,
            restored: rows.restored,
            shards: rows.shards.len(),
            gone: rows.gone.len(),
            clusters: rows.clusters.len(),
            domains: rows.domains.len(),
            machines: rows.machines.len(),
            transfers: rows.transfers.len(),
            sha256: archive.sha256.clone(),
        }
    }

    fn page(&self) -> String {
        let by = match self.written_by {
            bigfleet_coordinator::WrittenBy::Bigfleet => "bigfleet",
            bigfleet_coordinator::WrittenBy::Reference => "the reference coordinator",
        };
        let group = self.cluster.as_deref().unwrap_or("none");
        let until = if self.restored { ", not finished" } else { "" };
        let lines = [
            ("Written by", by.to_owned()),
            ("Group", group.to_owned()),
            ("Restores", format!("{}{until}", self.restores)),
            ("Reign", self.reign.to_string()),
            ("Index", self.index.to_string()),
            ("Term", self.term.to_string()),
            ("Shards", self.shards.to_string()),
            ("Gone shards", self.gone.to_string()),
            ("Clusters", self.clusters.to_string()),
            ("Domains", self.domains.to_string()),
            ("Moved machines", self.machines.to_string()),
            ("Transfers", self.transfers.to_string()),
            ("SHA-256", self.sha256.clone()),
        ];
        let line = |(name, value): (&str, String)| format!("{:<16}{value}\n", format!("{name}:"));
        lines.into_iter().map(line).collect()
    }
}

/// Saves, looks, checks or restores.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Save(args) => args.save(),
        What::Inspect(args) => {
            let record = BackupRecord::of(&opened(&args.backup)?);
            print(answer_of(&record, record.page(), &args.form.output)?)
        }
        What::Verify(args) => {
            let archive = opened(&args.backup)?;
            let (index, term) = (archive.index, archive.term);
            let text = format!(
                "{} is whole: index={index} term={term}\n",
                args.backup.display()
            );
            print(Answer::of(text))
        }
        What::Restore(args) => args.restore(),
    }
}

fn opened(backup: &Path) -> Result<Archive, Failure> {
    Archive::open(backup)
        .map_err(|why| Failure::Undone(format!("{}: {}", backup.display(), chain(&why))))
}

impl SaveArgs {
    fn save(&self) -> Result<(), Failure> {
        let file = &self.file;
        let unwritten = |why| format!("{}: {}", file.display(), chain(&why));
        let archive = self.connection.with_coordinator(
            &self.coordinator,
            async |client: bigfleet_ctl::CoordinatorClient| {
                let mut writer: Option<ArchiveWriter> = None;
                let take = |piece| match (piece, &mut writer) {
                    (SnapshotPiece::Meta(meta), _) => {
                        writer = Some(ArchiveWriter::begin(file, &meta).map_err(unwritten)?);
                        Ok(())
                    }
                    (SnapshotPiece::Data(data), Some(writer)) => {
                        writer.data(&data).map_err(unwritten)
                    }
                    (SnapshotPiece::Data(_), None) => {
                        Err("bytes came before their head".to_owned())
                    }
                };
                client.snapshot(take).await?;
                let nothing = || CtlError::Local("nothing came".to_owned());
                let finished = writer.ok_or_else(nothing)?.finish();
                Ok(finished.map_err(|why| CtlError::Local(unwritten(why)))?)
            },
        )?;
        let record = BackupRecord::of(&archive);
        let (index, term) = (archive.index, archive.term);
        let text = format!(
            "saved snapshot index={index} term={term} to {}\n",
            file.display()
        );
        print(answer_of(&record, text, &self.form.output)?)
    }
}

impl RestoreArgs {
    fn restore(&self) -> Result<(), Failure> {
        if !bigfleet_wire::is_portable_id(&self.id) {
            let why = "--id has to be letters, digits, '.', '_' and '-'";
            return Err(Failure::Input(why.to_owned()));
        }
        let archive = opened(&self.backup)?;
        let settings = RestoreSettings {
            data_dir: self.data_dir.clone(),
            member: Member {
                name: self.id.clone(),
                raft_address: self.raft_advertise.clone(),
                grpc_address: String::new(),
            },
            term_bump: self.term_bump,
        };
        let undone = |why: bigfleet_coordinator::RestoreRefused| Failure::Undone(chain(&why));
        let planned = restore(&archive, &settings, true).map_err(undone)?;
        if self.dry_run {
            return print(self.said("would restore", &archive, &planned));
        }
        if !self.yes {
            let (backup, folder) = (self.backup.display(), self.data_dir.display());
            confirm(&format!("restore {backup} into {folder}?"), "say --yes")?;
        }
        let done = restore(&archive, &settings, false).map_err(undone)?;
        print(self.said("restored", &archive, &done))
    }

    fn said(&self, verb: &str, archive: &Archive, restored: &Restored) -> Answer {
        let (index, term) = (archive.index, archive.term);
        let mut answer = Answer::of(format!(
            "{verb} snapshot index={index} term={term} into {} as single-voter {}\n",
            self.data_dir.display(),
            self.id
        ));
        if let Some(moved) = &restored.moved {
            let note = format!("what was there before is in {}", moved.display());
            answer.notes.push(note);
        }
        let (group, generation) = (&restored.cluster, restored.generation);
        answer.notes.push(format!(
            "group {group}, restore {generation}, reign {} and up",
            restored.reign
        ));
        answer.notes.push(
            "start this replica first; empty the data directories of the others before they start; \
             then `bigfleet finish-restore`"
                .to_owned(),
        );
        answer
    }
}

/// `bigfleet finish-restore`.
#[derive(Debug, ClapArgs)]
pub(crate) struct FinishArgs {
    #[command(flatten)]
    steer: SteerArgs,
}

/// Ends a restore.
pub(crate) fn finish(args: &FinishArgs) -> Result<(), Failure> {
    let dry_run = args.steer.is_dry_run();
    args.steer.steer(
        async |_| Ok("finish the restore".to_owned()),
        async |client| {
            client.finish_restore(dry_run).await?;
            Ok(Answer::of(if dry_run {
                "would finish the restore: every shard was heard\n".to_owned()
            } else {
                "the restore is finished: every shard was heard, and domains are handed out again\n"
                    .to_owned()
            }))
        },
    )
}
