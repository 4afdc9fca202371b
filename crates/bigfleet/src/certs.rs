//! `bigfleet certs`: an authority in a directory, and certificates it signs.

use crate::{failure::Failure, output::say};
use bigfleet_ctl::when::rfc3339;
use bigfleet_net::certs::{Authority, CertsRefused, Role, Validity, Wanted};
use clap::{Args as ClapArgs, Subcommand};
use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// `bigfleet certs`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make an authority in a new directory
    Init(InitArgs),
    /// Make a certificate, and print the flags that use it
    Issue(IssueArgs),
}

#[derive(Debug, ClapArgs)]
struct InitArgs {
    /// The directory of the authority
    #[arg(long, default_value = "./certs")]
    dir: PathBuf,
    /// The name of the authority, for people
    #[arg(long, default_value = "bigfleet")]
    name: String,
    /// How many days it is good for
    #[arg(long, default_value_t = 3650)]
    days: u32,
}

#[derive(Debug, ClapArgs)]
struct IssueArgs {
    /// What it is for
    #[arg(value_enum)]
    role: Role,
    /// Whose it is: the id of the shard or of the cluster, or a name for people
    name: String,
    /// A DNS name or address at which others dial it, besides localhost; may be repeated
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// The directory of the authority
    #[arg(long, default_value = "./certs")]
    dir: PathBuf,
    /// Where to write cert.pem, key.pem and ca.pem [default: ROLE/NAME in the directory of the authority]
    #[arg(long)]
    out: Option<PathBuf>,
    /// How many days it is good for
    #[arg(long, default_value_t = 365)]
    days: u32,
}

/// Makes what was asked for. What exists of an authority is never overwritten; a certificate is, which renews it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Init(args) => init(args).map_err(undone),
        What::Issue(args) => {
            let (note, flags) = issue(args).map_err(undone)?;
            eprintln!("{note}");
            say(&flags)
        }
    }
}

fn undone(refused: CertsRefused) -> Failure {
    let text = format!("bigfleet certs: {}", bigfleet_net::chain(&refused));
    match refused {
        CertsRefused::Name(_) | CertsRefused::Made { .. } => Failure::Input(text),
        CertsRefused::Exists(_) | CertsRefused::NoAuthority(_) | CertsRefused::Io { .. } => {
            Failure::Undone(text)
        }
    }
}

fn init(args: &InitArgs) -> Result<(), CertsRefused> {
    let authority = Authority::new(&args.name, lasting(args.days))?;
    authority.save(&args.dir)?;
    let (dir, until) = (args.dir.display(), until(args.days));
    eprintln!("{dir}: an authority, good until {until}; keep {dir}/ca-key.pem to yourself");
    Ok(())
}

/// What it is, for people, and the flags, for the shell.
fn issue(args: &IssueArgs) -> Result<(String, String), CertsRefused> {
    let authority = Authority::open(&args.dir)?;
    let leaf = authority.issue(&Wanted {
        role: args.role,
        name: &args.name,
        hosts: &args.hosts,
        validity: lasting(args.days),
    })?;
    let usual = || args.dir.join(args.role.word()).join(&args.name);
    let folder = args.out.clone().unwrap_or_else(usual);
    let files = leaf.write(&folder, &authority.pem)?;
    let who = match args.role.identity(&args.name) {
        Some(identity) => identity.to_string(),
        None => "a provider".to_owned(),
    };
    let note = format!(
        "{}: {who}, good until {}",
        folder.display(),
        until(args.days)
    );
    let flag = |name: &str, path: &Path| format!("--tls-{name} {}", path.display());
    let flags = [
        flag("cert", &files.cert),
        flag("key", &files.key),
        flag("ca", &files.ca),
    ];
    Ok((note, flags.join(" ") + "\n"))
}

fn now() -> Duration {
    // A host whose clock is before 1970 has certificates that begin then.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn lasting(days: u32) -> Validity {
    Validity::lasting(now(), DAY * days)
}

/// The day, without the time.
fn until(days: u32) -> String {
    let nanos = i64::try_from((now() + DAY * days).as_nanos()).unwrap_or(i64::MAX);
    rfc3339(nanos).chars().take(10).collect()
}
