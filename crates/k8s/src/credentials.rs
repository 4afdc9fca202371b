//! Credentials: the token of a call, fresh.
//!
//! | From | Read again |
//! |---|---|
//! | the kubeconfig | never |
//! | a file, as in a Pod | every minute |
//! | a program (`exec`) | when what it printed expires, and after a 401 |

use crate::moment::nanos;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const FILE_FOR: Duration = Duration::from_secs(60);
const PROGRAM_WITHIN: Duration = Duration::from_secs(30);
/// Without a time of its own, what a program printed is used for so long.
const PRINTED_FOR: Duration = Duration::from_secs(300);

/// A program that prints a credential, as kubeconfigs name it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExecPlugin {
    api_version: String,
    command: String,
    args: Option<Vec<String>>,
    env: Option<Vec<Variable>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Variable {
    name: String,
    value: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Kept {
    token: String,
    until: Instant,
}

/// Who we are.
#[derive(Clone, Debug)]
pub(crate) enum Credentials {
    /// Nobody, or a certificate says it.
    None,
    Token(String),
    File {
        path: PathBuf,
        kept: Arc<Mutex<Option<Kept>>>,
    },
    Exec {
        plugin: Arc<ExecPlugin>,
        folder: PathBuf,
        kept: Arc<Mutex<Option<Kept>>>,
    },
}

#[derive(Debug, Deserialize)]
struct Printed {
    status: PrintedStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PrintedStatus {
    token: Option<String>,
    expiration_timestamp: Option<String>,
}

impl Credentials {
    pub(crate) fn file(path: PathBuf) -> Self {
        Self::File {
            path,
            kept: Arc::default(),
        }
    }

    pub(crate) fn exec(plugin: ExecPlugin, folder: &Path) -> Self {
        Self::Exec {
            plugin: Arc::new(plugin),
            folder: folder.to_owned(),
            kept: Arc::default(),
        }
    }

    /// The token, read again if it is old.
    pub(crate) async fn token(&self) -> Result<Option<String>, String> {
        match self {
            Self::None => Ok(None),
            Self::Token(token) => Ok(Some(token.clone())),
            Self::File { path, kept } => {
                if let Some(token) = fresh(kept) {
                    return Ok(Some(token));
                }
                let read = tokio::fs::read_to_string(path).await;
                let token = read.map_err(|why| format!("{}: {why}", path.display()))?;
                Ok(Some(keep(kept, token.trim().to_owned(), FILE_FOR)))
            }
            Self::Exec {
                plugin,
                folder,
                kept,
            } => {
                if let Some(token) = fresh(kept) {
                    return Ok(Some(token));
                }
                let (token, lasts) = plugin.run(folder).await?;
                Ok(Some(keep(kept, token, lasts)))
            }
        }
    }

    /// The server does not know it: the next call reads it again.
    pub(crate) fn forget(&self) {
        if let Self::File { kept, .. } | Self::Exec { kept, .. } = self {
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

fn fresh(kept: &Mutex<Option<Kept>>) -> Option<String> {
    let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.as_ref().filter(|kept| Instant::now() < kept.until)?;
    Some(kept.token.clone())
}

fn keep(place: &Mutex<Option<Kept>>, token: String, lasts: Duration) -> String {
    let kept = Kept {
        token: token.clone(),
        until: Instant::now() + lasts,
    };
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    token
}

impl ExecPlugin {
    /// What it prints, and for how long that may be used.
    async fn run(&self, folder: &Path) -> Result<(String, Duration), String> {
        let failed = |why: String| format!("exec {}: {why}", self.command);
        // A path is one beside the kubeconfig; a name is looked for on the PATH.
        let program = if self.command.contains('/') {
            folder.join(&self.command)
        } else {
            PathBuf::from(&self.command)
        };
        let info = serde_json::json!({
            "apiVersion": self.api_version, "kind": "ExecCredential", "spec": { "interactive": false },
        });
        let mut command = tokio::process::Command::new(program);
        command
            .args(self.args.iter().flatten())
            .envs(self.env.iter().flatten().map(|it| (&it.name, &it.value)))
            .env("KUBERNETES_EXEC_INFO", info.to_string())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let ran = tokio::time::timeout(PROGRAM_WITHIN, command.output()).await;
        let ran = ran.map_err(|_| failed("no answer within 30 s".to_owned()))?;
        let ran = ran.map_err(|why| failed(why.to_string()))?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
            return Err(failed(format!("{}: {said}", ran.status)));
        }
        let printed: Printed = serde_json::from_slice(&ran.stdout)
            .map_err(|_| failed("it prints no ExecCredential".to_owned()))?;
        let token = printed.status.token;
        let token = token.ok_or_else(|| failed("its ExecCredential has no token".to_owned()))?;
        let ends = printed
            .status
            .expiration_timestamp
            .as_deref()
            .and_then(nanos);
        Ok((token, ends.map_or(PRINTED_FOR, left_until)))
    }
}

fn left_until(nanos: i64) -> Duration {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let end = Duration::from_nanos(u64::try_from(nanos).unwrap_or_default());
    // A little before it ends.
    end.saturating_sub(now)
        .saturating_sub(Duration::from_secs(10))
}
