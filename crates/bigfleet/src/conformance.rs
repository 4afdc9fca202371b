//! `bigfleet conformance`: certifies any provider, from its binary or where it runs.
//!
//! | Exit status | Means |
//! |---|---|
//! | 0 | CERTIFIED |
//! | 1 | FAILED or INCOMPLETE |
//! | 2 | the command line is wrong, or there was nothing to try anything on |

mod folders;
mod mutants;
mod replay;
mod telling;

use crate::{failure::Failure, output::say, table::columns};
use bigfleet_conformance::{
    Behaviour, Binary, Certificate, Options, Profile, Provider, Suite, Verdict, baseline,
    catalogue, run as run_behaviours, summary, write,
};
use bigfleet_net::{TlsFlags, asked_to_end};
use bigfleet_provider_fake::duration;
use clap::{Args as ClapArgs, Subcommand};
use folders::Folders;
use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    time::Duration,
};

pub(crate) use replay::go_flags;

/// What was asked.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// Certify this executable; it is started, killed and started again as the checks need it
    #[arg(long, value_name = "PATH", conflicts_with = "target")]
    binary: Option<PathBuf>,

    /// An argument of the executable, before the flags every provider takes; may be repeated
    #[arg(
        long,
        value_name = "ARG",
        allow_hyphen_values = true,
        requires = "binary"
    )]
    binary_arg: Vec<OsString>,

    /// Certify the provider that runs at this address; it is not killed, so profiles durable and scale
    /// stay untried
    #[arg(long, value_name = "HOST:PORT")]
    target: Option<String>,

    /// The name of the provider in the report and on its hosts [default: that of the executable]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// What it is to be certified for: core, cloud, spot, bare-metal, durable, fault, scale
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "core",
        value_parser = profile
    )]
    profile: Vec<Profile>,

    /// Write report.json, junit.xml, badge.json, report.html and the provider's logs into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// List the behaviours and end
    #[arg(long)]
    list: bool,

    /// Only behaviours with such an id, as in DUR-03 or FENCE-*; may be repeated. Never CERTIFIED
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    filter: Vec<String>,

    /// Count what a provider does without (Delete, cursors, …) as not tried
    #[arg(long)]
    strict_skips: bool,

    /// Leave out the baseline. Never CERTIFIED
    #[arg(long)]
    skip_baseline: bool,

    /// The provider has its fault hooks on without being started with --fault-hooks
    #[arg(long)]
    fault_hooks: bool,

    /// The seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1, alias = "seed")]
    rng_seed: u64,

    /// How many machines the provider is started with
    #[arg(long, value_name = "N", default_value_t = 256)]
    seed_count: usize,

    /// How many machines it is started with for profile scale
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    scale_seed: usize,

    /// How long profile scale keeps machines busy
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = duration)]
    soak: Duration,

    /// The first of the ports to start the provider on [default: whichever are free]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Certificates, for a target.
    #[command(flatten)]
    tls: TlsFlags,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check that planted defects of a provider are noticed, each by the behaviour it should be noticed by
    Mutants(mutants::MutantsArgs),
}

fn profile(word: &str) -> Result<Profile, String> {
    let all = Profile::ALL.map(Profile::word).join(", ");
    Profile::from_word(word.trim()).ok_or_else(|| format!("it is none of {all}"))
}

/// Certifies, writes, and says the verdict.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(What::Mutants(args)) = &args.what {
        return mutants::run(args);
    }
    if args.list {
        return say(&list(args));
    }
    let provider = provider(args)?;
    known(&args.filter)?;
    let folders = Folders::new(args.out.as_deref())?;
    let mut options = Options::new(provider, &label(args), folders.scratch());
    options.logs = folders.logs();
    options.profiles = args.profile.clone();
    options.filter = args.filter.clone();
    options.skip_baseline = args.skip_baseline;
    options.fault_hooks = args.fault_hooks;
    options.seeds = args.seed_count;
    options.scale_seeds = args.scale_seed;
    options.soak = args.soak;
    options.rng_seed = args.rng_seed;
    let certificate = Certificate {
        provider: options.label.clone(),
        profiles: options.profiles.clone(),
        rng_seed: options.rng_seed,
        strict_skips: args.strict_skips,
        command: replay::command(args),
        reports: tried(&options)?,
    };
    if let Some(out) = &args.out {
        write(&certificate, out).map_err(|why| folders::refused(out, &why))?;
    }
    say(&summary(&certificate))?;
    match certificate.verdict() {
        Verdict::Certified => Ok(()),
        verdict => {
            let name = &certificate.provider;
            Err(Failure::Undone(format!(
                "{name} is not certified: {verdict}"
            )))
        }
    }
}

/// Runs the behaviours until all are done or the process is asked to end; either way no provider of
/// ours is left running.
fn tried(options: &Options) -> Result<Vec<bigfleet_conformance::Report>, Failure> {
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(why.to_string());
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    runtime.block_on(async {
        let asked = asked_to_end().map_err(|why| undone(&why))?;
        let mut told = telling::Telling::new();
        let behaviours = run_behaviours(options, |progress| told.tell(progress));
        let reports = tokio::select! {
            reports = behaviours => reports.map_err(|why| Failure::Input(why.to_string())),
            () = asked => Err(Failure::Undone("asked to end before the run was over".to_owned())),
        };
        told.finish();
        reports
    })
}

fn provider(args: &Args) -> Result<Provider, Failure> {
    let tls = args.tls.files().and_then(|files| {
        let files = files.map(bigfleet_net::Tls::load);
        files.transpose()
    });
    let tls = tls.map_err(|why| Failure::Input(bigfleet_net::chain(&why)))?;
    match (&args.binary, &args.target) {
        (Some(program), _) if tls.is_none() => Ok(Provider::Binary(Binary {
            program: program.clone(),
            args: args.binary_arg.clone(),
            first_port: args.port,
        })),
        (Some(_), _) => Err(Failure::Input(
            "the certificates are for --target; a binary is started without TLS".to_owned(),
        )),
        (None, Some(addr)) => {
            bigfleet_net::Dial::check(addr).map_err(|why| Failure::Input(why.to_string()))?;
            let addr = addr.clone();
            Ok(Provider::Target { addr, tls })
        }
        (None, None) => Err(Failure::Input(
            "say what to certify: --binary PATH for an executable, or --target HOST:PORT for one that runs"
                .to_owned(),
        )),
    }
}

fn label(args: &Args) -> String {
    let program = args.binary.as_deref().and_then(|binary| binary.file_name());
    let program = program.map(OsStr::to_string_lossy).map(Into::into);
    let named = args.provider.clone().or(program);
    named.or_else(|| args.target.clone()).unwrap_or_default()
}

/// A pattern that fits nothing is a mistake, not a short run.
fn known(filter: &[String]) -> Result<(), Failure> {
    let all = everything();
    let unknown = filter.iter().find(|glob| {
        let fits = |behaviour: &Behaviour| behaviour.is_named(glob);
        !all.iter().any(fits)
    });
    match unknown {
        None => Ok(()),
        Some(glob) => Err(Failure::Input(format!(
            "--filter {glob}: no behaviour has such an id; `bigfleet conformance --list` shows all"
        ))),
    }
}

fn everything() -> Vec<Behaviour> {
    [baseline(), catalogue()].concat()
}

fn list(args: &Args) -> String {
    let wanted = |behaviour: &Behaviour| {
        args.filter.is_empty() || args.filter.iter().any(|glob| behaviour.is_named(glob))
    };
    let row = |behaviour: Behaviour| {
        let profiles = match behaviour.suite() {
            Suite::Baseline => "baseline".to_owned(),
            Suite::Contract | Suite::Ours => {
                let words = behaviour.profiles().iter().map(|profile| profile.word());
                words.collect::<Vec<_>>().join(",")
            }
        };
        let decides = if behaviour.suite() == Suite::Ours {
            "no"
        } else {
            "yes"
        };
        vec![
            behaviour.id.to_owned(),
            behaviour.reference.to_owned(),
            profiles,
            decides.to_owned(),
            behaviour.title.to_owned(),
        ]
    };
    let rows = everything().into_iter().filter(wanted).map(row);
    columns(
        &["BEHAVIOUR", "REFERENCE", "PROFILES", "DECIDES", "PROMISE"],
        rows,
    )
}
