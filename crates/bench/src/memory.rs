//! How much memory the process has needed at most.

/// Megabytes (2^20 bytes) resident at the peak; `None` where the system does not tell.
pub(crate) fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(crate::percentiles::rounded(kilobytes / 1024.0))
}
