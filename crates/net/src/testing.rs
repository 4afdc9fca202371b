//! Certificates for tests, made on the spot: an authority, and leaves it signs.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, Error, IsCa, Issuer, KeyPair, SanType,
    date_time_ymd,
};

use crate::tls::TlsFiles;

/// Signs certificates.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub pem: String,
}

/// A certificate and its key, both PEM.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The certificate.
    pub cert: String,
    /// The key.
    pub key: String,
}

impl Authority {
    /// A new one; two of the same name do not trust each other's leaves.
    pub fn new(name: &str) -> Result<Self, Error> {
        let mut params = CertificateParams::new([])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);
        Ok(Self { issuer, pem })
    }

    /// A leaf for this host that carries these URIs.
    pub fn leaf(&self, uris: &[&str]) -> Result<Leaf, Error> {
        self.sign(uris, 2100)
    }

    /// The same, but its time is over.
    pub fn expired(&self, uris: &[&str]) -> Result<Leaf, Error> {
        self.sign(uris, 2001)
    }

    fn sign(&self, uris: &[&str], until: i32) -> Result<Leaf, Error> {
        let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        for uri in uris {
            let uri = SanType::URI((*uri).try_into()?);
            params.subject_alt_names.push(uri);
        }
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, &self.issuer)?.pem();
        let key = key.serialize_pem();
        Ok(Leaf { cert, key })
    }
}

impl Leaf {
    /// Puts the leaf and the authority it trusts into a folder, each file replaced in one step.
    pub fn write(&self, folder: &Path, ca: &str) -> std::io::Result<TlsFiles> {
        std::fs::create_dir_all(folder)?;
        let put = |name: &str, text: &str| {
            let (beside, path) = (folder.join("new"), folder.join(name));
            std::fs::write(&beside, text)?;
            std::fs::rename(&beside, &path)?;
            std::io::Result::Ok(path)
        };
        Ok(TlsFiles {
            cert: put("cert.pem", &self.cert)?,
            key: put("key.pem", &self.key)?,
            ca: put("ca.pem", ca)?,
        })
    }
}
