//! `bigfleet config`: shards by name.

use crate::{connection::print, failure::Failure, output::ListFormArgs};
use bigfleet_ctl::{
    CtlError, Style,
    config::{self, Config, Context},
};
use bigfleet_net::{Dial, TlsFlags};
use clap::{Args as ClapArgs, Subcommand};
use std::path::{Path, PathBuf};

/// `bigfleet config`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the contexts: named shards, and how to call them
    GetContexts {
        #[command(flatten)]
        form: ListFormArgs,
    },
    /// Use this context from now on
    UseContext {
        /// Its name
        name: String,
    },
    /// Add a context, or replace the one of that name
    SetContext(SetArgs),
}

#[derive(Debug, ClapArgs)]
struct SetArgs {
    /// Its name
    name: String,
    /// The shard it means
    #[arg(long, value_name = "HOST:PORT")]
    shard: String,
    /// Certificates.
    #[command(flatten)]
    tls: TlsFlags,
}

/// Does what was asked with the config file.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let nowhere = "there is no place for a config file: set BIGFLEET_CONFIG or HOME";
    let path = config::path().ok_or_else(|| Failure::Undone(nowhere.to_owned()))?;
    let mut config = Config::load(&path)?;
    match &args.what {
        What::GetContexts { form } => {
            let style = Style {
                form: form.output.clone(),
                ..Style::default()
            };
            return print(config.list(&style));
        }
        What::UseContext { name } => {
            config.context(name)?;
            config.current_context = Some(name.clone());
        }
        What::SetContext(args) => config.set(context(args)?),
    }
    Ok(config.save(&path)?)
}

fn context(args: &SetArgs) -> Result<Context, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::Input(format!("set-context: {why}"));
    Dial::check(&args.shard).map_err(|why| wrong(&format!("--shard {why}")))?;
    let files = args.tls.files().map_err(|why| wrong(&why))?;
    let absolute = |path: &Path| -> Result<PathBuf, CtlError> {
        // The verbs are called from anywhere.
        let found = std::path::absolute(path);
        found.map_err(|why| CtlError::Local(format!("{}: {why}", path.display())))
    };
    let paths = files.map(|files| {
        Ok::<_, CtlError>((
            absolute(&files.cert)?,
            absolute(&files.key)?,
            absolute(&files.ca)?,
        ))
    });
    let (tls_cert, tls_key, tls_ca) = match paths.transpose()? {
        Some((cert, key, ca)) => (Some(cert), Some(key), Some(ca)),
        None => (None, None, None),
    };
    Ok(Context {
        name: args.name.clone(),
        shard: args.shard.clone(),
        tls_cert,
        tls_key,
        tls_ca,
    })
}
