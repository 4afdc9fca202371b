//! Calls: one request, and what the API server said.

use crate::connect::Cluster;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// A call takes no longer than this (OP-8).
const WITHIN: Duration = Duration::from_secs(10);
/// An answer that is longer is not read.
const MOST_BYTES: usize = 256 << 20;

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    method: Method,
    path: String,
    body: Option<(&'static str, Vec<u8>)>,
}

impl Call {
    fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            body: None,
        }
    }

    fn saying(mut self, kind: &'static str, body: &Value) -> Self {
        self.body = Some((kind, body.to_string().into_bytes()));
        self
    }

    /// Reads an object or a list.
    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    /// Creates an object, or asks a subresource for something.
    pub fn create(path: &str, body: &Value) -> Self {
        Self::new(Method::POST, path).saying("application/json", body)
    }

    /// Replaces an object; its version is checked if it names one.
    pub fn replace(path: &str, body: &Value) -> Self {
        Self::new(Method::PUT, path).saying("application/json", body)
    }

    /// A JSON patch: a list of operations, all or none.
    pub fn json_patch(path: &str, body: &Value) -> Self {
        Self::new(Method::PATCH, path).saying("application/json-patch+json", body)
    }

    /// A merge patch: fields as they shall be, null for none.
    pub fn merge_patch(path: &str, body: &Value) -> Self {
        Self::new(Method::PATCH, path).saying("application/merge-patch+json", body)
    }

    /// A strategic merge patch: as a merge patch, and lists by their keys; for kinds of Kubernetes itself.
    pub fn strategic_patch(path: &str, body: &Value) -> Self {
        Self::new(Method::PATCH, path).saying("application/strategic-merge-patch+json", body)
    }

    /// A server-side apply: what this manager wants to be so.
    pub fn apply(path: &str, manager: &str, body: &Value) -> Self {
        let path = format!("{path}?fieldManager={manager}&force=true");
        Self::new(Method::PATCH, &path).saying("application/apply-patch+yaml", body)
    }

    /// Deletes an object, or with a uid only the one that has it.
    pub fn delete(path: &str, uid: Option<&str>) -> Self {
        let mut options = serde_json::json!({ "apiVersion": "v1", "kind": "DeleteOptions" });
        if let Some(uid) = uid {
            options["preconditions"] = serde_json::json!({ "uid": uid });
        }
        Self::new(Method::DELETE, path).saying("application/json", &options)
    }

    /// Deletes a Pod without waiting for its kubelet, if it still is the one with this uid.
    pub fn delete_now(path: &str, uid: &str) -> Self {
        let options = serde_json::json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "gracePeriodSeconds": 0, "preconditions": { "uid": uid },
        });
        Self::new(Method::DELETE, path).saying("application/json", &options)
    }

    /// Method and path, for logs.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn request(self, server: &str, token: Option<String>) -> Result<Request<Full<Bytes>>, Refused> {
        let (kind, body) = self.body.unwrap_or(("application/json", Vec::new()));
        let mut built = Request::builder()
            .method(self.method)
            .uri(format!("{server}{}", self.path))
            .header(http::header::CONTENT_TYPE, kind)
            .header(http::header::ACCEPT, "application/json")
            .header(
                http::header::USER_AGENT,
                concat!("bigfleet/", env!("CARGO_PKG_VERSION")),
            );
        if let Some(token) = token {
            built = built.header(http::header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let built = built.body(Full::new(Bytes::from(body)));
        built.map_err(|why| Refused::Unreachable(why.to_string()))
    }
}

/// One cause of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// In one word.
    pub reason: String,
    /// Of which field.
    pub field: String,
    /// In one sentence.
    pub message: String,
}

/// What the API server said when it refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusSaid {
    /// The HTTP status.
    pub code: u16,
    /// In one word.
    pub reason: String,
    /// In one sentence.
    pub message: String,
    /// Single causes.
    pub causes: Vec<Cause>,
    /// When to try again, by its header or its words.
    pub retry_after: Option<Duration>,
}

/// A call that did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The API server says no.
    #[error("{} {}: {}", .0.code, .0.reason, .0.message)]
    Said(Box<StatusSaid>),
    /// It could not be asked, or did not answer in time.
    #[error("the API server cannot be reached: {0}")]
    Unreachable(String),
    /// Its answer is none.
    #[error("the API server's answer cannot be read: {0}")]
    Unreadable(String),
}

impl Refused {
    /// The HTTP status, if there was one.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Said(said) => Some(said.code),
            Self::Unreachable(_) | Self::Unreadable(_) => None,
        }
    }

    /// Whether one of the causes has this reason.
    pub fn has_cause(&self, reason: &str) -> bool {
        let Self::Said(said) = self else { return false };
        said.causes.iter().any(|cause| cause.reason == reason)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    causes: Vec<Cause>,
    retry_after_seconds: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
    reason: String,
    message: String,
    details: Details,
}

impl StatusSaid {
    /// Reads a Status object; a proxy's plain text counts as the message.
    pub(crate) fn read(code: u16, header: Option<Duration>, bytes: &[u8]) -> Self {
        let read: Option<Status> = serde_json::from_slice(bytes).ok();
        let status = read.unwrap_or_else(|| Status {
            message: String::from_utf8_lossy(bytes)
                .trim()
                .chars()
                .take(500)
                .collect(),
            ..Status::default()
        });
        let stated = Some(status.details.retry_after_seconds).filter(|seconds| 0 < *seconds);
        Self {
            code: if status.code == 0 { code } else { status.code },
            reason: status.reason,
            message: status.message,
            causes: status.details.causes,
            retry_after: header.or(stated.map(Duration::from_secs)),
        }
    }
}

fn retry_after(answer: &Response<Incoming>) -> Option<Duration> {
    let header = answer.headers().get(http::header::RETRY_AFTER)?;
    header.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

impl Cluster {
    /// Makes a call, and reads its answer as what it should be.
    pub async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T, Refused> {
        let bytes = self.bytes(call).await?;
        serde_json::from_slice(&bytes).map_err(|why| Refused::Unreadable(why.to_string()))
    }

    /// Makes a call of which only the end matters.
    pub async fn done(&self, call: Call) -> Result<(), Refused> {
        self.bytes(call).await.map(|_| ())
    }

    /// Makes a call.
    pub async fn bytes(&self, call: Call) -> Result<Vec<u8>, Refused> {
        let made = async {
            let answer = self.answer(call).await?;
            read_all(answer.into_body()).await
        };
        let made = tokio::time::timeout(WITHIN, made).await;
        made.unwrap_or_else(|_| Err(Refused::Unreachable("no answer within 10 s".to_owned())))
    }

    /// What time it is there, to the second: ours may be another.
    pub async fn time(&self) -> Result<i64, Refused> {
        let asked = tokio::time::timeout(WITHIN, self.answer(Call::get("/version"))).await;
        let silent = |_| Refused::Unreachable("no answer within 10 s".to_owned());
        let answer = asked.map_err(silent)??;
        let date = answer.headers().get(http::header::DATE);
        let date = date.and_then(|date| crate::moment::header_nanos(date.to_str().ok()?));
        date.ok_or_else(|| Refused::Unreadable("it has no date".to_owned()))
    }

    /// Makes a call whose answer is read as it comes; a refusal is read whole.
    pub(crate) async fn answer(&self, call: Call) -> Result<Response<Incoming>, Refused> {
        let token = self
            .credentials
            .token()
            .await
            .map_err(Refused::Unreachable)?;
        let answer = self
            .client
            .request(call.request(self.server(), token)?)
            .await;
        let answer = answer.map_err(|why| Refused::Unreachable(chain(&why)))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (code, after) = (answer.status().as_u16(), retry_after(&answer));
        if code == 401 {
            self.credentials.forget();
        }
        let bytes = read_all(answer.into_body()).await.unwrap_or_default();
        Err(Refused::Said(Box::new(StatusSaid::read(
            code, after, &bytes,
        ))))
    }
}

async fn read_all(mut body: Incoming) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|why| Refused::Unreachable(chain(&why)))?;
        if let Some(data) = frame.data_ref() {
            bytes.extend_from_slice(data);
        }
        if MOST_BYTES < bytes.len() {
            return Err(Refused::Unreadable(format!("more than {MOST_BYTES} bytes")));
        }
    }
    Ok(bytes)
}

/// An error and everything that led to it, in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_from_a_status_or_from_plain_text() {
        let budget = br#"{"kind":"Status","code":429,"reason":"TooManyRequests","message":"no",
            "details":{"causes":[{"reason":"DisruptionBudget","message":"needs 2"}],"retryAfterSeconds":10}}"#;
        let said = StatusSaid::read(429, None, budget);
        assert_eq!(said.retry_after, Some(Duration::from_secs(10)));
        assert!(Refused::Said(Box::new(said)).has_cause("DisruptionBudget"));
        let header = Some(Duration::from_secs(3));
        let plain = StatusSaid::read(503, header, b" apiserver is shutting down\n");
        assert_eq!((plain.code, plain.retry_after), (503, header));
        assert_eq!(plain.message, "apiserver is shutting down");
    }
}
