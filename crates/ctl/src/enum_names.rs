//! The names of the wire's enum values, as files and people write them.
//!
//! A value this version does not know is shown as `unknown(n)`: a newer shard may know more of them.

use bigfleet_wire::v1alpha1 as wire;
use wire::node_selector_requirement::Operator;
use wire::topology_spread::WhenUnsatisfiable;

/// `MACHINE_STATE_CONFIGURED` is `Configured`.
fn camel(name: &str, prefix: &str) -> String {
    let parts = name.strip_prefix(prefix).unwrap_or(name).split('_');
    let capitalised = |part: &str| {
        let (first, rest) = part.split_at_checked(1).unwrap_or((part, ""));
        first.to_owned() + &rest.to_lowercase()
    };
    parts.map(capitalised).collect()
}

fn unknown(number: i32) -> String {
    format!("unknown({number})")
}

macro_rules! names {
    ($($(#[$about:meta])* $name:ident: $kind:ty, $prefix:literal;)*) => {$(
        $(#[$about])*
        pub(crate) fn $name(number: i32) -> String {
            match <$kind>::try_from(number) {
                Ok(known) => camel(known.as_str_name(), $prefix),
                Err(_) => unknown(number),
            }
        }
    )*};
}

names! {
    /// `Critical`.
    severity: wire::ProblemSeverity, "PROBLEM_SEVERITY_";
    /// `Configured`.
    state: wire::MachineState, "MACHINE_STATE_";
    /// `OnDemand`.
    tier: wire::CapacityType, "CAPACITY_TYPE_";
    /// `In`.
    operator: Operator, "OPERATOR_";
    /// `DoNotSchedule`.
    when_unsatisfiable: WhenUnsatisfiable, "WHEN_UNSATISFIABLE_";
    /// `Retryable`.
    failure_class: wire::FailureClass, "FAILURE_CLASS_";
    /// `Create`.
    work_kind: wire::WorkKind, "WORK_KIND_";
    /// `AwaitingBlob`.
    work_stage: wire::WorkStage, "WORK_STAGE_";
    /// `Bootstrap`.
    action_kind: wire::ActionKind, "ACTION_KIND_";
    /// `NoSession`.
    acquire_block: wire::AcquireBlock, "ACQUIRE_BLOCK_";
    /// `ReplacementComing`.
    leaving_phase: wire::LeavingPhase, "LEAVING_PHASE_";
    /// `Admin`.
    pause_origin: wire::PauseOrigin, "PAUSE_ORIGIN_";
}

/// `PRIORITY_STARVED`: the one kind of value that keeps its spelling, as decisions in files have it.
pub(crate) fn unmet_reason(number: i32) -> String {
    match wire::UnmetReason::try_from(number) {
        Ok(known) => {
            let name = known.as_str_name();
            name.strip_prefix("UNMET_REASON_")
                .unwrap_or(name)
                .to_owned()
        }
        Err(_) => unknown(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{Operator as ModelOperator, State, UnmetReason};

    #[test]
    fn the_names_are_those_of_files() {
        for known in State::ALL {
            assert_eq!(state(known.number()), known.word());
        }
        assert_eq!(tier(wire::CapacityType::OnDemand.into()), "OnDemand");
        assert_eq!(tier(wire::CapacityType::BareMetal.into()), "BareMetal");
        assert_eq!(operator(4), ModelOperator::DoesNotExist.word());
        assert_eq!(
            unmet_reason(wire::UnmetReason::PriorityStarved.into()),
            UnmetReason::PriorityStarved.text()
        );
        assert_eq!(state(99), "unknown(99)");
    }
}
