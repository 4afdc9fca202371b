//! Machines: what makes one valid, and what of it may change.

use super::*;

fn facts(state: State) -> MachineFacts {
    let host = Host {
        provider: "p".to_owned(),
        reference: "h".to_owned(),
    };
    let cluster = "a".to_owned();
    MachineFacts {
        host,
        cluster,
        ..MachineFacts::new("m1", state)
    }
}

fn label(facts: MachineFacts) -> &'static str {
    Machine::new(facts).unwrap_err().breach.label()
}

/// EX-ST: the grid's rows.
#[test]
fn ex_st_the_first_breach_in_grid_order_wins() {
    assert_eq!(
        label(MachineFacts {
            cluster: String::new(),
            ..facts(State::Draining)
        }),
        "structural"
    );
    let cheap = MachineFacts {
        price_per_hour: -0.01,
        ..facts(State::Configured)
    };
    assert_eq!(label(cheap), "price");
    let both = MachineFacts {
        price_per_hour: f64::NAN,
        ..facts(State::Speculative)
    };
    assert_eq!(label(both), "structural");
    let likely = MachineFacts {
        interruption_probability: 1.000_000_1,
        price_per_hour: -1.0,
        ..facts(State::Configured)
    };
    assert_eq!(label(likely), "interruption_probability");
    let dear = MachineFacts {
        price_per_hour: f64::INFINITY,
        ..facts(State::Configured)
    };
    assert_eq!(label(dear), "price");
}

#[test]
fn every_state_has_its_host_and_cluster_rule() {
    use State::*;
    for state in State::ALL {
        let bare = MachineFacts::new("m1", state);
        let needs_host = matches!(state, Idle | Configuring | Configured | Draining | Deleting);
        let bare_is_fine = !needs_host && state != Failed;
        assert_eq!(Machine::new(bare).is_ok(), bare_is_fine, "{state} bare");
        let full_is_fine = needs_host;
        assert_eq!(
            Machine::new(facts(state)).is_ok(),
            full_is_fine,
            "{state} full"
        );
    }
    let hostless = MachineFacts {
        host: Host::default(),
        ..facts(Creating)
    };
    assert_eq!(
        Machine::new(hostless).unwrap_err().to_string(),
        "machine \"m1\": state Creating must have no cluster, but has \"a\" (ST-5)"
    );
    let failed = MachineFacts {
        last_error: "boom".to_owned(),
        ..facts(Failed)
    };
    assert!(Machine::new(failed).is_ok());
}

#[test]
fn numbers_that_are_no_state_are_structural() {
    for number in [0, 9, -1] {
        let odd = MachineFacts {
            state: StateNumber(number),
            ..facts(State::Idle)
        };
        assert_eq!(label(odd), "structural");
    }
}

/// M-3 and ST-5: an unbound machine keeps neither cluster nor assignment.
#[test]
fn unbound_machines_are_normalised() {
    let terms = Terms {
        priority: 9,
        ..Terms::default()
    };
    let assignment = Assignment {
        terms,
        ..Assignment::default()
    };
    let idle = Machine::new(MachineFacts {
        assignment,
        ..facts(State::Idle)
    })
    .unwrap();
    assert_eq!(
        (idle.cluster(), idle.assignment()),
        (None, &Assignment::default())
    );
}

/// EX-MD3.
#[test]
fn ex_md3_local_memory_wins_over_the_echo() {
    let priority = |n: i32| Assignment {
        terms: Terms {
            priority: n,
            ..Terms::default()
        },
        ..Assignment::default()
    };
    let known = MachineFacts {
        assignment: priority(500),
        ..facts(State::Configured)
    };
    let known = Machine::new(known).unwrap();
    let echoed = Echoed::from(&priority(900).to_metadata());
    let mut seen = facts(State::Configured);
    assert_eq!(seen.recall(Some(&known), &echoed), []);
    assert_eq!(seen.assignment.terms.priority, 500);
    assert_eq!(seen.recall(None, &echoed), []);
    assert_eq!(seen.assignment.terms.priority, 900);
}

#[test]
fn an_intent_needs_a_state_that_can_hold_one() {
    let cluster = ClusterId::new("a").unwrap();
    let need = Assignment {
        fingerprint: crate::Fingerprint::new("f"),
        ..Assignment::default()
    }
    .need(&cluster)
    .unwrap();
    let intent = Some(Intent {
        need,
        terms: Terms::default(),
        keep_price: None,
    });
    let with = |state| {
        Machine::new(MachineFacts {
            intent: intent.clone(),
            ..facts(state)
        })
    };
    assert_eq!(
        label(
            with(State::Idle)
                .unwrap()
                .into_facts()
                .tap_state(State::Configured)
        ),
        "structural"
    );
    assert!(with(State::Draining).is_ok());
    assert!(matches!(
        with(State::Configured).unwrap_err().breach,
        Breach::IntentGiven(_)
    ));
}

/// A commitment given later passes the grid as one given at once, in every state.
#[test]
fn a_commitment_passes_the_grid_whenever_it_is_given() {
    let need = Assignment {
        fingerprint: crate::Fingerprint::new("f"),
        ..Assignment::default()
    };
    let cluster = ClusterId::new("a").unwrap();
    let intent = need.need(&cluster).map(|need| Intent {
        need,
        terms: Terms::default(),
        keep_price: None,
    });
    for state in State::ALL {
        let mut bare = facts(state);
        bare.last_error = "boom".to_owned();
        if matches!(state, State::Speculative | State::Creating) {
            (bare.host, bare.cluster) = (Host::default(), String::new());
        }
        for intent in [None, intent.clone()] {
            let later = Machine::new(bare.clone()).unwrap();
            let at_once = MachineFacts {
                assignment: need.clone(),
                intent: intent.clone(),
                ..bare.clone()
            };
            assert_eq!(later.committed(need.clone(), intent), Machine::new(at_once));
        }
    }
}

impl MachineFacts {
    fn tap_state(mut self, state: State) -> Self {
        self.state = state.into();
        self
    }
}

fn intent_for(cluster: &str, keep_price: Option<Price>) -> Intent {
    Intent {
        need: NeedKey {
            cluster: ClusterId::new(cluster).unwrap(),
            fingerprint: crate::Fingerprint::new("f"),
            group: crate::Group::default(),
        },
        terms: Terms {
            priority: 6,
            ..Terms::default()
        },
        keep_price,
    }
}

/// RF-1, RF-2: whose it is, on which terms and at which price, by its intent or else its assignment.
#[test]
fn a_commitment_is_read_from_the_intent_before_the_assignment() {
    let bound = Machine::new(MachineFacts {
        assignment: Assignment {
            terms: Terms {
                priority: 5,
                ..Terms::default()
            },
            fingerprint: crate::Fingerprint::new("f"),
            keep_price: Price::new(2.0),
            ..Assignment::default()
        },
        price_per_hour: 9.0,
        interruption_probability: 0.5,
        ..facts(State::Draining)
    })
    .unwrap();
    assert_eq!(bound.attribution(), None, "draining, and meant for nobody");
    assert_eq!(
        (bound.terms().priority, bound.keep_price()),
        (5, Price::new(2.0).unwrap())
    );
    assert_eq!(bound.interruption().per_hour(), 0.5);
    let assignment = bound.assignment().clone();
    let meant = |price| {
        bound
            .clone()
            .committed(assignment.clone(), Some(intent_for("b", price)))
    };
    let priced = meant(Price::new(3.0)).unwrap();
    assert_eq!(priced.attribution(), Some(intent_for("b", None).need));
    assert_eq!(
        (priced.terms().priority, priced.keep_price()),
        (6, Price::new(3.0).unwrap())
    );
    let unpriced = meant(None).unwrap();
    assert_eq!(
        unpriced.keep_price(),
        Price::new(9.0).unwrap(),
        "the live one"
    );
    let serving = MachineFacts {
        assignment,
        ..facts(State::Configured)
    };
    let serving = Machine::new(serving).unwrap();
    assert_eq!(serving.attribution(), Some(intent_for("a", None).need));
    let nobodys = Machine::new(facts(State::Configured)).unwrap();
    assert_eq!(
        nobodys.attribution(),
        None,
        "an empty fingerprint is no Need"
    );
}

/// Facts that are not copied make the machine that copied ones make.
#[test]
fn stated_facts_are_facts() {
    for (state, provider, reference, error) in [
        (State::Idle, "p", "h", ""),
        (State::Idle, "", "h", ""),
        (State::Failed, "p", "", "boom"),
        (State::Failed, "", "", "boom"),
        (State::Idle, "", "", ""),
    ] {
        let host = Host {
            provider: provider.to_owned(),
            reference: reference.to_owned(),
        };
        let copied = MachineFacts {
            host,
            last_error: error.to_owned(),
            price_per_hour: 3.0,
            cluster: "a".to_owned(),
            ..MachineFacts::new("m1", state)
        };
        let stated = StatedFacts {
            id: "m1",
            state: state.into(),
            host: (provider, reference),
            cluster: "a",
            shape: Arc::default(),
            price_per_hour: 3.0,
            interruption_probability: 0.0,
            last_error: error,
        };
        let stated = Machine::stated(&stated, ClusterId::new);
        assert_eq!(stated, Machine::new(copied));
        if let Ok(machine) = stated {
            assert_eq!(machine.last_error(), error);
            assert_eq!(machine.host().is_some(), (provider, reference) != ("", ""));
        }
    }
    let clusterless = StatedFacts {
        id: "m1",
        state: State::Configured.into(),
        host: ("p", "h"),
        cluster: "bad",
        shape: Arc::default(),
        price_per_hour: 3.0,
        interruption_probability: 0.0,
        last_error: "",
    };
    let refused = Machine::stated(&clusterless, |_| Err(IdRefused::Empty));
    assert_eq!(
        refused.unwrap_err().breach,
        Breach::Cluster(IdRefused::Empty)
    );
}

#[test]
fn equal_shapes_are_shared() {
    let mut machine = Machine::new(facts(State::Idle)).unwrap();
    let shape = Arc::new(Shape::default());
    machine.share_shape(&shape);
    assert!(Arc::ptr_eq(machine.shape(), &shape));
}
