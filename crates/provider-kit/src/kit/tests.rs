//! The contract, told as calls and what they lead to.
//!
//! ```text
//! a machine ── a call ──▶ answered, or refused     calls
//!     │                       └── work ──▶ its end  ends
//!     └── what the cloud shows of it                inventory, lists
//! ```

mod calls;
mod ends;
mod inventory;
mod lists;

use super::*;
use crate::call::{Ack, Ask, Mutation, Refusal, Token};
use crate::event::{Created, Outcome};
use crate::machine::TextMap;
use crate::options::Timeouts;
use crate::seed::tests::slot;
use bigfleet_model::Host;

struct Bench {
    kit: Kit,
    started: Vec<Work>,
}

fn bench(slots: usize) -> Bench {
    let options = Options {
        timeouts: Timeouts::all(Duration::from_secs(2)),
        ..Options::default()
    };
    let mut kit = Kit::new(Tables::new(0xabc), options);
    let instances: Vec<Instance> = (1..=slots)
        .map(|slots| slot(&format!("m{slots}")))
        .collect();
    kit.seed(&instances).unwrap();
    kit.commit();
    Bench {
        kit,
        started: Vec::new(),
    }
}

fn id(text: &str) -> MachineId {
    MachineId::new(text).unwrap()
}

fn host(reference: &str) -> Host {
    Host {
        provider: "p".to_owned(),
        reference: reference.to_owned(),
    }
}

fn token(epoch: i64, sequence: i64) -> Token {
    Token {
        shard: "s".to_owned(),
        epoch,
        sequence,
    }
}

fn create() -> Ask {
    Ask::Create {
        metadata: Arc::default(),
    }
}

fn configure(cluster: &str) -> Ask {
    let metadata = Arc::new(TextMap::from([("k\0".to_owned(), String::new())]));
    Ask::Configure {
        cluster: cluster.to_owned(),
        blob: Arc::from(*b"blob"),
        metadata,
    }
}

fn drain() -> Ask {
    Ask::Drain { grace_seconds: 0 }
}

impl Bench {
    fn call(&mut self, machine: &str, token: Token, ask: Ask) -> Result<Ack, Refusal> {
        let mut effects = Vec::new();
        let mutation = Mutation {
            machine: machine.to_owned(),
            token,
            ask,
        };
        self.kit
            .handle(Event::Mutate { call: 1, mutation }, &mut effects);
        self.kit.commit();
        let mut answer = None;
        for effect in effects {
            match effect {
                Effect::Answer { answer: given, .. } => answer = Some(given),
                Effect::Start(work) => self.started.push(work),
                Effect::Discarded { .. } | Effect::Skipped(_) | Effect::Failed(_) => {}
            }
        }
        answer.expect("every call is answered")
    }

    fn ask(&mut self, machine: &str, ask: Ask) -> Result<Ack, Refusal> {
        self.call(machine, Token::default(), ask)
    }

    fn end(&mut self, outcome: Outcome) -> Vec<Effect> {
        let work = self.started.pop().expect("something was started");
        let (machine, operation) = (work.machine.id.clone(), work.operation);
        let mut effects = Vec::new();
        self.kit.handle(
            Event::Settled {
                machine,
                operation,
                outcome,
            },
            &mut effects,
        );
        self.kit.commit();
        effects
    }

    fn created(&mut self) -> Vec<Effect> {
        let host = host("h");
        self.end(Ok(Some(Created {
            host,
            ..Created::default()
        })))
    }

    fn walk(&mut self, machine: &str, to: State) {
        self.ask(machine, create()).unwrap();
        self.created();
        if to == State::Configured {
            self.ask(machine, configure("a")).unwrap();
            self.end(Ok(None));
        }
    }

    fn machine(&self, machine: &str) -> Arc<Machine> {
        self.kit.tables().get(machine).unwrap()
    }
}
