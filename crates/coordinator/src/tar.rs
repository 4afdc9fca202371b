//! Tar: two files in one, in the oldest form every tool reads.
//!
//! A header of 512 bytes per file, its bytes, zeros up to the next 512; two empty headers at the end. Headers that
//! describe the next one (as some tools write) are passed over.

use crate::archive::{META, STATE};

const BLOCK: usize = 512;
/// The checksum of a header, as if these bytes were spaces.
const SUM: std::ops::Range<usize> = 148..156;
const SIZE: std::ops::Range<usize> = 124..136;

/// The end of an archive.
pub(crate) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// Why bytes are no archive of ours.
#[derive(Debug, thiserror::Error)]
pub enum TarRefused {
    /// A header does not read.
    #[error("damaged: the header at byte {0} does not read")]
    Header(usize),
    /// The archive ends in a file.
    #[error("damaged: it ends in {0}")]
    Cut(String),
    /// Another order than the one it is written in.
    #[error("not an archive of a coordinator: {STATE} comes before {META}")]
    Order,
    /// A file is not there.
    #[error("not an archive of a coordinator: it has no {0}")]
    Missing(&'static str),
    /// A file is there again.
    #[error("damaged: {0} is there twice")]
    Twice(&'static str),
}

fn octal(header: &mut [u8; BLOCK], field: std::ops::Range<usize>, value: u64) {
    let digits = field.len() - 1;
    let text = format!("{value:0digits$o}\0");
    header[field].copy_from_slice(text.as_bytes());
}

/// The header of a file.
pub(crate) fn header(name: &str, size: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    header[..name.len()].copy_from_slice(name.as_bytes());
    octal(&mut header, 100..108, 0o644);
    octal(&mut header, 108..116, 0);
    octal(&mut header, 116..124, 0);
    octal(&mut header, SIZE, size);
    octal(&mut header, 136..148, 0);
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum = format!("{:06o}\0 ", sum(&header));
    header[SUM].copy_from_slice(sum.as_bytes());
    header
}

fn sum(header: &[u8]) -> u64 {
    let bytes = header.iter().enumerate();
    bytes
        .map(|(at, byte)| u64::from(if SUM.contains(&at) { b' ' } else { *byte }))
        .sum()
}

/// What follows a file of this size.
pub(crate) fn padding(size: u64) -> Vec<u8> {
    let block = BLOCK as u64;
    let over = usize::try_from(size.next_multiple_of(block) - size).unwrap_or_default();
    vec![0; over]
}

fn number(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
}

/// The two files.
pub(crate) fn read(bytes: &[u8]) -> Result<(&[u8], &[u8]), TarRefused> {
    let (mut meta, mut state) = (None, None);
    let mut at = 0;
    while let Some(header) = bytes.get(at..at + BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        if number(&header[SUM]) != Some(sum(header)) {
            return Err(TarRefused::Header(at));
        }
        let size = number(&header[SIZE]).and_then(|size| usize::try_from(size).ok());
        let size = size.ok_or(TarRefused::Header(at))?;
        let name = header[..100].split(|byte| *byte == 0).next();
        let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
        let begin = at + BLOCK;
        let end = begin.checked_add(size).ok_or(TarRefused::Header(at))?;
        let data = bytes.get(begin..end);
        let data = data.ok_or_else(|| TarRefused::Cut(name.clone()))?;
        let is_file = matches!(header[156], b'0' | 0);
        match name.trim_start_matches("./") {
            META if is_file && meta.replace(data).is_some() => return Err(TarRefused::Twice(META)),
            STATE if is_file && meta.is_none() => return Err(TarRefused::Order),
            STATE if is_file && state.replace(data).is_some() => {
                return Err(TarRefused::Twice(STATE));
            }
            _ => {}
        }
        at = begin.saturating_add(size.next_multiple_of(BLOCK));
    }
    let is_cut = state.is_none() && at < bytes.len() && bytes.len() - at < BLOCK;
    if is_cut {
        return Err(TarRefused::Header(at));
    }
    let meta = meta.ok_or(TarRefused::Missing(META))?;
    Ok((meta, state.ok_or(TarRefused::Missing(STATE))?))
}
