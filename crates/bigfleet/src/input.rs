//! The fleet file named on the command line.

use crate::failure::Failure;
use bigfleet_fleet_file::{Format, Loaded, MAX_FILE_BYTES, read};
use std::{fs::File, io::Read, path::Path};

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
