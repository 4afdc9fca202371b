//! The flags every process shares.

use std::path::PathBuf;

use crate::logs::{self, LogFormat, LogsRefused};
use crate::tls::{TlsFiles, TlsRefused};

/// Certificates. One set covers every gRPC edge of the process: all three, or none for plaintext.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TlsFlags {
    /// This process's certificate chain (PEM); with --tls-key and --tls-ca.
    #[arg(long)]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM).
    #[arg(long)]
    pub tls_key: Option<PathBuf>,
    /// Who signs peers (PEM), in both directions.
    #[arg(long)]
    pub tls_ca: Option<PathBuf>,
}

impl TlsFlags {
    /// The files, all or none.
    pub fn files(&self) -> Result<Option<TlsFiles>, TlsRefused> {
        TlsFiles::all_or_none(
            self.tls_cert.clone(),
            self.tls_key.clone(),
            self.tls_ca.clone(),
        )
    }
}

/// How the process logs.
#[derive(Clone, Debug, clap::Args)]
pub struct LogFlags {
    /// How log lines are written: text or json.
    #[arg(long, default_value = "text")]
    pub log_format: LogFormat,
    /// What is logged: error, warn, info, debug or trace. RUST_LOG, if set, wins.
    #[arg(long, default_value = "info")]
    pub log_level: String,
}

impl LogFlags {
    /// Starts logging as the flags say.
    pub fn start(&self) -> Result<(), LogsRefused> {
        logs::start(self.log_format, &self.log_level)
    }
}
