//! Watch: the lines of a watch as they come.

use crate::call::{Refused, StatusSaid, chain};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A line that is longer is no object of a cluster.
const LONGEST_LINE: usize = 16 << 20;

/// What every object has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) resource_version: String,
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Named {
    #[serde(default)]
    pub(crate) metadata: Metadata,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Line<T> {
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
    pub(crate) object: T,
}

/// An open watch.
pub(crate) struct Lines {
    body: Incoming,
    rest: Vec<u8>,
    /// Up to here no end of a line was found.
    looked_at: usize,
}

impl Lines {
    pub(crate) fn new(answer: Response<Incoming>) -> Self {
        Self {
            body: answer.into_body(),
            rest: Vec::new(),
            looked_at: 0,
        }
    }

    /// The next line; `None` at the end of the watch.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Refused> {
        loop {
            let end = self.rest[self.looked_at..]
                .iter()
                .position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let after = self.rest.split_off(self.looked_at + end + 1);
                self.looked_at = 0;
                return Ok(Some(std::mem::replace(&mut self.rest, after)));
            }
            self.looked_at = self.rest.len();
            if LONGEST_LINE < self.rest.len() {
                return Err(Refused::Unreadable("a line without an end".to_owned()));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(why)) => return Err(Refused::Unreachable(chain(&why))),
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.rest.extend_from_slice(data);
                    }
                }
            }
        }
    }
}

/// The refusal in a line of kind `ERROR`.
pub(crate) fn refusal(line: &[u8]) -> Refused {
    let status: Option<Line<serde_json::Value>> = serde_json::from_slice(line).ok();
    let text = status.map_or_else(Vec::new, |line| line.object.to_string().into_bytes());
    Refused::Said(Box::new(StatusSaid::read(500, None, &text)))
}
