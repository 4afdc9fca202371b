//! Steered: which shard an admin verb acted on, said with what it did.

use serde::Serialize;

use crate::client::Client;
use crate::error::CtlError;
use crate::output::{Answer, Form, document};
use crate::text::printable;

/// A shard that is about to be told something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteeredShard {
    /// Its id.
    pub id: String,
    /// The address it was reached at.
    pub address: String,
}

/// What an admin verb did, for scripts.
#[derive(Serialize)]
struct SteeredRecord<'a> {
    shard: &'a str,
    address: &'a str,
    dry_run: bool,
    message: &'a str,
    notes: &'a [String],
}

impl SteeredShard {
    /// Asks who answers there.
    pub async fn ask(client: &Client) -> Result<Self, CtlError> {
        let header = client.rails().await?.header.unwrap_or_default();
        Ok(Self {
            id: header.shard_id,
            address: client.target().to_owned(),
        })
    }

    /// The answer of a verb with the shard it acted on: a line on stderr, or fields of the document.
    pub fn sign(&self, answer: Answer, dry_run: bool, form: &Form) -> Result<Answer, CtlError> {
        let record = SteeredRecord {
            shard: &self.id,
            address: &self.address,
            dry_run,
            message: answer.text.trim_end(),
            notes: &answer.notes,
        };
        if let Some(text) = document(&record, form)? {
            return Ok(Answer::of(text));
        }
        let mut answer = answer;
        answer.notes.push(format!("on {self}"));
        Ok(answer)
    }
}

impl std::fmt::Display for SteeredShard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "shard {} at {}", printable(&self.id), self.address)
    }
}
