//! The 5k profiles (workloads.md §5), with their inverted gates judged by program.
//!
//! ```text
//! Scale ── seed ──▶ Workload ─▶ rows as they are, machines as they stand ─▶ Plan
//! ```
//!
//! Rows are the realistic catalogue's; Pods are not looked at. What a profile must show (a standing
//! shortfall, preemption, routing) is a gate like any other: a profile that does not show it fails.

use super::Scenario;
use crate::{
    clock::{Moment, minutes, seconds},
    dice::{Dice, Latency},
    gate::{ACQUIRE, Count, Gate, MOVES},
    plan::{Change, ClusterPlan, Load, MachinePlan, Plan, Stages, Start, Weather, Work},
    world::World,
};
use bigfleet_model::{
    ActionKind, Amounts, CapacityType, Shape, State,
    quantity::{format_milli, parse_supply},
};
use bigfleet_provider_kit::{Machine, Offer, TextMap};
use bigfleet_workloads::{Elastic, Preset, Scale, SeededMachine, Workload};
use std::{collections::BTreeMap, sync::Arc};

pub(super) const ALL: &[Scenario] = &[
    Scenario::large(
        "scarcity-5k",
        "machines for six tenths of the demand: only batch stays short, and nothing churns",
        scarcity,
    ),
    Scenario::large(
        "preemption-5k",
        "a burst of critical demand over a full fleet: batch gives way, and gets its machines back afterwards",
        preemption,
    ),
    Scenario::large(
        "oscillation-5k",
        "demand halves and doubles twice: the second shrink costs as many actions as the first",
        oscillation,
    ),
    Scenario::large(
        "cost-routing-5k",
        "10,000 slots, on-demand and spot: workloads that mind interruption are on on-demand machines",
        cost_routing,
    ),
    Scenario::large(
        "spot-churn-5k",
        "machines break fifty times as often as usual: each is replaced, and nothing is drained because of it",
        spot_churn,
    ),
    Scenario::large(
        "uber-5k",
        "20 clusters of 95 cache gangs and 32 GPU gangs each, 2,580 rows over 18,000 machines: every one settles",
        cardinality,
    ),
];

fn texts(amounts: &Amounts) -> TextMap {
    let text =
        |(name, milli): (&bigfleet_model::Dimension, i128)| (name.to_string(), format_milli(milli));
    amounts.iter().map(text).collect()
}

fn offer(shape: &Shape, machine: &SeededMachine) -> Offer {
    let tier = machine.tier;
    Offer {
        instance_type: shape.instance_type.clone(),
        zone: shape.zone.clone(),
        capacity_type: shape.capacity_type,
        price_per_hour: tier.price().dollars_per_hour(),
        interruption_probability: tier.interruption().per_hour(),
        resources: texts(&shape.resources),
        allocatable: shape.allocatable.as_ref().map(texts).unwrap_or_default(),
        labels: shape.labels.clone(),
    }
}

/// A workload as a plan: its rows, and its machines where they stand.
fn plan(workload: &Workload) -> Plan {
    let cluster = |cluster: bigfleet_workloads::Cluster<'_>| {
        let work = |row: bigfleet_model::Row| Work {
            profile: row.profile,
            group: row.group,
            load: Load::Row {
                aggregate: row.aggregate,
                unit: row.min_unit,
            },
            whole: row.whole_units,
        };
        ClusterPlan::new(cluster.id().as_str(), cluster.rows().map(work).collect())
    };
    let mut offers: BTreeMap<(usize, u8), Arc<Offer>> = BTreeMap::new();
    let machine = |machine: SeededMachine| {
        let shape = &workload.shapes()[machine.shape()];
        let offered = offers
            .entry((machine.shape(), machine.tier as u8))
            .or_insert_with(|| Arc::new(offer(shape, &machine)));
        let start = match (machine.tier.state(), machine.serves) {
            (_, Some(serves)) => Start::Serving {
                cluster: serves.cluster as usize,
                work: serves.row as usize,
                stamped: true,
            },
            (State::Idle, None) => Start::Idle,
            _ => Start::Speculative,
        };
        let held = workload.commitment(&machine);
        MachinePlan {
            id: machine.to_string(),
            offer: Arc::clone(offered),
            start,
            echo: held.map(|held| Arc::new(held.assignment().to_metadata())),
        }
    };
    Plan {
        machines: workload.machines().map(machine).collect(),
        clusters: workload.clusters().map(cluster).collect(),
        stages: Stages {
            create: Latency::LongTail(45_000),
            configure: Latency::Stragglers((2_000, 10_000), 20, (30_000, 60_000)),
            repair: Latency::NONE,
            ..Stages::CLOUD
        },
        calm: Moment(minutes(30)),
        rest_within: minutes(60),
        ..Plan::default()
    }
}

fn build(dice: &mut Dice, scale: &Scale) -> Plan {
    plan(&scale.build("sim", dice.between(1, 1 << 40)))
}

/// The whole demand, and nothing beyond what serves it.
fn served(dice: &mut Dice) -> Plan {
    let scale = Scale {
        idle_per_mille: 0,
        speculative: Elastic::Machines(0),
        ..Scale::of(5_000)
    };
    build(dice, &scale)
}

/// The machines that would serve the demand, and with each whose priority it was made for. Exact supply is
/// never dealt out exactly, so there is more of it than that: of gangs' hosts as much again, since a gang
/// without a rack is short whoever gives way, and a third of the others; of batch only if `batch` says so.
fn with_spares(made: &Plan, batch: bool) -> Vec<(i32, MachinePlan)> {
    let mut all = Vec::new();
    for (number, machine) in made.machines.iter().enumerate() {
        let Start::Serving { cluster, work, .. } = machine.start else {
            continue;
        };
        let work = &made.clusters[cluster].works[work];
        let priority = work.profile.priority();
        // Services that had to give way go where the small batch Pods are, and stay there.
        let small = priority < 1000 && machine.offer.instance_type.starts_with("m6i");
        let every = if work.group.is_empty() && !small {
            3
        } else {
            1
        };
        if (batch || 1000 <= priority) && number % every == 0 {
            let id = format!("{}-spare", machine.id);
            let spare = MachinePlan {
                id,
                ..machine.clone()
            };
            all.push((priority, spare));
        }
        all.push((priority, machine.clone()));
    }
    all
}

/// Six tenths of the machines that would serve the demand, idle, and nothing to be had beyond them: batch is
/// what has to do without.
fn scarcity(dice: &mut Dice) -> Plan {
    let mut made = served(dice);
    let keeps = made.machines.len() * 6 / 10;
    let mut kept = with_spares(&made, false);
    dice.shuffle(&mut kept);
    kept.sort_by_key(|(priority, _)| *priority < 1000);
    kept.truncate(keeps);
    let idle = |(_, machine): (i32, MachinePlan)| MachinePlan {
        start: Start::Idle,
        echo: None,
        ..machine
    };
    made.machines = kept.into_iter().map(idle).collect();
    // All are there for the taking; of the spare ones about half stay where they are.
    let most = Count::at_least(keeps as u64 * 3 / 4);
    made.gates = vec![
        Gate::ever(ACQUIRE, most),
        Gate::InState(State::Configured, most),
        Gate::Short(Count::at_least(1)),
        Gate::Judge(only_batch_is_short),
    ];
    made
}

/// Standing, drifting by no more than twenty over the last half of it, and in class batch alone all the while.
fn only_batch_is_short(world: &World) -> Result<(), String> {
    let from = world.plan.calm.0 / 2;
    let late = world.log.samples.iter().filter(|one| from <= one.at.0);
    let short = || late.clone().map(|one| one.short);
    let drift = short().max().unwrap_or(0) - short().min().unwrap_or(0);
    let wrong = late.clone().find(|one| {
        let [other, batch, service, critical] = one.short_by_class;
        batch == 0 || 0 < other + service + critical
    });
    match wrong {
        Some(one) => Err(format!(
            "short by class {:?} at {} s",
            one.short_by_class, one.at
        )),
        None if 20 < drift => Err(format!("the shortfall drifts by {drift}")),
        None if late.count() == 0 => Err("nobody looked".to_owned()),
        None => Ok(()),
    }
}

/// The instance types critical work may use.
const CRITICAL_HOSTS: [&str; 2] = ["c6i.4xlarge", "m6i.2xlarge"];

/// When the burst of critical work comes, and how long it stays.
const BURST: (u64, u64) = (seconds(1200), seconds(600));

/// Of the memory of all machines critical work may use, it wants so many hundredths in the burst.
const BURST_PERCENT: i64 = 55;

/// Nothing serves yet, so that nothing is bound before the burst by accident, and there is little more to
/// buy than serves the demand.
fn preemption(dice: &mut Dice) -> Plan {
    let mut made = served(dice);
    let slot = |(_, machine): (i32, MachinePlan)| {
        let mut offer = Offer::clone(&machine.offer);
        offer.capacity_type = CapacityType::OnDemand;
        (offer.price_per_hour, offer.interruption_probability) = (1.0, 0.05);
        MachinePlan {
            id: machine.id,
            offer: Arc::new(offer),
            start: Start::Speculative,
            echo: None,
        }
    };
    made.machines = with_spares(&made, true).into_iter().map(slot).collect();
    share_offers(&mut made.machines);
    let burst_per_mille = burst(&made);
    for (number, cluster) in made.clusters.iter().enumerate() {
        let works = cluster.works.iter().enumerate();
        let critical = works.filter(|(_, work)| work.profile.priority() == 1_000_000);
        for (work, _) in critical {
            for (when, per_mille) in [(BURST.0, burst_per_mille), (BURST.0 + BURST.1, 1000)] {
                let change = Change::ScaleRow {
                    cluster: number,
                    work,
                    per_mille,
                };
                made.timeline.push((Moment(when), change));
            }
        }
    }
    made.calm = Moment(BURST.0 + BURST.1 + minutes(10));
    let burst = (Moment(BURST.0), Moment(BURST.0 + BURST.1));
    let preempts = &[ActionKind::Preempt];
    made.gates = vec![
        Gate::Actions(preempts, burst.0, burst.1, Count::at_least(30)),
        Gate::Judge(the_lower_gave_way),
        Gate::Judge(critical_was_served),
        Gate::Short(Count::NONE),
    ];
    made
}

/// How much critical work there is in the burst, in thousandths of what there is before.
fn burst(made: &Plan) -> u32 {
    let works = made.clusters.iter().flat_map(|cluster| &cluster.works);
    let critical = works.filter(|work| work.profile.priority() == 1_000_000);
    let wanted = critical.map(|work| match &work.load {
        Load::Row { aggregate, .. } => aggregate.get("memory") / (1000 << 30),
        Load::Pods { .. } => 0,
    });
    let offers = made.machines.iter().map(|machine| &*machine.offer);
    let usable = offers.filter(|offer| CRITICAL_HOSTS.contains(&offer.instance_type.as_str()));
    let (wanted, usable) = (wanted.sum::<i128>(), usable.map(gibibytes).sum::<i64>());
    let per_mille = i128::from(usable * BURST_PERCENT * 10) / wanted.max(1);
    u32::try_from(per_mille).unwrap_or(u32::MAX)
}

/// Nobody gives way to a peer, and it was critical work that was given way to.
fn the_lower_gave_way(world: &World) -> Result<(), String> {
    let taken = world.log.actions.iter().filter_map(|one| one.priorities);
    let wrong = taken.clone().find(|(victim, taker)| taker <= victim);
    let for_critical = taken.filter(|(_, taker)| *taker == 1_000_000).count();
    match wrong {
        Some((victim, taker)) => Err(format!("priority {victim} gave way to {taker}")),
        None if for_critical == 0 => Err("nobody gave way to critical work".to_owned()),
        None => Ok(()),
    }
}

/// Critical work has all it wants before the burst, soon after its beginning, and ever after.
fn critical_was_served(world: &World) -> Result<(), String> {
    let fill = seconds(600);
    let soon = BURST.0..BURST.0 + seconds(60);
    let samples = world.log.samples.iter();
    let mut judged = samples.filter(|one| fill <= one.at.0 && !soon.contains(&one.at.0));
    match judged.find(|one| 0 < one.short_by_class[3]) {
        Some(one) => Err(format!("critical work is short at {} s", one.at)),
        None => Ok(()),
    }
}

/// Equal offers are one offer.
fn share_offers(machines: &mut [MachinePlan]) {
    let mut known: Vec<Arc<Offer>> = Vec::new();
    for machine in machines {
        match known
            .iter()
            .rev()
            .take(64)
            .find(|one| **one == machine.offer)
        {
            Some(one) => machine.offer = Arc::clone(one),
            None => known.push(Arc::clone(&machine.offer)),
        }
    }
}

/// When demand moves: down and up, three times.
const STEPS: [u64; 6] = [
    seconds(720),
    seconds(1440),
    seconds(2160),
    seconds(2880),
    seconds(3600),
    seconds(4320),
];

fn oscillation(dice: &mut Dice) -> Plan {
    let mut made = build(dice, &Scale::of(5_000));
    for (when, per_mille) in STEPS.into_iter().zip([500, 1000].into_iter().cycle()) {
        for cluster in 0..made.clusters.len() {
            let change = Change::ScaleAll { cluster, per_mille };
            made.timeline.push((Moment(when), change));
        }
    }
    made.calm = Moment(STEPS[STEPS.len() - 1] + seconds(720));
    made.gates = vec![Gate::Short(Count::NONE), Gate::Judge(sheds_repeat)];
    made
}

/// How far two sheds of one run may be apart, in hundredths. Every Need rounds its memory up to whole hosts, and which
/// hosts it gets depends on the order in which roll-ups arrive: that alone moves a shed by about one in a hundred
/// (`docs/simulation.md` has the figures), so a bound of two is broken by one run in six and proves nothing.
const SHEDS_APART: u64 = 5;

/// Sheds give back the same, and nothing once they have settled. It is memory that is compared: where hosts were
/// large before there are several small ones after, so that the number of machines moves and what they hold hardly
/// does.
fn sheds_repeat(world: &World) -> Result<(), String> {
    let reclaimed = |from: u64, until: u64| {
        let reclaims = world.log.actions.iter();
        let reclaims = reclaims.filter(|one| one.kind == ActionKind::Reclaim);
        let then = reclaims.filter(move |one| (from..until).contains(&one.at.0));
        then.filter_map(|one| world.cloud.machine(&one.machine))
    };
    let steps = STEPS.as_chunks::<2>().0.iter();
    let sheds = steps.clone().map(|[shed, grow]| reclaimed(*shed, *grow));
    let sheds: Vec<i64> = sheds
        .map(|machines| machines.map(|one| gibibytes(&one.offer)).sum())
        .collect();
    let settled = steps.map(|[shed, grow]| reclaimed(shed + seconds(480), *grow).count());
    let (late, all) = (settled.sum::<usize>(), reclaimed(0, u64::MAX).count());
    // The first is of the seeded fleet, packed as no decision packs it.
    let apart = sheds[1].abs_diff(sheds[2]) * 100;
    let alike = 0 < sheds[1] && apart <= sheds[1].unsigned_abs() * SHEDS_APART;
    if alike && late == 0 && all <= 15_000 {
        Ok(())
    } else {
        Err(format!(
            "sheds of {sheds:?} GiB, {late} machines late, {all} in all"
        ))
    }
}

fn cost_routing(dice: &mut Dice) -> Plan {
    let scale = Preset::CostRouting5k.scale();
    let mut made = scale.map_or_else(Plan::default, |scale| build(dice, &scale));
    made.gates = vec![Gate::Short(Count::NONE), Gate::Judge(routed)];
    made
}

/// Machines serve whom they are meant for, and some serve.
fn routed(world: &World) -> Result<(), String> {
    let Some(core) = world.process().map(|process| &process.core) else {
        return Err("no process runs".to_owned());
    };
    let (mut right, mut wrong) = (0, 0);
    for machine in core
        .machines()
        .filter(|one| one.state() == State::Configured)
    {
        let spot = machine.shape().capacity_type == CapacityType::Spot;
        let minds = 0.0 < machine.terms().interruption.dollars();
        if spot != minds {
            right += 1
        } else {
            wrong += 1
        }
    }
    if 0 < right && wrong == 0 {
        Ok(())
    } else {
        Err(format!(
            "{right} machines serve whom they should, {wrong} do not"
        ))
    }
}

/// Nothing owned stands by, so that whatever is lost is bought.
fn spot_churn(dice: &mut Dice) -> Plan {
    let scale = Scale {
        idle_per_mille: 0,
        ..Scale::of(5_000)
    };
    let mut made = build(dice, &scale);
    let serving = made.machines.iter();
    let serving = serving.filter(|one| matches!(one.start, Start::Serving { .. }));
    // 5.8e-6 per machine and second.
    let apart = 1_000_000_000 / 58 * 10 / (serving.count().max(1) as u64);
    made.weather = Weather {
        break_every: apart,
        ..Weather::default()
    };
    made.gates = vec![Gate::Short(Count::NONE), Gate::Judge(losses_are_replaced)];
    made
}

/// What is lost is bought, once, and hardly anything drained because of it. A GPU host is only made up
/// for by another, so there it is one for one. Elsewhere a lost host may be made up for with several smaller
/// ones, or what is left of the Need may be enough: there it is memory that is compared, and up to half more is
/// what rounding up to whole hosts comes to. That no single purchase is one too many is a rule of its own.
fn losses_are_replaced(world: &World) -> Result<(), String> {
    let provisions = world.log.actions.iter();
    let provisions = provisions.filter(|one| one.kind == ActionKind::Provision);
    let bought = provisions.filter_map(|one| world.cloud.machine(&one.machine));
    let lost = world.cloud.machines();
    let lost = lost.filter(|one| one.state == State::Failed);
    let (gpus_lost, lost): (Vec<&Machine>, Vec<&Machine>) =
        lost.map(|one| &**one).partition(|one| has_gpus(one));
    let (gpus_bought, bought): (Vec<&Machine>, Vec<&Machine>) =
        bought.map(|one| &**one).partition(|one| has_gpus(one));
    let losses = gpus_lost.len() + lost.len();
    let gpus = [gpus_lost.len(), gpus_bought.len()];
    let sum = |machines: &[&Machine]| -> i64 {
        let offers = machines.iter().map(|one| &*one.offer);
        offers.map(gibibytes).sum()
    };
    let memory = [sum(&lost), sum(&bought)];
    let reclaims = world
        .log
        .count(ActionKind::Reclaim, Moment::START, Moment::NEVER);
    let replaced = memory[0] <= memory[1] * 2 && memory[1] * 2 <= memory[0] * 3;
    if 30 <= losses && gpus[0] == gpus[1] && replaced && reclaims * 20 <= losses as u64 {
        Ok(())
    } else {
        Err(format!(
            "{losses} losses; lost and bought: {gpus:?} GPU hosts, {memory:?} GiB elsewhere; {reclaims} reclaims"
        ))
    }
}

fn has_gpus(machine: &Machine) -> bool {
    machine.offer.resources.contains_key("nvidia.com/gpu")
}

/// The memory a machine offers.
fn gibibytes(offer: &Offer) -> i64 {
    let offers = if offer.allocatable.is_empty() {
        &offer.resources
    } else {
        &offer.allocatable
    };
    let milli = offers.get("memory").map(|text| parse_supply(text));
    milli.and_then(Result::ok).unwrap_or(0) / (1000 << 30)
}

/// The engine's benchmark as a fleet that lives. One Need of each cluster finds too little, whatever is
/// bought; the other 2,560 are served, and all of them have to stop looking.
fn cardinality(_: &mut Dice) -> Plan {
    let mut made = plan(&Preset::CoLocated.build(1));
    made.calm = Moment(minutes(15));
    let settled = Moment(minutes(10));
    made.gates = vec![
        Gate::Judge(|world| {
            let rows: usize = world.plan.clusters.iter().map(|one| one.works.len()).sum();
            match (rows, world.plan.machines.len()) {
                (2_580, 18_000) => Ok(()),
                (rows, machines) => Err(format!("{rows} rows over {machines} machines")),
            }
        }),
        Gate::ever(&[ActionKind::Provision], Count::at_least(2_000)),
        Gate::Short(Count::exactly(20)),
        Gate::ShortStands(settled),
        Gate::Actions(MOVES, settled, Moment::NEVER, Count::NONE),
    ];
    made
}
