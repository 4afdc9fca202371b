//! The runner: boots what each lane needs, runs its behaviours one after another, and reports.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::MachineState as State;
use tonic::Code;

use crate::behaviour::{Behaviour, Capability, Lane, Profile, Suite};
use crate::boot::{BootFailed, Launcher, Provider};
use crate::check::{Unmet, code};
use crate::exchange::Exchange;
use crate::mutants::Defect;
use crate::subject::{CREATE_FAULT, Call, Subject};
use crate::{baseline, catalogue};

/// Slots of the lanes that need few.
const FEW_SLOTS: usize = 64;

/// What to run, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The provider to check.
    pub provider: Provider,
    /// Its name in the report, and on its hosts.
    pub label: String,
    /// For state files; must exist.
    pub scratch: PathBuf,
    /// For what the provider writes; must exist.
    pub logs: PathBuf,
    /// What it is certified for.
    pub profiles: Vec<Profile>,
    /// Only behaviours whose id matches one of these, where `*` stands for any letters; empty for all.
    pub filter: Vec<String>,
    /// Leave out the baseline.
    pub skip_baseline: bool,
    /// The provider has its fault hooks on without being started with `--fault-hooks`.
    pub fault_hooks: bool,
    /// Slots of the core lane.
    pub seeds: usize,
    /// Slots of the scale lane.
    pub scale_seeds: usize,
    /// How long the scale lane churns.
    pub soak: Duration,
    /// Where the properties draw from.
    pub rng_seed: u64,
    /// A promise that is broken on the way, to see that it is noticed.
    pub(crate) defect: Option<&'static Defect>,
}

impl Options {
    /// The usual amounts, for the core profile.
    pub fn new(provider: Provider, label: &str, scratch: PathBuf) -> Self {
        Self {
            provider,
            label: label.to_owned(),
            logs: scratch.clone(),
            scratch,
            profiles: vec![Profile::Core],
            filter: Vec::new(),
            skip_baseline: false,
            fault_hooks: false,
            seeds: 256,
            scale_seeds: 4_000,
            soak: Duration::from_secs(8),
            rng_seed: 1,
            defect: None,
        }
    }

    /// Whether a behaviour is to be tried, and if not, why not.
    fn left_out(&self, behaviour: &Behaviour) -> Option<String> {
        let selected = |profile: &Profile| self.profiles.contains(profile);
        if self.skip_baseline && behaviour.suite() == Suite::Baseline {
            return Some("left out by --skip-baseline".to_owned());
        }
        if !behaviour.profiles().iter().any(selected) {
            let words: Vec<&str> = behaviour.profiles().iter().map(|it| it.word()).collect();
            return Some(format!("profile {} was not asked for", words.join(" or ")));
        }
        let wanted = self.filter.iter().any(|glob| behaviour.is_named(glob));
        (!self.filter.is_empty() && !wanted).then(|| "left out by --filter".to_owned())
    }
}

/// What became of one behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The promise was kept.
    Passed,
    /// The provider does without the capability it needs.
    Lacks(Capability),
    /// It could not be tried, or was not asked for, and why.
    NotTried(String),
    /// It was not kept, and why.
    Failed(String),
}

/// One behaviour, run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The behaviour that was checked.
    pub behaviour: Behaviour,
    /// Whether it was kept.
    pub outcome: Outcome,
    /// How long the check took.
    pub took: Duration,
    /// What was said last, if it was not kept.
    pub exchanges: Vec<Exchange>,
}

/// What a run is about to do, or has done.
#[derive(Debug)]
pub enum Progress<'r> {
    /// This many behaviours will be tried.
    Begins(usize),
    /// One was.
    Did(&'r Report),
}

/// Runs what was asked for: one report for every behaviour there is, the baseline first.
///
/// An error means that there was nothing to try anything on.
pub async fn run(
    options: &Options,
    mut tell: impl FnMut(Progress<'_>),
) -> Result<Vec<Report>, BootFailed> {
    let all = [baseline::ALL.to_vec(), catalogue()].concat();
    let wanted = |behaviour: &&Behaviour| options.left_out(behaviour).is_none();
    tell(Progress::Begins(all.iter().filter(wanted).count()));
    let lanes = Lanes::new(options);
    let mut answered = false;
    if lanes.launcher.is_target() {
        lanes.launcher.attach().await?;
        answered = true;
    }
    let mut reports = Vec::new();
    for lane in Lane::ALL {
        let of_lane: Vec<&Behaviour> = all.iter().filter(|b| b.lane == lane).collect();
        if !of_lane.iter().any(&wanted) {
            reports.extend(of_lane.into_iter().map(|b| untried(*b, options, "")));
            continue;
        }
        let mut subject = match lanes.subject(lane).await {
            Ok(subject) => subject,
            // Without any process there is nothing to report on.
            Err(Unavailable::Boot(failed)) if !answered => return Err(failed),
            Err(why) => {
                for behaviour in of_lane {
                    reports.push(untried(*behaviour, options, &why.to_string()));
                    tell_if_wanted(options, &reports, &mut tell);
                }
                continue;
            }
        };
        answered = true;
        let mut gone: Option<String> = None;
        for behaviour in of_lane {
            let report = match (options.left_out(behaviour), &gone) {
                (Some(_), _) => untried(*behaviour, options, ""),
                (None, Some(why)) => untried(*behaviour, options, why),
                (None, None) => check(&lanes.launcher, &subject, *behaviour).await,
            };
            if matches!(report.outcome, Outcome::Failed(_)) {
                gone = subject.gone().await;
            }
            reports.push(report);
            tell_if_wanted(options, &reports, &mut tell);
        }
    }
    Ok(reports)
}

fn tell_if_wanted(options: &Options, reports: &[Report], tell: &mut impl FnMut(Progress<'_>)) {
    let last = reports.last();
    if let Some(last) = last.filter(|last| options.left_out(&last.behaviour).is_none()) {
        tell(Progress::Did(last));
    }
}

fn untried(behaviour: Behaviour, options: &Options, why: &str) -> Report {
    let left_out = options.left_out(&behaviour);
    Report {
        behaviour,
        outcome: Outcome::NotTried(left_out.unwrap_or_else(|| why.to_owned())),
        took: Duration::ZERO,
        exchanges: Vec::new(),
    }
}

async fn check(launcher: &Launcher, subject: &Subject, behaviour: Behaviour) -> Report {
    let started = Instant::now();
    subject.begin();
    launcher.transcript.take();
    let lacks = behaviour.needs.filter(|needs| !subject.can(*needs));
    let outcome = match lacks {
        Some(missing) => Outcome::Lacks(missing),
        None => match (behaviour.check)(subject).await {
            Ok(()) => Outcome::Passed,
            Err(Unmet::Broken(how)) => Outcome::Failed(how),
            Err(Unmet::NotTried(why)) => Outcome::NotTried(why),
            Err(Unmet::Lacks(missing)) => Outcome::Lacks(missing),
        },
    };
    let exchanges = launcher.transcript.take();
    let failed = matches!(outcome, Outcome::Failed(_));
    Report {
        behaviour,
        outcome,
        took: started.elapsed(),
        exchanges: if failed { exchanges } else { Vec::new() },
    }
}

/// Why a lane has nothing to run against.
#[derive(Debug, thiserror::Error)]
enum Unavailable {
    #[error(transparent)]
    Boot(#[from] BootFailed),
    #[error("{0}")]
    Unsuitable(String),
}

struct Lanes<'o> {
    options: &'o Options,
    launcher: Arc<Launcher>,
}

impl<'o> Lanes<'o> {
    fn new(options: &'o Options) -> Self {
        let (scratch, logs) = (options.scratch.clone(), options.logs.clone());
        let (provider, label) = (options.provider.clone(), options.label.as_str());
        let launcher = Launcher::new(provider, label, scratch, logs, options.defect);
        let launcher = Arc::new(launcher);
        Self { options, launcher }
    }

    async fn subject(&self, lane: Lane) -> Result<Subject, Unavailable> {
        self.launcher.transcript.begin_lane();
        let mut subject = match lane {
            Lane::Baseline => self.plain(FEW_SLOTS).await?,
            Lane::Core => self.plain(self.options.seeds).await?,
            Lane::Fault => self.with_faults().await?,
            Lane::Durable => self.boot(FEW_SLOTS, &[]).await?,
            Lane::Scale => self.boot(self.options.scale_seeds, &[]).await?,
            Lane::BareMetal => self.bare_metal().await?,
        };
        self.lets_in(&subject).await?;
        subject.soak = self.options.soak;
        subject.rng_seed = self.options.rng_seed;
        let has = probe(&subject).await;
        subject.can_only(has);
        if lane == Lane::Durable {
            subject.make_room();
        }
        Ok(subject)
    }

    async fn boot(&self, seeds: usize, flags: &[&str]) -> Result<Subject, BootFailed> {
        let running = self.launcher.boot(seeds, None, flags).await?;
        Ok(Subject::new(running, Arc::clone(&self.launcher), seeds))
    }

    /// As it starts by itself, or as it runs.
    async fn plain(&self, seeds: usize) -> Result<Subject, BootFailed> {
        if self.launcher.is_target() {
            let running = self.launcher.attach().await?;
            return Ok(Subject::new(running, Arc::clone(&self.launcher), seeds));
        }
        self.boot(seeds, &[]).await
    }

    /// Checks speak for many shards; whoever may speak for one only cannot try them.
    async fn lets_in(&self, subject: &Subject) -> Result<(), Unavailable> {
        let answer = subject.call(&subject.ghost(), Call::Create).await;
        match answer {
            Err(status) if status.code() == Code::PermissionDenied => {
                let said = status.message();
                let why = format!(
                    "the provider does not let this caller speak for any shard ({said}); \
                     certify it without TLS"
                );
                Err(Unavailable::Unsuitable(why))
            }
            _ => Ok(()),
        }
    }

    /// One that can be told to fail.
    async fn with_faults(&self) -> Result<Subject, Unavailable> {
        let subject = match (self.launcher.is_target(), self.options.fault_hooks) {
            (true, true) => self.plain(FEW_SLOTS).await?,
            (true, false) => {
                let why = "whether the target has fault hooks is not known; \
                           if it was started with them, say --fault-hooks";
                return Err(Unavailable::Unsuitable(why.to_owned()));
            }
            (false, true) => self.boot(FEW_SLOTS, &["--transition-timeout=2s"]).await?,
            (false, false) => {
                let flags = ["--fault-hooks", "--transition-timeout=2s"];
                self.boot(FEW_SLOTS, &flags).await?
            }
        };
        if subject.has_fault_hooks().await {
            return Ok(subject);
        }
        let why = format!("the provider has no fault hooks: no slot is labelled {CREATE_FAULT}");
        Err(Unavailable::Unsuitable(why))
    }

    /// A pool of hosts: the provider itself if it is one, else one that it can be told to be.
    async fn bare_metal(&self) -> Result<Subject, Unavailable> {
        let subject = self.plain(FEW_SLOTS).await?;
        let slots = subject.list(&[State::Speculative]).await;
        if slots.is_ok_and(|slots| slots.is_empty()) {
            return Ok(subject);
        }
        if self.launcher.is_target() {
            let why = "the target has slots to create: it is no pool of bare metal";
            return Err(Unavailable::Unsuitable(why.to_owned()));
        }
        drop(subject);
        Ok(self.boot(FEW_SLOTS, &["--bare-metal"]).await?)
    }
}

/// What the provider can do, found out by asking it to. Where that fails it is taken to claim
/// everything, so that a check says what is wrong: what is broken must not look like what is missing.
async fn probe(subject: &Subject) -> Vec<Capability> {
    let mut has = vec![Capability::Transitions];
    let slots = subject.list(&[State::Speculative]).await;
    if slots.is_ok_and(|slots| !slots.is_empty()) {
        has.push(Capability::Create);
    }
    if subject.head().await.map_or(true, |head| !head.is_empty()) {
        has.push(Capability::SinceRevision);
    }
    let deletes = match subject.idle().await {
        Ok(id) => code(&subject.call(&id, Call::Delete).await) != Code::Unimplemented,
        Err(_) => true,
    };
    if deletes {
        has.push(Capability::Delete);
    }
    has
}
