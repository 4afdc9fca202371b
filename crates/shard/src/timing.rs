//! Timing: how long each cycle, commit and List took, one by one, for whoever asks the log for it.
//!
//! Metrics hold buckets and sums; a percentile takes the measurements themselves:
//! `--log-level=info,bigfleet_shard::timing=debug`.

use std::time::Duration;

/// What to name in a log filter.
pub(crate) const TIMING: &str = "bigfleet_shard::timing";

pub(crate) fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}
