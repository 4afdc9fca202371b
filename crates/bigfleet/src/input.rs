//! The fleet that is decided about: a file, or what a running shard holds.

use crate::{connection::ConnectionArgs, failure::Failure};
use bigfleet_ctl::export;
use bigfleet_fleet_file::{Format, Loaded, MAX_FILE_BYTES, read};
use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

/// Reads the file, or stdin for `-`. Never takes in more than a file may have.
pub(crate) fn load(path: &Path) -> Result<Loaded, Failure> {
    let unreadable = |error| Failure::Input(format!("{}: cannot be read: {error}", path.display()));
    let mut text = Vec::new();
    let most = MAX_FILE_BYTES as u64 + 1;
    let taken = match path.to_str() {
        Some("-") => std::io::stdin().lock().take(most).read_to_end(&mut text),
        _ => File::open(path).and_then(|file| file.take(most).read_to_end(&mut text)),
    };
    taken.map_err(unreadable)?;
    let format = Format::of(&path.to_string_lossy(), &text);
    read(&text, format).map_err(|refused| Failure::Input(refused.to_string()))
}

/// Takes the fleet of a shard, whole and checked, and keeps it in a file if asked to. A file that was
/// there before is replaced only by one that can be read.
pub(crate) fn take(
    connection: &ConnectionArgs,
    said: Option<&str>,
    cluster: &str,
    save: Option<&Path>,
) -> Result<Loaded, Failure> {
    let taken = async |client| export(&client, cluster, MAX_FILE_BYTES).await;
    let text = connection.ask(said, taken)?;
    let loaded = read(&text, Format::Json).map_err(|refused| {
        Failure::Undone(format!(
            "the shard sent a fleet that cannot be read:\n{refused}"
        ))
    })?;
    if let Some(path) = save {
        keep(path, &text).map_err(|error| {
            Failure::Undone(format!("{}: cannot be written: {error}", path.display()))
        })?;
    }
    Ok(loaded)
}

/// Writes beside the file and then moves it there, so that nobody finds half of it.
fn keep(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".{}", std::process::id()));
    let kept = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path));
    if kept.is_err() {
        drop(fs::remove_file(&unfinished));
    }
    kept
}
