//! The config file: shards by name, so that nobody types an address and three files each time.
//!
//! ```yaml
//! current-context: prod
//! contexts:
//! - name: prod
//!   shard: shard-0.prod.example:7780
//!   tls-cert: /home/ann/certs/admin/ann/cert.pem
//!   tls-key: /home/ann/certs/admin/ann/key.pem
//!   tls-ca: /home/ann/certs/admin/ann/ca.pem
//! ```

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use bigfleet_net::TlsFiles;
use serde::{Deserialize, Serialize};

use crate::error::CtlError;
use crate::output::{Answer, Listable, Style, list};
use crate::select::Fact;
use crate::text::Field;
use crate::{output::AnswerSource, own_file};

/// A shard, and how to call it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Context {
    /// What people call it.
    pub name: String,
    /// Its address, `host:port`.
    pub shard: String,
    /// The certificate to show; all three files or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// The authority of the shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<PathBuf>,
}

impl Context {
    /// Its certificates, all or none.
    pub fn files(&self) -> Result<Option<TlsFiles>, CtlError> {
        let (cert, key, ca) = (&self.tls_cert, &self.tls_key, &self.tls_ca);
        TlsFiles::all_or_none(cert.clone(), key.clone(), ca.clone())
            .map_err(|why| CtlError::Local(format!("context \"{}\": {why}", self.name)))
    }
}

/// All contexts, and the one in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// The context that verbs use if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_context: Option<String>,
    /// Every context.
    #[serde(default)]
    pub contexts: Vec<Context>,
}

/// Where the file is: `$BIGFLEET_CONFIG`, else below `$XDG_CONFIG_HOME`, else below `~/.config`.
pub fn path() -> Option<PathBuf> {
    let named = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let file = |folder: PathBuf| folder.join("bigfleet").join("config.yaml");
    named("BIGFLEET_CONFIG")
        .or_else(|| named("XDG_CONFIG_HOME").map(file))
        .or_else(|| named("HOME").map(|home| file(home.join(".config"))))
}

impl Config {
    /// What the file says; empty if there is none. One that others could have written is an error: it says
    /// which shard is steered, and with which key.
    pub fn load(path: &Path) -> Result<Self, CtlError> {
        let refused = |why: &dyn std::fmt::Display| {
            CtlError::Local(format!("{} is not used: {why}", path.display()))
        };
        let text = own_file::read(path).map_err(|why| refused(&why))?;
        let config = text.map(|text| serde_norway::from_str(&text));
        let config = config.transpose().map_err(|why| refused(&why))?;
        Ok(config.unwrap_or_default())
    }

    /// Writes the file, for this user alone.
    pub fn save(&self, path: &Path) -> Result<(), CtlError> {
        let refused = |why: &dyn std::fmt::Display| {
            CtlError::Local(format!("{} cannot be written: {why}", path.display()))
        };
        if let Some(folder) = path.parent() {
            let mut made = fs::DirBuilder::new();
            made.recursive(true).mode(0o700);
            made.create(folder).map_err(|why| refused(&why))?;
        }
        let text = serde_norway::to_string(self).map_err(|why| refused(&why))?;
        own_file::replace(path, &text).map_err(|why| refused(&why))
    }

    /// The context of that name.
    pub fn context(&self, name: &str) -> Result<&Context, CtlError> {
        let found = self.contexts.iter().find(|context| context.name == name);
        found.ok_or_else(|| CtlError::NotFound {
            kind: "context",
            name: name.to_owned(),
            hint: "; `bigfleet config get-contexts` lists what there is".to_owned(),
        })
    }

    /// Adds a context, or replaces the one of its name.
    pub fn set(&mut self, context: Context) {
        self.contexts.retain(|other| other.name != context.name);
        self.contexts.push(context);
        self.contexts.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// The contexts as a list.
    pub fn list(&self, style: &Style) -> Answer {
        let row = |context: &Context| ListedContext {
            current: self.current_context.as_ref() == Some(&context.name),
            context: context.clone(),
        };
        let rows: Vec<ListedContext> = self.contexts.iter().map(row).collect();
        let nothing =
            "no contexts: make one with `bigfleet config set-context NAME --shard HOST:PORT`";
        Answer {
            text: list(&rows, &AnswerSource::default(), style),
            notes: Vec::from_iter(rows.is_empty().then(|| nothing.to_owned())),
            failed: None,
        }
    }
}

#[derive(Debug, Serialize)]
struct ListedContext {
    current: bool,
    #[serde(flatten)]
    context: Context,
}

impl Listable for ListedContext {
    const ONE: &'static str = "context";
    const MANY: &'static str = "contexts";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &["CURRENT", "NAME", "SHARD", "CERTIFICATE"],
        &["KEY", "AUTHORITY"],
    );

    const KEYS: &'static [&'static str] = &["name", "shard"];

    fn name(&self) -> String {
        self.context.name.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.context.name == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "name" | "context" => Fact::text(&self.context.name),
            "shard" => Fact::text(&self.context.shard),
            _ => None,
        }
    }

    fn fields(&self, _: i64) -> Vec<Field> {
        vec![
            Field::from(if self.current { "*" } else { "" }),
            self.context.name.clone().into(),
            self.context.shard.clone().into(),
            shown(self.context.tls_cert.as_ref()),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        vec![
            shown(self.context.tls_key.as_ref()),
            shown(self.context.tls_ca.as_ref()),
        ]
    }
}

fn shown(path: Option<&PathBuf>) -> Field {
    Field::from(path.map_or_else(String::new, |path| path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_reads_back_and_one_that_others_may_write_is_not_used() {
        let folder = std::env::temp_dir().join(format!("bigfleet-config-{}", std::process::id()));
        let path = folder.join("bigfleet/config.yaml");
        assert_eq!(Config::load(&path).unwrap(), Config::default());
        let mut config = Config::default();
        for (name, shard) in [("prod", "a:1"), ("dev", "b:1"), ("prod", "c:1")] {
            config.set(Context {
                name: name.to_owned(),
                shard: shard.to_owned(),
                ..Context::default()
            });
        }
        config.current_context = Some("prod".to_owned());
        config.save(&path).unwrap();
        let read = Config::load(&path).unwrap();
        assert_eq!(read, config);
        assert_eq!(read.context("prod").unwrap().shard, "c:1");
        let unknown = read.context("nowhere").unwrap_err().to_string();
        assert!(unknown.contains("get-contexts"), "{unknown}");
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        mode(0o666);
        let refused = Config::load(&path).unwrap_err().to_string();
        assert!(refused.contains("others may write"), "{refused}");
        mode(0o600);
        fs::write(&path, "contexts: [{name: x}]").unwrap();
        assert!(Config::load(&path).is_err());
        let link = folder.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Config::load(&link).is_err(), "a link is not followed");
        fs::remove_dir_all(folder).unwrap();
    }
}
