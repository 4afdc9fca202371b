//! Memory of a process in megabytes (2^20 bytes), as the kernel counts it.

/// What is resident now; `None` where the system does not tell.
pub(crate) fn resident_mb(pid: u32) -> Option<f64> {
    megabytes(pid, "VmRSS:")
}

/// The most that ever was resident; `None` where the system does not tell.
pub(crate) fn peak_mb(pid: u32) -> Option<f64> {
    megabytes(pid, "VmHWM:")
}

fn megabytes(pid: u32, field: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(crate::percentiles::rounded(kilobytes / 1024.0))
}
