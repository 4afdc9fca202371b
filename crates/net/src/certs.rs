//! Certificates made here: an authority in a directory, and what it signs, by role.
//!
//! ```text
//! certs/ca.pem  certs/ca-key.pem          the authority: made once, its key never leaves the directory
//! certs/shard/shard-0/{cert,key,ca}.pem   what one process is given: its three --tls files
//! ```
//!
//! For those who have no authority of their own yet, so that nobody goes without TLS for want of one. Who a
//! certificate stands for is in its one `bigfleet://` URI (wire 7); a provider has none, since it is only ever
//! dialled by a name of its host. Every file is its owner's alone.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};

use crate::identity::Identity;
use crate::tls::TlsFiles;

const CA: &str = "ca.pem";
const CA_KEY: &str = "ca-key.pem";
/// How far the clock of whoever reads a certificate may be behind ours.
const SKEW: Duration = Duration::from_secs(60 * 60);
/// Names every server answers to besides its own: it can be asked from its own host.
const THIS_HOST: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
pub enum Role {
    /// A shard; the name is its --id
    Shard,
    /// The operator of a cluster; the name is the cluster's id
    Operator,
    /// A provider; the name is for people, callers check --host
    Provider,
    /// A replica of the coordinator
    Coordinator,
    /// Somebody who may steer a shard: pause, resume, retire, release
    Admin,
    /// Somebody who may only look
    Reader,
}

impl Role {
    /// The word for it, as in the name of its folder.
    pub fn word(self) -> &'static str {
        match self {
            Self::Shard => "shard",
            Self::Operator => "operator",
            Self::Provider => "provider",
            Self::Coordinator => "coordinator",
            Self::Admin => "admin",
            Self::Reader => "reader",
        }
    }

    /// Who a holder of that name is; a provider is nobody.
    pub fn identity(self, name: &str) -> Option<Identity> {
        match self {
            Self::Shard => Some(Identity::Shard(name.to_owned())),
            Self::Operator => Some(Identity::Cluster(name.to_owned())),
            Self::Provider => None,
            Self::Coordinator | Self::Admin => Some(Identity::Admin),
            Self::Reader => Some(Identity::ReadOnly),
        }
    }

    fn is_dialled(self) -> bool {
        matches!(self, Self::Shard | Self::Provider | Self::Coordinator)
    }

    fn uses(self) -> Vec<ExtendedKeyUsagePurpose> {
        let calls = !matches!(self, Self::Provider);
        let both = [
            (self.is_dialled(), ExtendedKeyUsagePurpose::ServerAuth),
            (calls, ExtendedKeyUsagePurpose::ClientAuth),
        ];
        let of_role = both.into_iter().filter(|(does, _)| *does);
        of_role.map(|(_, purpose)| purpose).collect()
    }
}

/// Why no certificate was made.
#[derive(Debug, thiserror::Error)]
pub enum CertsRefused {
    /// There is an authority already; a second one would not be trusted by what the first has signed.
    #[error("{} exists already; issue from it, or name another directory with --dir", .0.display())]
    Exists(PathBuf),
    /// There is no authority yet.
    #[error("{} is not there: make an authority first with `bigfleet certs init`", .0.display())]
    NoAuthority(PathBuf),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A name that could not be told apart from others, or that is no part of a path.
    #[error("\"{}\" has to be letters, digits, '.', '_' and '-', and begin with a letter or digit", crate::identity::shown(.0))]
    Name(String),
    /// A host that is no DNS name or address, or an authority that is none.
    #[error("{what}: {source}")]
    Made {
        /// What could not be made.
        what: String,
        /// What the library says.
        source: rcgen::Error,
    },
}

/// From when to when a certificate is good, in unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its first moment.
    pub from: Duration,
    /// Its last.
    pub until: Duration,
}

impl Validity {
    /// From now, and a little before, for so long.
    pub fn lasting(now: Duration, lasting: Duration) -> Self {
        Self {
            from: now.saturating_sub(SKEW),
            until: now.saturating_add(lasting),
        }
    }

    fn put(self, params: &mut CertificateParams) {
        let epoch = date_time_ymd(1970, 1, 1);
        params.not_before = epoch + self.from;
        params.not_after = epoch + self.until;
    }
}

/// What a certificate is to say.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// What it is for.
    pub role: Role,
    /// Whose it is.
    pub name: &'a str,
    /// DNS names and addresses at which it is dialled, besides this host's own.
    pub hosts: &'a [String],
    /// From when to when it is good.
    pub validity: Validity,
}

/// Signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub pem: String,
    key: String,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive() // never its key
    }
}

/// A certificate and its key, both PEM.
#[derive(Clone)]
pub struct Leaf {
    /// The certificate.
    pub cert: String,
    /// The key.
    pub key: String,
}

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").finish_non_exhaustive()
    }
}

impl Authority {
    /// A new one; two of the same name do not trust each other's leaves.
    pub fn new(name: &str, validity: Validity) -> Result<Self, CertsRefused> {
        let made = made("the authority");
        let mut params = CertificateParams::new([]).map_err(&made)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        validity.put(&mut params);
        let key = KeyPair::generate().map_err(&made)?;
        let pem = params.self_signed(&key).map_err(&made)?.pem();
        let secret = key.serialize_pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem,
            key: secret,
        })
    }

    /// The one in a directory.
    pub fn open(folder: &Path) -> Result<Self, CertsRefused> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => CertsRefused::NoAuthority(path),
                _ => CertsRefused::Io { path, source },
            })
        };
        let (pem, key) = (read(CA)?, read(CA_KEY)?);
        let what = |name: &str| made(&folder.join(name).display().to_string());
        let pair = KeyPair::from_pem(&key).map_err(what(CA_KEY))?;
        let issuer = Issuer::from_ca_cert_pem(&pem, pair).map_err(what(CA))?;
        Ok(Self { issuer, pem, key })
    }

    /// Puts it into a directory that has none yet.
    pub fn save(&self, folder: &Path) -> Result<(), CertsRefused> {
        make_private(folder)?;
        for (name, text) in [(CA_KEY, &self.key), (CA, &self.pem)] {
            let path = folder.join(name);
            let put = private().create_new(true).open(&path);
            let put = put.and_then(|mut file| file.write_all(text.as_bytes()));
            put.map_err(|source| match source.kind() {
                io::ErrorKind::AlreadyExists => CertsRefused::Exists(path),
                _ => CertsRefused::Io { path, source },
            })?;
        }
        Ok(())
    }

    /// A certificate for a role.
    pub fn issue(&self, wanted: &Wanted<'_>) -> Result<Leaf, CertsRefused> {
        let Wanted { role, name, .. } = *wanted;
        let is_plain = Identity::parse(&Identity::Shard(name.to_owned()).to_string()).is_ok()
            && name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !is_plain {
            return Err(CertsRefused::Name(name.to_owned()));
        }
        let here = THIS_HOST.map(str::to_owned);
        let mut hosts = wanted.hosts.to_vec();
        if role.is_dialled() {
            hosts.extend(here.into_iter().filter(|host| !wanted.hosts.contains(host)));
        }
        let uris: Vec<String> = Vec::from_iter(role.identity(name).map(|who| who.to_string()));
        self.sign(name, hosts, &uris, role.uses(), wanted.validity)
    }

    /// A certificate that says exactly this.
    pub(crate) fn sign(
        &self,
        name: &str,
        hosts: Vec<String>,
        uris: &[String],
        uses: Vec<ExtendedKeyUsagePurpose>,
        validity: Validity,
    ) -> Result<Leaf, CertsRefused> {
        let made = made(&format!("a certificate for {}", hosts.join(", ")));
        let mut params = CertificateParams::new(hosts).map_err(&made)?;
        for uri in uris {
            let uri = uri.as_str().try_into().map_err(&made)?;
            params.subject_alt_names.push(SanType::URI(uri));
        }
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = uses;
        validity.put(&mut params);
        let key = KeyPair::generate().map_err(&made)?;
        let cert = params.signed_by(&key, &self.issuer).map_err(&made)?.pem();
        let key = key.serialize_pem();
        Ok(Leaf { cert, key })
    }
}

impl Leaf {
    /// Puts the leaf and the authority it trusts into a folder, each file replaced in one step: a process that
    /// uses the folder takes the new set at its next handshake.
    pub fn write(&self, folder: &Path, ca: &str) -> Result<TlsFiles, CertsRefused> {
        make_private(folder)?;
        let put = |name: &str, text: &str| {
            let (beside, path) = (folder.join("new"), folder.join(name));
            let opened = private().create(true).truncate(true).open(&beside);
            let put = opened
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .and_then(|()| fs::rename(&beside, &path));
            let failed = |source| CertsRefused::Io {
                path: path.clone(),
                source,
            };
            put.map_err(failed).map(|()| path)
        };
        Ok(TlsFiles {
            cert: put("cert.pem", &self.cert)?,
            key: put("key.pem", &self.key)?,
            ca: put("ca.pem", ca)?,
        })
    }
}

fn made(what: &str) -> impl Fn(rcgen::Error) -> CertsRefused + use<> {
    let what = what.to_owned();
    move |source| CertsRefused::Made {
        what: what.clone(),
        source,
    }
}

fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn make_private(folder: &Path) -> Result<(), CertsRefused> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    made.map_err(|source| CertsRefused::Io {
        path: folder.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
