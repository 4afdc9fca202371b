//! Field shape: what every record says about itself.

use bigfleet_wire::v1alpha1::{CapacityType, Machine, MachineState as State};

use crate::subject::{Call, configure, grid, has_host, map};
use crate::{Behaviour, Capability, Check, Subject};

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "SHAPE-01",
        "B801",
        Core,
        None,
        identity,
        "id, type and state are set, labels shadow nothing"
    ),
    behaviour!(
        "SHAPE-02",
        "B802",
        Core,
        None,
        costs,
        "prices and probabilities are in bounds"
    ),
    behaviour!(
        "SHAPE-03",
        "B803",
        Core,
        None,
        structure,
        "host and cluster fit the state"
    ),
    behaviour!(
        "SHAPE-04",
        "B804",
        Core,
        None,
        amounts,
        "allocatable and resources can be compared"
    ),
    behaviour!(
        "SHAPE-05",
        "B805",
        Core,
        None,
        provider_label,
        "the host's provider label is constant"
    ),
    behaviour!(
        "SHAPE-06",
        "B806",
        Core,
        None,
        placed,
        "hosts have a zone and a capacity type"
    ),
    behaviour!(
        "SHAPE-07",
        "B807",
        Core,
        Some(Capability::Delete),
        nothing_left,
        "Delete leaves nothing behind"
    ),
];

const SHADOWS: [&str; 9] = [
    "instance-type",
    "instance_type",
    "instanceType",
    "zone",
    "availability-zone",
    "availability_zone",
    "capacity-type",
    "capacity_type",
    "capacityType",
];

pub(crate) fn named(m: &Machine) -> Check {
    ensure!(
        !m.id.is_empty() && !m.instance_type.is_empty(),
        "unnamed: {m:?}"
    );
    ensure!(m.state() != State::Unspecified, "{}: no state", m.id);
    let shadow = SHADOWS.iter().find(|key| m.labels.contains_key(**key));
    ensure!(shadow.is_none(), "{}: label {shadow:?}", m.id);
    Ok(())
}

/// It has a zone, and a tier.
pub(crate) fn in_a_place(m: &Machine) -> Check {
    let (zone, tier) = (&m.zone, m.capacity_type());
    ensure!(
        !zone.is_empty() && tier != CapacityType::Unspecified,
        "{}: zone \"{zone}\", {tier:?}",
        m.id
    );
    Ok(())
}

pub(crate) fn priced(m: &Machine) -> Check {
    let (price, chance) = (m.price_per_hour, m.interruption_probability);
    ensure!(price.is_finite() && 0.0 <= price, "{}: price {price}", m.id);
    ensure!(
        (0.0..=1.0).contains(&chance),
        "{}: probability {chance}",
        m.id
    );
    let spot = m.capacity_type() == CapacityType::Spot;
    ensure!(
        !spot || 0.0 < chance,
        "{}: spot that is never interrupted",
        m.id
    );
    Ok(())
}

async fn identity(subject: &Subject) -> Check {
    subject.inventory().await?.iter().try_for_each(named)
}

async fn costs(subject: &Subject) -> Check {
    subject.inventory().await?.iter().try_for_each(priced)
}

async fn structure(subject: &Subject) -> Check {
    subject.list(&[]).await?.iter().try_for_each(grid)?;
    let (id, mut steps) = subject.newcomer().await?;
    steps.extend([
        (configure("a"), State::Configured),
        (Call::Drain(0), State::Idle),
    ]);
    for (call, target) in steps {
        subject.call(&id, call).await?;
        subject
            .trace(&id, target)
            .await?
            .iter()
            .try_for_each(grid)?;
    }
    Ok(())
}

/// A decimal number with one of the suffixes every consumer knows.
fn amount(text: &str) -> Option<f64> {
    let suffixes = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("m", 1e-3),
        ("", 1.0),
    ];
    let (number, factor) = suffixes
        .iter()
        .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)))?;
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    number
        .parse::<f64>()
        .ok()
        .filter(|_| plain)
        .map(|number| number * factor)
}

async fn amounts(subject: &Subject) -> Check {
    for m in subject.inventory().await? {
        let (Some(base), Some(real)) = (&m.resources, &m.allocatable) else {
            continue;
        };
        for (key, base) in &base.resources {
            let Some(real) = real.resources.get(key) else {
                continue;
            };
            let fine = amount(base).is_some_and(|base| 0.0 < base)
                && amount(real).is_some_and(|real| 0.0 <= real);
            ensure!(fine, "{}: {key} is {base} of which {real}", m.id);
        }
    }
    Ok(())
}

async fn provider_label(subject: &Subject) -> Check {
    let (id, mut steps) = subject.newcomer().await?;
    let mut labels = Vec::new();
    steps.extend([
        (configure("a"), State::Configured),
        (Call::Drain(0), State::Idle),
    ]);
    for (call, target) in steps {
        subject.call(&id, call).await?;
        let got = subject.settled(&id, target).await?;
        let listed = subject
            .list(&[target])
            .await?
            .into_iter()
            .find(|m| m.id == id);
        for m in [Some(got), listed] {
            let host = m.and_then(|m| m.host).unwrap_or_default();
            ensure!(!host.provider.is_empty(), "no provider label at {target:?}");
            labels.push(host.provider);
        }
    }
    labels.dedup();
    ensure!(labels.len() == 1, "the label changed: {labels:?}");
    Ok(())
}

async fn placed(subject: &Subject) -> Check {
    subject.configured("a").await?;
    subject.idle().await?;
    for m in subject.list(&[State::Idle, State::Configured]).await? {
        in_a_place(&m)?;
    }
    Ok(())
}

async fn nothing_left(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    subject
        .call(&id, Call::Configure("a".to_owned(), map(&[("k", "v")])))
        .await?;
    subject.settled(&id, State::Configured).await?;
    subject.call(&id, Call::Drain(0)).await?;
    subject.settled(&id, State::Idle).await?;
    subject.call(&id, Call::Delete).await?;
    let m = subject.settled(&id, State::Speculative).await?;
    let clean = !has_host(&m) && m.cluster.is_empty() && m.shard_metadata.is_empty();
    ensure!(clean, "left behind: {m:?}");
    Ok(())
}
