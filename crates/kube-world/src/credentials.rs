//! Credentials: an authority for two days, what it signs, tokens, and kubeconfigs.

use base64::Engine;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// The authority of a world, for kubeconfigs.
pub(crate) struct Credentials {
    authority: String,
}

impl Credentials {
    /// Writes everything the programs read into the folder.
    pub(crate) fn write(folder: &Path, users: &[String]) -> io::Result<Self> {
        let made = |why: rcgen::Error| io::Error::other(why.to_string());
        let key = KeyPair::generate().map_err(made)?;
        let mut authority = CertificateParams::new([]).map_err(made)?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = &mut authority.distinguished_name;
        name.push(DnType::CommonName, "a world of BigFleet's tests");
        let authority_pem = authority.self_signed(&key).map_err(made)?.pem();
        let issuer = Issuer::new(authority, key);

        let hosts = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut server = CertificateParams::new(hosts).map_err(made)?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_key = KeyPair::generate().map_err(made)?;
        let server_pem = server.signed_by(&server_key, &issuer).map_err(made)?.pem();

        // The API server takes the public half of this pair as a public key only.
        let accounts = KeyPair::generate().map_err(made)?;
        let files = [
            ("ca.crt", authority_pem.clone()),
            ("server.crt", server_pem),
            ("server.key", server_key.serialize_pem()),
            ("accounts.key", accounts.serialize_pem()),
            ("accounts.pub", accounts.public_key_pem()),
            ("tokens.csv", tokens(users)),
        ];
        for (name, text) in files {
            std::fs::write(folder.join(name), text)?;
        }
        Ok(Self {
            authority: authority_pem,
        })
    }

    /// A kubeconfig with everything in it, for one of the users.
    pub(crate) fn kubeconfig(&self, server: &str, user: &str) -> Value {
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.authority);
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "world",
            "clusters": [{ "name": "world", "cluster": {
                "server": server, "certificate-authority-data": authority,
            } }],
            "users": [{ "name": user, "user": { "token": token(user) } }],
            "contexts": [{ "name": "world", "context": { "cluster": "world", "user": user } }],
        })
    }
}

/// Worlds live on loopback and for minutes: a token anybody could guess is no secret worth keeping.
fn token(user: &str) -> String {
    format!("token-of-{}", user.replace(':', "-"))
}

fn tokens(users: &[String]) -> String {
    let line = |(nth, user): (usize, &String)| {
        let group = if user == "admin" {
            ",\"system:masters\""
        } else {
            ""
        };
        format!("{},{user},{nth}{group}\n", token(user))
    };
    users.iter().enumerate().map(line).collect()
}
