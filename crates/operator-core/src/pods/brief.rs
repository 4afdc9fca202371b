//! Brief: what of a Pod decides whether a drain has to move it (OP-38, OP-52).

use crate::objects::ObjectKey;
use std::collections::BTreeMap;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DO_NOT_DISRUPT: (&str, &str) = ("bigfleet.lucy.sh/do-not-disrupt", "true");
const SAFE_TO_EVICT: (&str, &str) = ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false");

/// How far a Pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPhase {
    /// It waits.
    Pending,
    /// It runs.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
    /// Nobody knows.
    Unknown,
}

/// What controls a Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Controller {
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
}

/// A Pod as a drain sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodBrief {
    /// Where it is.
    pub key: ObjectKey,
    /// Which one of that name.
    pub uid: String,
    /// How far it is.
    pub phase: PodPhase,
    /// Its annotations; those that nobody here reads may be left out.
    pub annotations: BTreeMap<String, String>,
    /// What controls it.
    pub controller: Option<Controller>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

impl PodBrief {
    fn says(&self, (key, value): (&str, &str)) -> bool {
        self.annotations.get(key).is_some_and(|said| said == value)
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether the kubelet made it from a file of its own.
    pub fn is_mirror(&self) -> bool {
        self.annotations.contains_key(MIRROR)
    }

    /// Whether a DaemonSet controls it.
    pub fn is_daemon(&self) -> bool {
        let is_it =
            |controller: &Controller| controller.group == "apps" && controller.kind == "DaemonSet";
        self.controller.as_ref().is_some_and(is_it)
    }

    /// OP-38: whether it has to leave before its Node is drained. On a Node that has been silent for a minute nobody
    /// would finish a Pod that is on its way out.
    pub fn counts(&self, is_node_silent: bool) -> bool {
        let is_lost = self.is_terminating && is_node_silent;
        !(self.is_finished() || self.is_mirror() || self.is_daemon() || is_lost)
    }

    /// OP-52: whether it must not be disturbed by a drain that can wait.
    pub fn must_not_be_disturbed(&self) -> bool {
        self.says(DO_NOT_DISRUPT) || self.says(SAFE_TO_EVICT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> PodBrief {
        PodBrief {
            key: ObjectKey::namespaced("ns", "p"),
            uid: "u".to_owned(),
            phase: PodPhase::Running,
            annotations: BTreeMap::new(),
            controller: None,
            is_terminating: false,
        }
    }

    fn annotated(key: &str, value: &str) -> PodBrief {
        PodBrief {
            annotations: [(key.to_owned(), value.to_owned())].into(),
            ..pod()
        }
    }

    fn controlled(group: &str, kind: &str) -> PodBrief {
        let (group, kind) = (group.to_owned(), kind.to_owned());
        PodBrief {
            controller: Some(Controller { group, kind }),
            ..pod()
        }
    }

    /// OP-38.
    #[test]
    fn only_pods_that_somebody_would_miss_count() {
        let phase = |phase| PodBrief { phase, ..pod() };
        let leaving = PodBrief {
            is_terminating: true,
            ..pod()
        };
        assert!(pod().counts(false) && phase(PodPhase::Unknown).counts(true));
        assert!(
            !phase(PodPhase::Succeeded).counts(false) && !phase(PodPhase::Failed).counts(false)
        );
        assert!(!annotated(MIRROR, "").counts(false));
        assert!(!controlled("apps", "DaemonSet").counts(false));
        assert!(controlled("example.com", "DaemonSet").counts(false));
        assert!(leaving.counts(false) && !leaving.counts(true));
    }

    /// OP-52.
    #[test]
    fn two_annotations_ask_not_to_be_disturbed() {
        assert!(annotated(DO_NOT_DISRUPT.0, "true").must_not_be_disturbed());
        assert!(annotated(SAFE_TO_EVICT.0, "false").must_not_be_disturbed());
        assert!(!annotated(SAFE_TO_EVICT.0, "true").must_not_be_disturbed());
        assert!(!annotated(DO_NOT_DISRUPT.0, "").must_not_be_disturbed());
    }
}
