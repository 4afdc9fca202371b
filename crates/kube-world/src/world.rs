//! World: the programs together, in a folder of their own.

use crate::credentials::Credentials;
use crate::part::{Part, PartRefused, program};
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";
const CONTROLLERS: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";

/// A loaded machine is no reason to fail.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// What the API server writes down: requests as they came, once they were answered.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [create, patch, update, delete, deletecollection]
  resources: [{ group: '', resources: [nodes, pods, pods/binding, pods/eviction] }]
- level: None
";
/// Between asking for a free port and using it somebody else may take it.
const TRIES: usize = 3;

/// What runs beside etcd and the API server.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// kube-controller-manager.
    pub controllers: bool,
    /// kube-scheduler.
    pub scheduler: bool,
    /// Further users, each with a token and no rights but those a test gives them.
    pub users: Vec<String>,
    /// The API server writes down who changed Pods and Nodes: [`World::audit_log`].
    pub audited: bool,
}

/// Why there is no world.
#[derive(Debug, thiserror::Error)]
pub enum StartRefused {
    /// The folder or what is in it cannot be written.
    #[error("the folder of a cluster cannot be written: {0}")]
    Folder(#[from] io::Error),
    /// A program is missing or unwell.
    #[error(transparent)]
    Part(#[from] PartRefused),
}

/// A Kubernetes. Stopped when dropped, in reverse order, and its folder removed.
pub struct World {
    folder: PathBuf,
    credentials: Credentials,
    ports: Ports,
    audited: bool,
    /// In the order of their start.
    parts: Vec<Part>,
}

#[derive(Clone, Copy)]
struct Ports {
    etcd: u16,
    peers: u16,
    server: u16,
}

impl Ports {
    fn free() -> io::Result<Self> {
        // All three are held at once, so that no two are the same.
        let taken = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let mut ports = [0; 3];
        for (port, listener) in ports.iter_mut().zip(taken) {
            *port = listener?.local_addr()?.port();
        }
        let [etcd, peers, server] = ports;
        Ok(Self {
            etcd,
            peers,
            server,
        })
    }
}

impl World {
    /// Starts everything that is asked for, and returns once it is ready.
    pub fn start(parts: &Parts) -> Result<Self, StartRefused> {
        let mut tries = 1;
        loop {
            match Self::try_start(parts) {
                Err(StartRefused::Part(why)) if why.is_taken_port() && tries < TRIES => tries += 1,
                started => return started,
            }
        }
    }

    fn try_start(asked: &Parts) -> Result<Self, StartRefused> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let nth = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("bigfleet-world-{}-{nth}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder)?;
        let mut users = vec!["admin".to_owned(), "system:kube-scheduler".to_owned()];
        users.extend(asked.users.iter().cloned());
        let mut world = Self {
            credentials: Credentials::write(&folder, &users)?,
            ports: Ports::free()?,
            audited: asked.audited,
            parts: Vec::new(),
            folder,
        };
        for user in &users {
            world.write_kubeconfig(user)?;
        }
        std::fs::write(world.file("audit-policy.yaml"), AUDIT_POLICY)?;
        world.start_etcd()?;
        world.start_api_server()?;
        if asked.controllers {
            world.start_controllers()?;
        }
        if asked.scheduler {
            world.start_scheduler()?;
        }
        Ok(world)
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn start_etcd(&mut self) -> Result<(), PartRefused> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peers = format!("http://127.0.0.1:{}", self.ports.peers);
        let flags = [
            "--name=t".to_owned(),
            format!("--data-dir={}", self.file("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=t={peers}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        let mut part = Part::start(ETCD, &self.folder, &flags)?;
        let port = self.ports.etcd;
        let ready = part.wait(READY_WITHIN, || is_healthy(port));
        self.parts.push(part);
        ready
    }

    /// Starts the API server; also after [`World::stop_api_server`].
    pub fn start_api_server(&mut self) -> Result<(), PartRefused> {
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            format!("--secure-port={}", self.ports.server),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--tls-cert-file={}", self.file("server.crt")),
            format!("--tls-private-key-file={}", self.file("server.key")),
            format!("--client-ca-file={}", self.file("ca.crt")),
            format!("--cert-dir={}", self.folder.display()),
            format!("--token-auth-file={}", self.file("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.file("accounts.pub")),
            format!(
                "--service-account-signing-key-file={}",
                self.file("accounts.key")
            ),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--enable-bootstrap-token-auth".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        if self.audited {
            flags.push(format!(
                "--audit-policy-file={}",
                self.file("audit-policy.yaml")
            ));
            flags.push(format!("--audit-log-path={}", self.audit_log().display()));
        }
        let mut part = Part::start(API_SERVER, &self.folder, &flags)?;
        let ready = part.wait(READY_WITHIN, || {
            let asked = self.kubectl(&["get", "--raw", "/readyz"]);
            asked.is_ok_and(|said| said.status.success())
        });
        self.parts.push(part);
        ready
    }

    /// Starts the controllers of Kubernetes; also after they were stopped.
    pub fn start_controllers(&mut self) -> Result<(), PartRefused> {
        let flags = [
            format!("--kubeconfig={}", self.file("admin.kubeconfig")),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--use-service-account-credentials=false".to_owned(),
            format!("--root-ca-file={}", self.file("ca.crt")),
            format!(
                "--service-account-private-key-file={}",
                self.file("accounts.key")
            ),
        ];
        let part = Part::start(CONTROLLERS, &self.folder, &flags)?;
        self.parts.push(part);
        Ok(())
    }

    /// Starts the scheduler; also after it was stopped.
    pub fn start_scheduler(&mut self) -> Result<(), PartRefused> {
        let flags = [
            format!(
                "--kubeconfig={}",
                self.file("system-kube-scheduler.kubeconfig")
            ),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        let part = Part::start(SCHEDULER, &self.folder, &flags)?;
        self.parts.push(part);
        Ok(())
    }

    /// Stops the API server; etcd and what is in it stay.
    pub fn stop_api_server(&mut self) {
        self.stop_part(API_SERVER);
    }

    /// Stops the scheduler.
    pub fn stop_scheduler(&mut self) {
        self.stop_part(SCHEDULER);
    }

    fn stop_part(&mut self, name: &str) {
        // Dropping a part ends it.
        self.parts.retain(|part| part.name() != name);
    }

    fn write_kubeconfig(&self, user: &str) -> io::Result<()> {
        std::fs::write(self.kubeconfig_of(user), self.config_of(user).to_string())
    }

    fn config_of(&self, user: &str) -> Value {
        let server = format!("https://127.0.0.1:{}", self.ports.server);
        self.credentials.kubeconfig(&server, user)
    }

    /// The file with which one may do anything.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig_of("admin")
    }

    /// The file of one of the users.
    pub fn kubeconfig_of(&self, user: &str) -> PathBuf {
        let name = format!("{}.kubeconfig", user.replace(':', "-"));
        self.folder.join(name)
    }

    /// The folder of this world, for whatever else should go with it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the API server wrote down, a JSON object a line, if it was asked to.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// Where kubectl is.
    pub fn kubectl_program() -> Result<PathBuf, PartRefused> {
        program("kubectl")
    }

    /// The process ids of what runs, by program, in the order of their start.
    pub fn pids(&self) -> Vec<(&str, u32)> {
        let parts = self.parts.iter();
        parts.map(|part| (part.name(), part.pid())).collect()
    }

    /// Runs kubectl with these words, as one who may do anything.
    pub fn kubectl(&self, words: &[&str]) -> io::Result<Output> {
        self.kubectl_with(words, "")
    }

    /// The same, with something on its standard input.
    pub fn kubectl_with(&self, words: &[&str], input: &str) -> io::Result<Output> {
        let mut command = self.kubectl_command()?;
        command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait_with_output()
    }

    /// kubectl, as one who may do anything, for who has more to say of how it runs.
    pub fn kubectl_command(&self) -> io::Result<Command> {
        let mut command = Command::new(program("kubectl").map_err(io::Error::other)?);
        // Not as a flag: kubectl refuses flags before the name of a plugin.
        command
            .env("KUBECONFIG", self.kubeconfig())
            .env("HOME", &self.folder);
        Ok(command)
    }

    /// The ends of all logs, for a test that fails.
    pub fn logs(&self) -> String {
        self.parts.iter().map(Part::log).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        while let Some(part) = self.parts.pop() {
            drop(part);
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// Whether etcd says that it is.
fn is_healthy(port: u16) -> bool {
    let asked = || -> io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    asked().is_ok_and(|answer| answer.contains("\"health\":\"true\""))
}
