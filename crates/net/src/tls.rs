//! TLS: three files, checked at start and read again whenever they change.
//!
//! ```text
//! handshake ─▶ did a file change? ──┬─ no ──▶ the last good set
//!                                   └─ yes ─▶ load all three ──┬─ good ──▶ the new set, from now on
//!                                                              └─ bad ───▶ the last good set; said once
//! ```
//!
//! Looking at three files costs a handshake some microseconds, and there is no moment in which a
//! watcher has not noticed yet: a connection made after the files were replaced uses them. The three
//! are one set, so a certificate never serves with another one's key, and a CA that was taken away
//! lets nobody in. Sessions are not resumed: a resumed one would not be checked again.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The protocol every edge of ours speaks inside TLS.
const ALPN: &[u8] = b"h2";

/// Where the certificate, its key and the CA bundle are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain of this process, leaf first.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who signs peers, in both directions.
    pub ca: PathBuf,
}

impl TlsFiles {
    /// All three, or plaintext. Anything between would look secure and not be.
    pub fn all_or_none(
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
        ca: Option<PathBuf>,
    ) -> Result<Option<Self>, TlsRefused> {
        let given = |path: Option<PathBuf>| path.filter(|path| !path.as_os_str().is_empty());
        match (given(cert), given(key), given(ca)) {
            (None, None, None) => Ok(None),
            (Some(cert), Some(key), Some(ca)) => Ok(Some(Self { cert, key, ca })),
            (cert, key, ca) => {
                let flags = [
                    ("--tls-cert", cert.is_some()),
                    ("--tls-key", key.is_some()),
                    ("--tls-ca", ca.is_some()),
                ];
                let named = |present: bool| {
                    let names = flags.iter().filter(|(_, given)| *given == present);
                    let names: Vec<&str> = names.map(|(name, _)| *name).collect();
                    names.join(" and ")
                };
                Err(TlsRefused::Partial {
                    given: named(true),
                    missing: named(false),
                })
            }
        }
    }

    fn all(&self) -> [&Path; 3] {
        [&self.cert, &self.key, &self.ca]
    }
}

/// Why a set of files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsRefused {
    /// Some of the three, but not all.
    #[error("TLS needs all three files or none: {given} without {missing}")]
    Partial {
        /// The flags that were given.
        given: String,
        /// The flags that were not.
        missing: String,
    },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The files are each in order and do not fit together.
    #[error("{} and {}: {problem}", cert.display(), key.display())]
    Pair {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// What does not fit.
        problem: String,
    },
}

/// What became of the files so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsCounts {
    /// Changed sets that were taken into use.
    pub reloaded: u64,
    /// Changed sets that were refused; the one before stayed in force.
    pub refused: u64,
    /// The files as they are now were refused.
    pub is_refused: bool,
    /// When the certificate in force expires, in seconds of unix time.
    pub expires_unix_seconds: i64,
}

/// The certificates of a process, always the last good ones.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    current: ArcSwap<Loaded>,
    /// What the files looked like when they were last tried, good or bad.
    tried: Mutex<Stamp>,
    reloaded: AtomicU64,
    refused: AtomicU64,
    /// The last set that was tried was refused.
    is_refused: AtomicBool,
}

#[derive(Debug)]
struct Loaded {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    expires: i64,
}

impl Tls {
    /// Loads the files; a set that cannot be used stops the start.
    pub fn load(files: TlsFiles) -> Result<Arc<Self>, TlsRefused> {
        let tried = stamp(&files);
        let loaded = load(&files)?;
        Ok(Arc::new(Self {
            current: ArcSwap::from_pointee(loaded),
            tried: Mutex::new(tried),
            files,
            reloaded: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
        }))
    }

    /// What became of the files so far. Looks at them first.
    pub fn counts(&self) -> TlsCounts {
        let expires_unix_seconds = self.current().expires;
        TlsCounts {
            reloaded: self.reloaded.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            is_refused: self.is_refused.load(Ordering::Relaxed),
            expires_unix_seconds,
        }
    }

    /// The same, but as a client it shows no certificate: a caller that must not be let in.
    #[cfg(any(test, feature = "testing"))]
    pub fn load_without_showing(files: TlsFiles) -> Result<Arc<Self>, TlsRefused> {
        let roots = Arc::new(roots(&files.ca)?);
        let tls = Self::load(files)?;
        let mut client =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_protocol_versions(&[&rustls::version::TLS13])
                .map_err(|why| content(&tls.files.ca, &why.to_string()))?
                .with_root_certificates(roots)
                .with_no_client_auth();
        client.alpn_protocols = vec![ALPN.to_vec()];
        let current = tls.current();
        tls.current.store(Arc::new(Loaded {
            server: Arc::clone(&current.server),
            client: Arc::new(client),
            expires: current.expires,
        }));
        Ok(tls)
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current().server)
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.current().client)
    }

    fn current(&self) -> Arc<Loaded> {
        // Held over the load: whoever comes second waits for the new set rather than using the old.
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamp(&self.files);
        if *tried != now {
            *tried = now;
            match load(&self.files) {
                Ok(loaded) => {
                    self.current.store(Arc::new(loaded));
                    self.reloaded.fetch_add(1, Ordering::Relaxed);
                    self.is_refused.store(false, Ordering::Relaxed);
                    tracing::info!(cert = %self.files.cert.display(), "certificates reloaded");
                }
                Err(refused) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    self.is_refused.store(true, Ordering::Relaxed);
                    tracing::error!(%refused, "changed certificates refused; the last good ones stay");
                }
            }
        }
        drop(tried);
        self.current.load_full()
    }
}

/// Everything about three files that changes when they do.
type Stamp = [Option<(u64, u64, i64, i64, i64)>; 3];

fn stamp(files: &TlsFiles) -> Stamp {
    files.all().map(|path| {
        // Follows links: a mounted secret is replaced by pointing a link elsewhere.
        let of = std::fs::metadata(path).ok()?;
        let changed = (of.mtime(), of.mtime_nsec(), of.ctime_nsec());
        Some((of.ino(), of.len(), changed.0, changed.1, changed.2))
    })
}

fn load(files: &TlsFiles) -> Result<Loaded, TlsRefused> {
    let [cert, key, ca] = files.all();
    let chain = certificates(cert)?;
    let expires = expiry(cert, &chain)?;
    let key_bytes = read(key)?;
    let private = PrivateKeyDer::from_pem_slice(&key_bytes)
        .map_err(|_| content(key, "no private key in PEM form"))?;
    let roots = Arc::new(roots(ca)?);
    let pair = |why: rustls::Error| TlsRefused::Pair {
        cert: files.cert.clone(),
        key: files.key.clone(),
        problem: why.to_string(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let callers =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|why| content(ca, &why.to_string()))?;
    let versions = &[&rustls::version::TLS13];
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(pair)?
        .with_client_cert_verifier(callers)
        .with_single_cert(chain.clone(), private.clone_key())
        .map_err(pair)?;
    server.alpn_protocols = vec![ALPN.to_vec()];
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(pair)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, private)
        .map_err(pair)?;
    client.alpn_protocols = vec![ALPN.to_vec()];
    client.resumption = Resumption::disabled();
    let (server, client) = (Arc::new(server), Arc::new(client));
    Ok(Loaded {
        server,
        client,
        expires,
    })
}

fn roots(ca: &Path) -> Result<RootCertStore, TlsRefused> {
    let mut roots = RootCertStore::empty();
    for root in certificates(ca)? {
        let added = roots.add(root);
        added.map_err(|why| content(ca, &format!("not a usable CA: {why}")))?;
    }
    Ok(roots)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsRefused> {
    std::fs::read(path).map_err(|source| TlsRefused::Io {
        path: path.to_owned(),
        source,
    })
}

fn content(path: &Path, problem: &str) -> TlsRefused {
    TlsRefused::Content {
        path: path.to_owned(),
        problem: problem.to_owned(),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsRefused> {
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|why| content(path, &why.to_string()))?;
    if found.is_empty() {
        return Err(content(path, "no certificate in PEM form"));
    }
    Ok(found)
}

fn expiry(path: &Path, chain: &[CertificateDer<'_>]) -> Result<i64, TlsRefused> {
    let leaf = chain.first().map(|leaf| X509Certificate::from_der(leaf));
    match leaf {
        Some(Ok((_, leaf))) => Ok(leaf.validity().not_after.timestamp()),
        Some(Err(_)) | None => Err(content(path, "the first certificate is unreadable")),
    }
}

#[cfg(test)]
mod tests;
