//! Moments as the file has them.

use bigfleet_model::Time;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const MICROS_PER_SECOND: f64 = 1e6;
const NANOS_PER_MICRO: i64 = 1_000;

/// A moment as the file has it: unix seconds, as the nearest double. That is less than half a microsecond
/// away within 272 years of the origin, so whole microseconds are read back exactly.
pub(in super::super) fn seconds(moment: Time) -> f64 {
    let whole = moment.nanos().div_euclid(NANOS_PER_SECOND);
    let nanos = moment.nanos().rem_euclid(NANOS_PER_SECOND);
    whole as f64 + nanos as f64 / NANOS_PER_SECOND as f64
}

/// The moment to the microsecond, if the number can be one.
pub(in super::super) fn moment(seconds: f64) -> Result<Time, String> {
    let whole = seconds.floor();
    let nanos = ((seconds - whole) * MICROS_PER_SECOND).round() as i64 * NANOS_PER_MICRO;
    let in_range = whole.is_finite() && whole.abs() < i64::MAX as f64;
    let all = in_range.then(|| (whole as i64).checked_mul(NANOS_PER_SECOND));
    let all = all.flatten().and_then(|whole| whole.checked_add(nanos));
    let moment = all.map(Time::from_nanos);
    moment.ok_or_else(|| format!("{seconds} is no moment"))
}
