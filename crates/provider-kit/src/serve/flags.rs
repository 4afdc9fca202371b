//! The flags every provider has, the boot contract among them, so that a suite can start any of them.

use std::path::PathBuf;
use std::time::Duration;

use bigfleet_net::{LogFlags, ServingFlags, TlsRefused};

use super::process::Settings;
use crate::options::{Fencing, Options, Timeouts};

const USUAL_METRICS: &str = ":9090";

/// The flags every provider has.
#[derive(Clone, Debug, clap::Args)]
pub struct ProviderFlags {
    /// The address shards connect to; without a host, only from this one
    #[arg(long, default_value = ":9000")]
    pub addr: String,
    /// The provider's name, written on every host [default: the one it has by itself]
    #[arg(long)]
    pub provider: Option<String>,
    /// Keep all state in this file [default: none, everything is lost when the process ends]
    #[arg(long)]
    pub state: Option<PathBuf>,
    /// Accepted because every provider has it; changes nothing
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub use_fake_backend: Option<bool>,
    /// How often to compare its records with the machines that exist
    #[arg(long, value_parser = duration, default_value = "2m")]
    pub reconcile_interval: Duration,
    /// How often to ask for prices; until then the last known prices are shown
    #[arg(long, value_parser = duration, default_value = "30m")]
    pub price_refresh: Duration,
    /// The address of /metrics, /healthz and /readyz; empty for none [default: :9090 if it is free]
    #[arg(long)]
    pub metrics_addr: Option<String>,
    /// Answer gRPC reflection, if --addr is only for this host
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = clap::ArgAction::Set)]
    pub reflection: bool,
    /// Offer a failed machine again after this long [default: never]
    #[arg(long, value_parser = duration)]
    pub clean_up_after: Option<Duration>,
    /// Refuse changes without a fencing token, and changes by an older process of the same shard
    #[arg(long)]
    pub strict_fencing: bool,
    /// Certificates.
    #[command(flatten)]
    pub serving: ServingFlags,
    /// Logs.
    #[command(flatten)]
    pub logs: LogFlags,
}

impl ProviderFlags {
    /// How the provider is to be run; `name` is the one in metrics.
    pub fn settings(&self, name: &str, timeouts: Timeouts) -> Result<Settings, TlsRefused> {
        let metrics_addr = self.metrics_addr.clone();
        let state = self.state.clone();
        let fencing = if self.strict_fencing {
            Fencing::Strict
        } else {
            Fencing::PerMachine
        };
        Ok(Settings {
            metrics_addr: Some(metrics_addr.unwrap_or_else(|| USUAL_METRICS.to_owned())),
            // Two providers on one host both want the usual address; the second goes without.
            metrics_required: self.metrics_addr.is_some(),
            state: state.filter(|state| !state.as_os_str().is_empty()),
            reflection: self.reflection,
            tls: self.serving.tls.files()?,
            insecure: self.serving.insecure,
            options: Options {
                timeouts,
                clean_up_after: self.clean_up_after,
                fencing,
                ..Options::default()
            },
            reconcile_interval: self.reconcile_interval,
            price_refresh: self.price_refresh,
            ..Settings::new(name, &self.addr)
        })
    }
}

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a duration like 250ms, 2s, 1m30s or 1h")]
pub struct DurationRefused(String);

/// Reads a duration like `250ms`, `2s`, `1m30s` or `1h`.
pub fn duration(text: &str) -> Result<Duration, DurationRefused> {
    let refused = || DurationRefused(text.to_owned());
    let of_number = |c: char| c.is_ascii_digit() || c == '.';
    let (mut rest, mut sum) = (text.trim(), Duration::ZERO);
    if rest.is_empty() {
        return Err(refused());
    }
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c| !of_number(c)).ok_or_else(refused)?);
        let (unit, after) = after.split_at(after.find(of_number).unwrap_or(after.len()));
        let seconds = match unit {
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(refused()),
        };
        let number: f64 = number.parse().map_err(|_| refused())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| refused())?;
        sum = sum.checked_add(part).ok_or_else(refused)?;
        rest = after;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let seconds = |text: &str| duration(text).unwrap().as_secs_f64();
        assert_eq!(seconds("250ms"), 0.25);
        assert_eq!(seconds("1m30s"), 90.0);
        assert_eq!(seconds(" 1.5h "), 5400.0);
        for refused in [
            "",
            "s",
            "5",
            "5d",
            "-5s",
            "1e3s",
            "5s5",
            "999999999999999999h",
        ] {
            assert!(duration(refused).is_err(), "{refused}");
        }
    }
}
