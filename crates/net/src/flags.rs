//! The flags every process shares.

use std::path::PathBuf;

use crate::logs::{self, LogFormat, LogsRefused};
use crate::tls::{TlsFiles, TlsRefused};

/// Certificates. One set covers every gRPC edge of the process: all three, or none for plaintext.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TlsFlags {
    /// The certificate of this process (PEM file); needs --tls-key and --tls-ca too
    #[arg(long)]
    pub tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM file)
    #[arg(long)]
    pub tls_key: Option<PathBuf>,
    /// The authority whose certificates are accepted from the other side (PEM file)
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

/// Certificates, or the word that none are needed.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ServingFlags {
    /// Certificates.
    #[command(flatten)]
    pub tls: TlsFlags,
    /// Serve other hosts without certificates: whoever reaches the address may do anything
    #[arg(long)]
    pub insecure: bool,
}

/// How the process logs.
#[derive(Clone, Debug, clap::Args)]
pub struct LogFlags {
    /// The form of log lines: text or json
    #[arg(long, default_value = "text")]
    pub log_format: LogFormat,
    /// What to log: error, warn, info, debug or trace; the variable RUST_LOG overrides it
    #[arg(long, default_value = "info")]
    pub log_level: String,
}

impl LogFlags {
    /// Starts logging as the flags say.
    pub fn start(&self) -> Result<(), LogsRefused> {
        logs::start(self.log_format, &self.log_level, &[])
    }

    /// The same, with these libraries heard from WARN on, unless the level names them.
    pub fn start_quieting(&self, libraries: &[&str]) -> Result<(), LogsRefused> {
        logs::start(self.log_format, &self.log_level, libraries)
    }
}
