//! Kubeconfig: where a cluster is, whom to trust, and who we are.
//!
//! ```text
//! contexts[current] ─▶ cluster: server, authority      user: token, token file, certificate, or a program that prints one
//! no file, in a Pod ─▶ the account that is mounted there
//! ```
//!
//! A field that would change who is trusted and is not understood here is refused, not passed over.

use crate::credentials::{Credentials, ExecPlugin};
use base64::Engine;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Everything it takes to make a call.
pub(crate) struct Access {
    pub(crate) server: String,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) credentials: Credentials,
    pub(crate) namespace: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Kubeconfig {
    current_context: String,
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
}

#[derive(Debug, Deserialize)]
struct NamedCluster {
    name: String,
    cluster: ClusterEntry,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct ClusterEntry {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: bool,
    proxy_url: Option<String>,
    tls_server_name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct NamedUser {
    name: String,
    user: UserEntry,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct UserEntry {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    username: Option<String>,
    exec: Option<ExecPlugin>,
    auth_provider: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct NamedContext {
    name: String,
    context: ContextEntry,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContextEntry {
    cluster: String,
    user: String,
    namespace: Option<String>,
}

/// The files to read: the one named, else those of `KUBECONFIG` that are there, else the usual one.
pub(crate) fn files(named: Option<&Path>) -> Vec<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(named) = named.filter(|path| !path.as_os_str().is_empty()) {
        return vec![named.to_owned()];
    }
    if let Some(listed) = set("KUBECONFIG") {
        let files = std::env::split_paths(&listed);
        return files.filter(|file| file.is_file()).collect();
    }
    let usual = set("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
    usual.filter(|file| file.is_file()).into_iter().collect()
}

/// Several files are read as if they were one, as kubectl does: of two entries of one name the first counts, and paths are
/// from the folder of the file they stand in.
struct Merged(Vec<(Kubeconfig, PathBuf)>);

impl Merged {
    fn find<T>(&self, of: impl Fn(&Kubeconfig) -> Option<&T>) -> Option<(&T, &Path)> {
        let mut found = self.0.iter();
        found.find_map(|(config, folder)| Some((of(config)?, folder.as_path())))
    }

    fn current_context(&self) -> &str {
        let named = |config: &Kubeconfig| !config.current_context.is_empty();
        let first = self.0.iter().find(|(config, _)| named(config));
        first.map_or("", |(config, _)| &config.current_context)
    }
}

impl Access {
    /// From files; the refusal names the one that is to blame.
    pub(crate) fn read(
        files: &[PathBuf],
        context: Option<&str>,
    ) -> Result<Self, (PathBuf, String)> {
        let mut read = Vec::new();
        for file in files {
            let blamed = |why: String| (file.clone(), why);
            let text = std::fs::read_to_string(file).map_err(|why| blamed(why.to_string()))?;
            let config: Kubeconfig =
                serde_norway::from_str(&text).map_err(|why| blamed(why.to_string()))?;
            let folder = file.parent().unwrap_or(Path::new("."));
            read.push((config, folder.to_owned()));
        }
        Self::of(&Merged(read), context).map_err(|why| {
            let all = std::env::join_paths(files).unwrap_or_default();
            (PathBuf::from(all), why)
        })
    }

    fn of(config: &Merged, context: Option<&str>) -> Result<Self, String> {
        let wanted = context.unwrap_or_else(|| config.current_context());
        let missing = |what: &str, name: &str| format!("it has no {what} \"{name}\"");
        let context = config.find(|it| it.contexts.iter().find(|it| it.name == wanted));
        let context = &context.ok_or_else(|| missing("context", wanted))?.0.context;
        let cluster = config.find(|it| it.clusters.iter().find(|it| it.name == context.cluster));
        let (cluster, folder) = cluster.ok_or_else(|| missing("cluster", &context.cluster))?;
        let cluster = &cluster.cluster;
        let authority = bytes(
            &cluster.certificate_authority_data,
            &cluster.certificate_authority,
            folder,
        );
        let user = config.find(|it| it.users.iter().find(|it| it.name == context.user));
        let (user, folder) = user.map_or((UserEntry::default(), folder), |(user, folder)| {
            (user.user.clone(), folder)
        });
        for (is_there, name) in [
            (cluster.insecure_skip_tls_verify, "insecure-skip-tls-verify"),
            (cluster.proxy_url.is_some(), "proxy-url"),
            (cluster.tls_server_name.is_some(), "tls-server-name"),
            (user.username.is_some(), "username and password"),
            (user.auth_provider.is_some(), "auth-provider"),
        ] {
            if is_there {
                return Err(format!(
                    "{name} is not supported; use a certificate authority, and a token, certificate or exec"
                ));
            }
        }
        let bytes = |data: &Option<String>, path: &Option<PathBuf>| bytes(data, path, folder);
        let certificate = bytes(&user.client_certificate_data, &user.client_certificate)?;
        let key = bytes(&user.client_key_data, &user.client_key)?;
        let credentials = match (user.token, user.token_file, user.exec) {
            (Some(token), None, None) => Credentials::Token(token),
            (_, Some(file), None) => Credentials::file(folder.join(file)),
            (None, None, Some(exec)) => Credentials::exec(exec, folder),
            (None, None, None) => Credentials::None,
            _ => return Err("a user has more than one of token, tokenFile and exec".to_owned()),
        };
        Ok(Self {
            tls: tls(&cluster.server, authority?, certificate.zip(key))?,
            server: cluster.server.clone(),
            credentials,
            namespace: context.namespace.clone().unwrap_or("default".to_owned()),
        })
    }

    /// From the account of the Pod this process is in.
    pub(crate) fn of_pod() -> Result<Self, String> {
        let var = |name: &str| {
            std::env::var(name).map_err(|_| format!("{name} is not set, so this is no Pod"))
        };
        let (host, port) = (
            var("KUBERNETES_SERVICE_HOST")?,
            var("KUBERNETES_SERVICE_PORT")?,
        );
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host
        };
        let server = format!("https://{host}:{port}");
        let folder = Path::new(ACCOUNT);
        let read = |name: &str| {
            std::fs::read(folder.join(name)).map_err(|why| format!("{ACCOUNT}/{name}: {why}"))
        };
        let namespace = String::from_utf8_lossy(&read("namespace")?)
            .trim()
            .to_owned();
        Ok(Self {
            tls: tls(&server, Some(read("ca.crt")?), None)?,
            server,
            credentials: Credentials::file(folder.join("token")),
            namespace,
        })
    }
}

/// What is written in the file, or in the one it names.
fn bytes(
    data: &Option<String>,
    path: &Option<PathBuf>,
    folder: &Path,
) -> Result<Option<Vec<u8>>, String> {
    match (data, path) {
        (Some(data), _) => {
            let decoded = base64::engine::general_purpose::STANDARD.decode(data.trim());
            decoded
                .map(Some)
                .map_err(|why| format!("data that is no base64: {why}"))
        }
        (None, Some(path)) => {
            let path = folder.join(path);
            let read = std::fs::read(&path).map(Some);
            read.map_err(|why| format!("{}: {why}", path.display()))
        }
        (None, None) => Ok(None),
    }
}

fn tls(
    server: &str,
    authority: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<Option<Arc<ClientConfig>>, String> {
    if server.starts_with("http://") {
        return Ok(None);
    }
    let authority = authority.ok_or("a cluster needs its certificate-authority")?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&authority) {
        let certificate = certificate.map_err(|why| format!("certificate-authority: {why}"))?;
        roots
            .add(certificate)
            .map_err(|why| format!("certificate-authority: {why}"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config
        .with_safe_default_protocol_versions()
        .map_err(|why| why.to_string())?;
    let config = config.with_root_certificates(roots);
    let config = match identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
            let chain = chain.map_err(|why| format!("client-certificate: {why}"))?;
            let key =
                PrivateKeyDer::from_pem_slice(&key).map_err(|why| format!("client-key: {why}"))?;
            let config = config.with_client_auth_cert(chain, key);
            config.map_err(|why| format!("client-certificate: {why}"))?
        }
    };
    Ok(Some(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str], context: Option<&str>) -> Result<Access, String> {
        let parsed = texts.iter().map(|text| {
            let config = serde_norway::from_str(text).map_err(|why| why.to_string())?;
            Ok((config, PathBuf::from(".")))
        });
        let parsed: Result<_, String> = parsed.collect();
        Access::of(&Merged(parsed?), context)
    }

    fn refused(text: &str, context: Option<&str>) -> String {
        read(&[text], context).err().unwrap()
    }

    /// As kubectl merges the files of `KUBECONFIG`.
    #[test]
    fn several_files_are_one_and_the_first_entry_of_a_name_counts() {
        let contexts = "contexts: [{name: a, context: {cluster: c, user: u, namespace: shop}}, {name: b, context: {cluster: d}}]";
        let one = "current-context: ''\nclusters: [{name: c, cluster: {server: 'http://one:1'}}]";
        let two = format!(
            "current-context: a\n{contexts}\nclusters: [{{name: c, cluster: {{server: 'http://two:1'}}}},\
             {{name: d, cluster: {{server: 'http://three:1'}}}}]"
        );
        let found = |context| {
            let access = read(&[one, &two], context).ok().unwrap();
            (access.server, access.namespace)
        };
        assert_eq!(found(None), ("http://one:1".to_owned(), "shop".to_owned()));
        assert_eq!(found(Some("b")).0, "http://three:1");
        assert!(read(&[one], None).err().unwrap().contains("no context"));
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        let config = |cluster: &str, user: &str| {
            format!(
                "current-context: a\ncontexts: [{{name: a, context: {{cluster: c, user: u}}}}]\n\
                 clusters: [{{name: c, cluster: {{server: 'https://x:1'{cluster}}}}}]\n\
                 users: [{{name: u, user: {{{user}}}}}]\n"
            )
        };
        assert!(refused("a: [", None).contains("line"));
        assert!(refused(&config("", ""), Some("z")).contains("no context \"z\""));
        assert!(
            refused(&config(", insecure-skip-tls-verify: true", ""), None)
                .contains("insecure-skip-tls-verify")
        );
        assert!(refused(&config("", "username: x"), None).contains("username"));
        assert!(refused(&config("", "token: t"), None).contains("certificate-authority"));
        let two = config(
            "",
            "token: t, exec: {command: x, apiVersion: client.authentication.k8s.io/v1}",
        );
        assert!(refused(&two, None).contains("more than one"));
        let broken = config(", certificate-authority-data: '!'", "token: t");
        assert!(refused(&broken, None).contains("base64"));
    }
}
