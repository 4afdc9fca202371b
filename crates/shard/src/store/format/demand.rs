//! What clusters asked for: the demand in force, and what it replaced within ten minutes.

use bigfleet_model::{Amounts, Dimension, Time};
use bigfleet_shard_core::{Baseline, Record};
use prost::Message;

use super::moments::{moment, seconds};
use super::{Value, cluster_id};

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoredCluster {
    #[prost(uint64, tag = "1")]
    rows: u64,
    #[prost(message, repeated, tag = "2")]
    totals: Vec<Total>,
    /// Absent: nothing larger is remembered, as in every file before there was this field.
    #[prost(message, repeated, tag = "3")]
    replaced: Vec<ReplacedDemand>,
}

#[derive(Clone, PartialEq, Message)]
struct ReplacedDemand {
    #[prost(double, tag = "1")]
    until: f64,
    #[prost(uint64, tag = "2")]
    rows: u64,
    #[prost(message, repeated, tag = "3")]
    totals: Vec<Total>,
}

#[derive(Clone, PartialEq, Message)]
struct Total {
    #[prost(string, tag = "1")]
    dimension: String,
    #[prost(bytes = "vec", tag = "2")]
    milli: Vec<u8>,
}

impl Total {
    fn all(amounts: &Amounts) -> Vec<Self> {
        let totals = amounts.iter().map(|(dimension, milli)| Self {
            dimension: dimension.to_string(),
            milli: milli.to_le_bytes().to_vec(),
        });
        totals.collect()
    }
}

impl Value {
    pub(in super::super) fn of_cluster(baseline: &Baseline, replaced: &[(Time, Baseline)]) -> Self {
        let replaced = replaced.iter().map(|(until, demand)| ReplacedDemand {
            until: seconds(*until),
            rows: demand.rows as u64,
            totals: Total::all(&demand.totals),
        });
        let cluster = StoredCluster {
            rows: baseline.rows as u64,
            totals: Total::all(&baseline.totals),
            replaced: replaced.collect(),
        };
        Self {
            cluster: Some(cluster),
            ..Self::default()
        }
    }
}

/// What is remembered of a cluster.
pub(in super::super) fn cluster(key: &str, bytes: &[u8]) -> Result<Record, String> {
    let stored = Value::unseal(bytes)?.cluster;
    let stored = stored.ok_or("it is no cluster's")?;
    let replaced = stored.replaced.iter().map(|demand| {
        let baseline = baseline(demand.rows, &demand.totals)?;
        Ok((moment(demand.until)?, baseline))
    });
    let replaced: Result<Vec<(Time, Baseline)>, String> = replaced.collect();
    Ok(Record::Cluster {
        cluster: cluster_id(key)?,
        baseline: baseline(stored.rows, &stored.totals)?,
        replaced: replaced?,
    })
}

fn baseline(rows: u64, stored: &[Total]) -> Result<Baseline, String> {
    let mut totals = Vec::with_capacity(stored.len());
    for total in stored {
        let dimension = Dimension::new(&total.dimension).map_err(|why| why.to_string())?;
        let milli: [u8; 16] = total.milli.as_slice().try_into().map_err(|_| "no amount")?;
        totals.push((dimension, i128::from_le_bytes(milli)));
    }
    Ok(Baseline {
        rows: usize::try_from(rows).map_err(|why| why.to_string())?,
        totals: Amounts::from_entries(totals),
    })
}
