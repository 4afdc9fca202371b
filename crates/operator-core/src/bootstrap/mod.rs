//! Bootstrap: what a machine needs to join, from a template (OP-45, OP-46).
//!
//! ```text
//! request ─▶ template in force + token in force ─▶ Render ─▶ Rendered ─▶ answer
//! ```
//!
//! Nothing here waits for the API server: a token is renewed in the background, and without one that lasts long enough
//! the answer is an error, which the shard counts as a shortfall.

mod template;
mod token;

pub use template::{RenderRefused, Template, TemplateRefused, Value};
pub(crate) use token::Tokens;

use crate::{
    event::{BootstrapRequest, EffectId, JoinToken},
    machines::registry::machine_label,
};
use bigfleet_model::{Requirement, Time};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

/// Rendered at once (OP-15).
const MOST_RENDERING: usize = 64;
/// Waiting to be rendered; more are answered with an error.
const MOST_WAITING: usize = 1024;
/// The stub's blob may be used for so long.
const STUB_TTL_SECONDS: u32 = 600;
/// A token is handed out only if it lasts so long (OP-46).
const TOKEN_LEAST: Duration = Duration::from_secs(600);
/// A blob ends so long before its token.
const TOKEN_MARGIN: Duration = Duration::from_secs(300);

/// A template, and what it is rendered with.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderJob {
    template: Arc<Template>,
    context: Value,
}

impl RenderJob {
    /// The blob. Bounded in steps and bytes; whoever has a clock may bound its time as well.
    pub fn render(&self) -> Result<Vec<u8>, RenderRefused> {
        self.template.render(&self.context).map(String::into_bytes)
    }
}

/// What a request is answered with, or what to do first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BootstrapStep {
    Answer {
        request: String,
        answer: Result<(Vec<u8>, u32), String>,
    },
    Render(Box<RenderJob>),
}

#[derive(Clone, Debug)]
struct Rendering {
    request: String,
    ttl_seconds: u32,
}

/// Requests under way.
#[derive(Clone, Debug)]
pub(crate) struct Bootstraps {
    cluster: String,
    /// `None`: no file is configured, and the stub answers.
    template: Option<Arc<Template>>,
    waiting: VecDeque<BootstrapRequest>,
    rendering: BTreeMap<EffectId, Rendering>,
    /// The one that is about to get an id.
    handed_out: Option<Rendering>,
}

impl Bootstraps {
    pub(crate) fn new(cluster: &str, template: Option<Arc<Template>>) -> Self {
        Self {
            cluster: cluster.to_owned(),
            template,
            waiting: VecDeque::new(),
            rendering: BTreeMap::new(),
            handed_out: None,
        }
    }

    /// Another template is in force.
    pub(crate) fn template(&mut self, template: Arc<Template>) {
        self.template = Some(template);
    }

    /// A request; an answer if it cannot even wait.
    pub(crate) fn asked(&mut self, request: BootstrapRequest) -> Option<BootstrapStep> {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(request);
            return None;
        }
        Some(BootstrapStep::Answer {
            request: request.request,
            answer: Err(format!(
                "more than {MOST_WAITING} bootstrap requests are waiting"
            )),
        })
    }

    /// The session is over: nobody waits for answers any more.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.rendering.clear();
    }

    /// The next thing to do, if there is room for it. `token`: `None` if tokens are off, else the one in force.
    pub(crate) fn next(
        &mut self,
        now: Time,
        token: Option<Option<&JoinToken>>,
        labels: impl Fn(&str) -> BTreeMap<String, String>,
    ) -> Option<BootstrapStep> {
        if MOST_RENDERING <= self.rendering.len() {
            return None;
        }
        let request = self.waiting.pop_front()?;
        let Some(template) = self.template.clone() else {
            let stub = format!(
                "#cloud-config\n# bigfleet stub bootstrap for {}\n",
                self.cluster
            );
            return Some(BootstrapStep::Answer {
                request: request.request,
                answer: Ok((stub.into_bytes(), STUB_TTL_SECONDS)),
            });
        };
        let lasts = |token: &JoinToken| token.expires.duration_since(now);
        let (text, left) = match token {
            None => (String::new(), Duration::ZERO),
            Some(Some(token)) if TOKEN_LEAST <= lasts(token) => (token.text.clone(), lasts(token)),
            Some(_) => {
                return Some(BootstrapStep::Answer {
                    request: request.request,
                    answer: Err("no join token lasts long enough to be handed out".to_owned()),
                });
            }
        };
        let left = left.saturating_sub(TOKEN_MARGIN).as_secs();
        let ttl_seconds = u32::try_from(left).unwrap_or(u32::MAX);
        let context = self.context(&request, text, ttl_seconds, labels(&request.machine));
        self.handed_out = Some(Rendering {
            request: request.request,
            ttl_seconds,
        });
        Some(BootstrapStep::Render(Box::new(RenderJob {
            template,
            context,
        })))
    }

    /// What was handed out last has this id.
    pub(crate) fn renders(&mut self, id: EffectId) {
        if let Some(rendering) = self.handed_out.take() {
            self.rendering.insert(id, rendering);
        }
    }

    pub(crate) fn rendered(
        &mut self,
        id: EffectId,
        result: Result<Vec<u8>, String>,
    ) -> Option<BootstrapStep> {
        let rendering = self.rendering.remove(&id)?;
        Some(BootstrapStep::Answer {
            request: rendering.request,
            answer: result.map(|blob| (blob, rendering.ttl_seconds)),
        })
    }

    fn context(
        &self,
        request: &BootstrapRequest,
        token: String,
        ttl_seconds: u32,
        labels: BTreeMap<String, String>,
    ) -> Value {
        let text = |text: &str| Value::Text(text.to_owned());
        let requirement = |requirement: &Requirement| {
            Value::record([
                ("Key", text(requirement.key())),
                ("Operator", text(requirement.operator().word())),
                (
                    "Values",
                    Value::List(
                        requirement
                            .values()
                            .iter()
                            .map(|value| text(value))
                            .collect(),
                    ),
                ),
            ])
        };
        let (key, value) = machine_label(&request.machine);
        let label = if request.machine.is_empty() {
            String::new()
        } else {
            format!("{key}={value}")
        };
        let labels = labels
            .into_iter()
            .map(|(key, value)| (key, Value::Text(value)));
        Value::record([
            ("ClusterID", text(&self.cluster)),
            (
                "Requirements",
                Value::List(request.requirements.iter().map(requirement).collect()),
            ),
            ("MachineID", text(&request.machine)),
            ("ProviderID", text(&request.provider_id)),
            ("NodeLabels", Value::Map(labels.collect())),
            ("MachineLabel", Value::Text(label)),
            ("Token", Value::Text(token)),
            ("TokenTTL", Value::Integer(ttl_seconds.into())),
        ])
    }
}
