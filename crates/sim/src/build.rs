//! Building blocks of plans: pools of machines, and workloads.
//!
//! ```text
//! pool("gpu", size, 24).racks(3, 1, 8)  ─▶ 24 MachinePlans, eight to a rack
//! work(size, pods).priority(1000)       ─▶ one Work
//! ```

use crate::{
    plan::{Load, MachinePlan, Start, Work},
    size::Size,
};
use bigfleet_model::{
    Bucket, CapacityType, Group, INSTANCE_TYPE_KEY, Operator, Profile, Requirement, Spread,
    WhenUnsatisfiable, ZONE_KEY,
};
use bigfleet_provider_kit::{Offer, TextMap};
use std::{collections::BTreeMap, sync::Arc};

/// The label that names a rack.
pub(crate) const RACK: &str = "topology.bigfleet/rack";

const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// Machines that are alike but for where they stand.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    prefix: String,
    size: Size,
    count: u32,
    start: Start,
    tier: CapacityType,
    price: f64,
    interruption: f64,
    kind: String,
    zones: usize,
    racks: usize,
    block: usize,
    first: usize,
}

/// A pool of empty on-demand slots at a dollar.
pub(crate) fn pool(prefix: &str, size: Size, count: u32) -> Pool {
    Pool {
        prefix: prefix.to_owned(),
        size,
        count,
        start: Start::Speculative,
        tier: CapacityType::OnDemand,
        price: 1.0,
        interruption: 0.05,
        kind: "m".to_owned(),
        zones: 1,
        racks: 1,
        block: 1,
        first: 0,
    }
}

impl Pool {
    /// Owned, idle, free of charge.
    pub(crate) fn owned(mut self) -> Self {
        (self.start, self.tier) = (Start::Idle, CapacityType::BareMetal);
        (self.price, self.interruption) = (0.0, 0.0);
        self
    }

    /// Bought, idle.
    pub(crate) fn idle(mut self) -> Self {
        self.start = Start::Idle;
        self
    }

    /// Owned, and serving this workload of this cluster.
    pub(crate) fn serving(mut self, cluster: usize, work: usize) -> Self {
        self = self.owned();
        self.start = Start::Serving {
            cluster,
            work,
            stamped: true,
        };
        self
    }

    /// As `serving`, but nobody wrote down which workload.
    pub(crate) fn unstamped(mut self) -> Self {
        if let Start::Serving { stamped, .. } = &mut self.start {
            *stamped = false;
        }
        self
    }

    /// Of this capacity type, price and chance of interruption.
    pub(crate) fn tier(mut self, tier: CapacityType, price: f64, interruption: f64) -> Self {
        (self.tier, self.price, self.interruption) = (tier, price, interruption);
        self
    }

    /// Spot: cheap, and taken back.
    pub(crate) fn spot(self) -> Self {
        self.tier(CapacityType::Spot, 0.3, 0.3)
    }

    /// Of this instance type.
    pub(crate) fn kind(mut self, kind: &str) -> Self {
        kind.clone_into(&mut self.kind);
        self
    }

    /// Over so many zones, so many racks in each, so many machines side by side.
    pub(crate) fn racks(mut self, zones: usize, racks: usize, block: usize) -> Self {
        (self.zones, self.racks, self.block) = (zones.clamp(1, ZONES.len()), racks, block);
        self
    }

    /// With so many side by side; zones and racks as they are.
    pub(crate) fn in_racks_of(mut self, block: usize) -> Self {
        self.block = block;
        self
    }

    /// Counts places from here, so that pools do not begin in the same rack.
    pub(crate) fn starting_at(mut self, first: usize) -> Self {
        self.first = first;
        self
    }

    /// The machines.
    pub(crate) fn build(&self) -> Vec<MachinePlan> {
        let mut offers: BTreeMap<(usize, usize), Arc<Offer>> = BTreeMap::new();
        let machine = |number: u32| {
            let slot = (self.first + number as usize) / self.block.max(1);
            let (zone, rack) = (slot % self.zones, slot / self.zones % self.racks.max(1));
            let offer = offers
                .entry((zone, rack))
                .or_insert_with(|| Arc::new(self.offer(zone, rack)));
            MachinePlan {
                id: format!("{}-{number:04}", self.prefix),
                offer: Arc::clone(offer),
                start: self.start,
                echo: None,
            }
        };
        (0..self.count).map(machine).collect()
    }

    fn offer(&self, zone: usize, rack: usize) -> Offer {
        let zone = ZONES[zone].to_owned();
        let labels = TextMap::from([(RACK.to_owned(), format!("{zone}-rack-{rack}"))]);
        Offer {
            instance_type: self.kind.clone(),
            zone,
            capacity_type: self.tier,
            price_per_hour: self.price,
            interruption_probability: self.interruption,
            resources: self.size.texts(),
            allocatable: TextMap::new(),
            labels,
        }
    }
}

/// A workload being written down.
#[derive(Clone, Debug)]
pub(crate) struct WorkPlan {
    each: Size,
    pods: u32,
    priority: i32,
    interruption: f64,
    reclamation: f64,
    requirements: Vec<Requirement>,
    spread: Vec<Spread>,
    group: Group,
    whole: bool,
}

/// So many Pods of a size, priority 1000, on instance type `m`.
pub(crate) fn work(each: Size, pods: u32) -> WorkPlan {
    WorkPlan {
        each,
        pods,
        priority: 1000,
        interruption: 1024.0,
        reclamation: 8192.0,
        requirements: Vec::new(),
        spread: Vec::new(),
        group: Group::default(),
        whole: false,
    }
}

impl WorkPlan {
    /// With this priority.
    pub(crate) fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// With these penalties, in dollars.
    pub(crate) fn penalties(mut self, interruption: f64, reclamation: f64) -> Self {
        (self.interruption, self.reclamation) = (interruption, reclamation);
        self
    }

    /// On one of these instance types.
    pub(crate) fn kinds(mut self, kinds: &[&str]) -> Self {
        let values = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let made = Requirement::new(INSTANCE_TYPE_KEY.to_owned(), Operator::In, values);
        self.requirements.extend(made);
        self
    }

    /// Asking for whole units.
    pub(crate) fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// All in one rack, as the gang of this name.
    pub(crate) fn rack_gang(self, group: &str) -> Self {
        self.gang(group, RACK)
    }

    /// All in one zone, as the gang of this name.
    pub(crate) fn zone_gang(self, group: &str) -> Self {
        self.gang(group, ZONE_KEY)
    }

    fn gang(mut self, group: &str, key: &str) -> Self {
        let made = Requirement::new(key.to_owned(), Operator::Same, Vec::new());
        self.requirements.extend(made);
        self.group = Group::new(group);
        self
    }

    /// Spread over zones, not by more than this.
    pub(crate) fn spread(mut self, skew: i32) -> Self {
        let made = Spread::new(ZONE_KEY.to_owned(), skew, WhenUnsatisfiable::DoNotSchedule);
        self.spread.extend(made);
        self
    }

    /// The workload.
    pub(crate) fn build(self) -> Work {
        let profile = Profile::new(
            self.requirements,
            self.spread,
            self.priority,
            Bucket::of(self.interruption),
            Bucket::of(self.reclamation),
        );
        Work {
            profile: Arc::new(profile),
            group: self.group,
            load: Load::Pods {
                each: self.each,
                count: self.pods,
            },
            whole: self.whole,
        }
    }
}
