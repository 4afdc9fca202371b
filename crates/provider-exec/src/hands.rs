//! One run of a program: given its question, heard out, and ended with everything in its process group.
//!
//! ```text
//! a place among those at once ─▶ started in a group of its own
//!    question ─▶ standard input      standard output ─▶ at most 1 MiB      standard error ─▶ the last 4 KiB
//!    exits, or is out of time, or is no longer wanted, or prints too much ─▶ the rest of its group is ended
//! ```
//!
//! The run is over when the program exits, not when its output ends: a daemon in a session of its own may
//! hold the pipes open for as long as it likes. Whatever is left in the program's own group is ended, so
//! nothing stays behind by accident. The group is ended before the program is reaped: until then its number
//! cannot belong to anybody else.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bigfleet_provider_kit::{Cancelled, Failure};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Semaphore;

use crate::config::{Config, Program, ProgramKind};
use crate::ending::{Ending, Tail};
use crate::question::Question;

/// The most a program may print.
const MOST_OUTPUT: usize = 1 << 20;
/// How long a program that was asked to end may take for it.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The programs of a file, ready to be run.
#[derive(Debug)]
pub struct Hands {
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    programs: BTreeMap<ProgramKind, (Program, Semaphore)>,
}

impl Hands {
    /// The programs of this file.
    pub fn new(config: &Config) -> Self {
        let programs = config.programs.iter();
        let programs = programs.map(|(kind, program)| {
            let places = Semaphore::new(program.at_once);
            (*kind, (program.clone(), places))
        });
        Self {
            folder: config.folder.clone(),
            environment: config.environment.clone(),
            programs: programs.collect(),
        }
    }

    pub(crate) fn has(&self, kind: ProgramKind) -> bool {
        self.programs.contains_key(&kind)
    }

    pub(crate) fn deadline(&self, kind: ProgramKind) -> Option<Duration> {
        self.programs
            .get(&kind)
            .map(|(program, _)| program.deadline)
    }

    /// Runs the program of this kind once, and answers with what it printed. `more` is added to its deadline.
    pub(crate) async fn run(
        &self,
        kind: ProgramKind,
        question: &Question<'_>,
        more: Duration,
        mut cancelled: Option<Cancelled>,
    ) -> Result<Vec<u8>, Failure> {
        let Some((program, places)) = self.programs.get(&kind) else {
            return Err(Failure::permanent(format!(
                "{kind}: there is no program for it"
            )));
        };
        let given_up = async {
            match &mut cancelled {
                Some(cancelled) => cancelled.wait().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(given_up);
        let _place = tokio::select! {
            place = places.acquire() => place,
            () = &mut given_up => return Err(Failure::retryable(format!("{kind}: given up before its turn"))),
        };
        let input = question.json(kind);
        let mut run = Run::start(self, program).map_err(|why| not_started(kind, program, &why))?;
        let deadline = program.deadline.saturating_add(more);
        let ending = tokio::select! {
            ending = run.heard_out(&input) => ending,
            () = tokio::time::sleep(deadline) => Ending::OutOfTime(deadline),
            () = &mut given_up => Ending::GivenUp,
        };
        let ending = run.over(ending).await;
        ending.answer(kind, run.output, &run.errors, question.secret())
    }

    fn command(&self, program: &Program) -> Command {
        let mut command = Command::new(&program.path);
        command
            .args(&program.args)
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

fn not_started(kind: ProgramKind, program: &Program, why: &std::io::Error) -> Failure {
    let text = format!(
        "{kind}: {} could not be started: {why}",
        program.path.display()
    );
    match why.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
            Failure::retryable(text)
        }
        // Too many processes or files, or too little memory, now: the kit comes back later.
        _ => Failure::passing(text),
    }
}

/// A program that runs.
struct Run {
    child: Child,
    group: Group,
    output: Vec<u8>,
    errors: Tail,
}

impl Run {
    fn start(hands: &Hands, program: &Program) -> std::io::Result<Self> {
        let child = hands.command(program).spawn()?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        let group = Group(pid.and_then(Pid::from_raw));
        Ok(Self {
            child,
            group,
            output: Vec::new(),
            errors: Tail::default(),
        })
    }

    /// Talks with the program until it exits or has printed too much.
    async fn heard_out(&mut self, input: &[u8]) -> Ending {
        let Self {
            child,
            group,
            output,
            errors,
        } = self;
        let (stdin, mut stdout) = (child.stdin.take(), child.stdout.take());
        let mut stderr = child.stderr.take();
        let ending = {
            let heard = listen(stderr.as_mut(), |piece| {
                errors.push(piece);
                true
            });
            let answered = listen(stdout.as_mut(), |piece| take(output, piece));
            tokio::select! {
                biased;
                exited = group.exited() => match exited {
                    Ok(()) => Ending::Exited(None),
                    Err(why) => Ending::Lost(why.to_string()),
                },
                () = feed(stdin, input) => Ending::TooMuch,
                () = heard => Ending::TooMuch,
                () = answered => Ending::TooMuch,
            }
        };
        // What it wrote before it exited is in the pipes; what a daemon may write later is not waited for.
        if let Some(stderr) = &stderr {
            rest(stderr.as_fd(), |piece| {
                errors.push(piece);
                true
            });
        }
        if let Some(stdout) = &stdout {
            rest(stdout.as_fd(), |piece| take(output, piece));
        }
        if MOST_OUTPUT < output.len() {
            return Ending::TooMuch;
        }
        ending
    }

    /// Makes sure that the program and its group are gone, and how it exited if it did so by itself.
    async fn over(&mut self, ending: Ending) -> Ending {
        if !matches!(ending, Ending::Exited(_)) {
            self.group.signal(Signal::TERM);
            drop(tokio::time::timeout(LAST_WORDS, self.group.exited()).await);
        }
        self.group.signal(Signal::KILL);
        let status: std::io::Result<ExitStatus> = self.child.wait().await;
        self.group.0 = None;
        match (ending, status) {
            (Ending::Exited(_), Ok(status)) => Ending::Exited(Some(status)),
            (Ending::Exited(_), Err(why)) => Ending::Lost(why.to_string()),
            (other, _) => other,
        }
    }
}

/// Keeps what fits, and one byte to know that it did not.
fn take(output: &mut Vec<u8>, piece: &[u8]) -> bool {
    let room = (MOST_OUTPUT + 1).saturating_sub(output.len());
    output.extend_from_slice(&piece[..piece.len().min(room)]);
    output.len() <= MOST_OUTPUT
}

/// Says everything, then hangs up; never returns, as that is not the end of the program.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A program need not read what it does not want to know.
        drop(stdin.write_all(input).await);
    }
    std::future::pending::<()>().await;
}

/// Returns once there is too much; an output that is closed is just not read any more.
async fn listen(from: Option<&mut (impl AsyncRead + Unpin)>, mut took: impl FnMut(&[u8]) -> bool) {
    let mut piece = vec![0; 16 << 10];
    if let Some(from) = from {
        while let Ok(bytes @ 1..) = from.read(&mut piece).await {
            if !took(&piece[..bytes]) {
                return;
            }
        }
    }
    std::future::pending::<()>().await;
}

/// Reads what a pipe holds now.
fn rest(pipe: BorrowedFd<'_>, mut took: impl FnMut(&[u8]) -> bool) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(bytes @ 1..) = rustix::io::read(pipe, &mut piece[..]) {
        if !took(&piece[..bytes]) {
            return;
        }
    }
}

/// The process group of a program. Dropped before its time, it takes the group with it.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // An empty group is what is wanted.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Returns once the program has exited; it is not reaped yet, so its number is still its own.
    #[cfg(target_os = "linux")]
    async fn exited(&self) -> std::io::Result<()> {
        use rustix::process::{PidfdFlags, pidfd_open};
        use tokio::io::Interest;
        use tokio::io::unix::AsyncFd;

        let Some(pid) = self.0 else { return Ok(()) };
        let handle = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        #[expect(
            deprecated,
            reason = "sound for an owned handle that lives as long as it is watched; the other is unsafe"
        )]
        let handle = AsyncFd::with_interest(handle, Interest::READABLE)?;
        handle.readable().await.map(drop)
    }

    /// The same where the system has no handles for processes.
    #[cfg(not(target_os = "linux"))]
    async fn exited(&self) -> std::io::Result<()> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};

        let Some(pid) = self.0 else { return Ok(()) };
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(pid), peek)?.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
