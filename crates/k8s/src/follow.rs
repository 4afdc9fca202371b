//! Follow: a list and watch of one kind, told as it happens (OP-1 to OP-4).
//!
//! ```text
//! Began ─▶ Seen … ─▶ Whole ─▶ Seen, Gone, Fresh … ─▶ Broken ─▶ from the last version on
//!   ▲                                                  └─ 410, or ended before it was whole ─▶ anew
//! ```
//!
//! The begin is a consistent read: a watch that sends what there is first, and a bookmark when that is all. A server
//! that does not know this is read in pages, for the rest of the process. A watch that is silent for longer than the
//! bookmarks of a server are apart is taken for dead.

use crate::call::{Call, Refused};
use crate::connect::Cluster;
use crate::watch::{Line, Lines, Named, refusal};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

const INITIAL_END: &str = "k8s.io/initial-events-end";
const WATCH_SECONDS: u64 = 290;
/// A server sends a bookmark every minute.
const SILENT_AFTER: Duration = Duration::from_secs(150);
const PAGE: usize = 500;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Where an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its namespace; empty for what has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// An object, or why it cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen<T> {
    /// Where it is.
    pub place: Place,
    /// The version of the store that shows it; 0 if that is no number.
    pub version: u64,
    /// The object.
    pub object: Result<T, String>,
}

/// What a list and watch tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed<T> {
    /// A complete list begins; what came before stays in force until it is whole.
    Began,
    /// An object as it is now.
    Seen(Seen<T>),
    /// An object is gone.
    Gone(Place, u64),
    /// The list is complete.
    Whole(u64),
    /// The watch lives.
    Fresh(u64),
    /// The stream ended; it is tried again.
    Broken(Option<Refused>),
}

/// What to follow.
#[derive(Clone, Debug)]
pub struct Follow {
    /// The path of the list.
    pub path: String,
    /// A selector of fields; may be empty.
    pub fields: String,
}

/// What all lists and watches of a process share.
#[derive(Clone, Debug, Default)]
pub struct Followers {
    /// The server does not send what there is on a watch.
    in_pages: Arc<AtomicBool>,
}

/// How a stream ended.
enum Ended {
    /// Its version is too old, or it never was whole.
    Anew(Option<Refused>),
    /// It goes on from its last version.
    From(String, Option<Refused>),
    /// Nobody listens.
    Unheard,
}

impl Followers {
    /// Follows until the task is aborted, or nobody listens: `tell` answers whether somebody does.
    pub fn follow<T, F>(
        &self,
        cluster: &Cluster,
        what: Follow,
        tell: impl Fn(Followed<T>) -> F + Send + Sync + 'static,
    ) -> JoinHandle<()>
    where
        T: DeserializeOwned + Send + 'static,
        F: Future<Output = bool> + Send,
    {
        let (cluster, in_pages) = (cluster.clone(), Arc::clone(&self.in_pages));
        tokio::spawn(async move {
            let follower = Follower {
                cluster,
                what,
                in_pages,
                tell,
            };
            follower.run().await;
        })
    }
}

struct Follower<Tell> {
    cluster: Cluster,
    what: Follow,
    in_pages: Arc<AtomicBool>,
    tell: Tell,
}

impl<Tell> Follower<Tell> {
    async fn run<T, F>(&self)
    where
        T: DeserializeOwned + Send + 'static,
        Tell: Fn(Followed<T>) -> F + Send + Sync,
        F: Future<Output = bool> + Send,
    {
        let mut pause = FIRST_PAUSE;
        let mut from: Option<String> = None;
        loop {
            let (ended, was_well) = match from.take() {
                None => self.anew::<T, F>().await,
                Some(version) => self.watch::<T, F>(Some(version)).await,
            };
            let why = match ended {
                Ended::Unheard => return,
                Ended::Anew(why) => why,
                Ended::From(version, why) => {
                    from = Some(version);
                    why
                }
            };
            let failed = why.is_some();
            if !(self.tell)(Followed::Broken(why)).await {
                return;
            }
            if was_well {
                pause = FIRST_PAUSE;
            }
            if failed || !was_well {
                tokio::time::sleep(share_of(pause)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// A complete list, then its watch.
    async fn anew<T, F>(&self) -> (Ended, bool)
    where
        T: DeserializeOwned + Send + 'static,
        Tell: Fn(Followed<T>) -> F + Send + Sync,
        F: Future<Output = bool> + Send,
    {
        if !(self.tell)(Followed::Began).await {
            return (Ended::Unheard, true);
        }
        if !self.in_pages.load(Ordering::Relaxed) {
            let (ended, was_well) = self.watch::<T, F>(None).await;
            let unknown = matches!(&ended, Ended::Anew(Some(Refused::Said(said)))
                if said.code == 422 && said.causes.iter().any(|cause| cause.field == "sendInitialEvents"));
            if !unknown {
                return (ended, was_well);
            }
            self.in_pages.store(true, Ordering::Relaxed);
        }
        match self.list::<T, F>().await {
            Err(ended) => (ended, false),
            Ok(version) => self.watch::<T, F>(Some(version)).await,
        }
    }

    async fn list<T, F>(&self) -> Result<String, Ended>
    where
        T: DeserializeOwned + Send + 'static,
        Tell: Fn(Followed<T>) -> F + Send + Sync,
        F: Future<Output = bool> + Send,
    {
        let mut next = String::new();
        loop {
            let mut path = format!("{}?limit={PAGE}", self.what.path);
            self.select(&mut path);
            if !next.is_empty() {
                path.push_str(&format!("&continue={next}"));
            }
            let page: Value = self
                .cluster
                .call(Call::get(&path))
                .await
                .map_err(|why| Ended::Anew(Some(why)))?;
            let metadata = |name: &str| page["metadata"][name].as_str().unwrap_or_default();
            let version = metadata("resourceVersion").to_owned();
            next = metadata("continue").to_owned();
            let items = page["items"].as_array().cloned().unwrap_or_default();
            for item in items {
                let named: Named = serde_json::from_value(item.clone()).unwrap_or_default();
                let object = serde_json::from_value(item).map_err(|why| why.to_string());
                if !(self.tell)(Followed::Seen(seen(named, object))).await {
                    return Err(Ended::Unheard);
                }
            }
            if next.is_empty() {
                let whole = Followed::Whole(number(&version));
                let heard = (self.tell)(whole).await;
                return heard.then_some(version).ok_or(Ended::Unheard);
            }
        }
    }

    fn select(&self, path: &mut String) {
        if !self.what.fields.is_empty() {
            path.push_str("&fieldSelector=");
            path.push_str(&self.what.fields.replace('=', "%3D").replace(',', "%2C"));
        }
    }

    /// A watch from a version, or one that begins with what there is; how it ended, and whether it ever worked.
    async fn watch<T, F>(&self, from: Option<String>) -> (Ended, bool)
    where
        T: DeserializeOwned + Send + 'static,
        Tell: Fn(Followed<T>) -> F + Send + Sync,
        F: Future<Output = bool> + Send,
    {
        let mut path = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}",
            self.what.path
        );
        self.select(&mut path);
        match &from {
            Some(version) => path.push_str(&format!("&resourceVersion={version}")),
            None => path.push_str(
                "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=",
            ),
        }
        let mut last = from;
        let is_whole = last.is_some();
        let answer = tokio::time::timeout(SILENT_AFTER, self.cluster.answer(Call::get(&path)));
        let mut lines = match answer.await {
            Ok(Ok(answer)) => Lines::new(answer),
            Ok(Err(why)) => return (ended(last, is_whole, Some(why)), false),
            Err(_) => return (ended(last, is_whole, Some(silent())), false),
        };
        let (mut is_whole, mut was_well) = (is_whole, false);
        loop {
            let line = match tokio::time::timeout(SILENT_AFTER, lines.next()).await {
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None)) => return (ended(last, is_whole, None), was_well),
                Ok(Err(why)) => return (ended(last, is_whole, Some(why)), was_well),
                Err(_) => return (ended(last, is_whole, Some(silent())), was_well),
            };
            let Ok(read) = serde_json::from_slice::<Line<Named>>(&line) else {
                let why = Refused::Unreadable("a line of a watch is no event".to_owned());
                return (Ended::Anew(Some(why)), was_well);
            };
            let version = read.object.metadata.resource_version.clone();
            let told = match read.kind.as_str() {
                "ADDED" | "MODIFIED" => {
                    let object = serde_json::from_slice::<Line<T>>(&line);
                    let object = object
                        .map(|line| line.object)
                        .map_err(|why| why.to_string());
                    Followed::Seen(seen(read.object, object))
                }
                "DELETED" => {
                    let number = number(&version);
                    Followed::Gone(place(read.object), number)
                }
                "BOOKMARK" => {
                    let notes = read.object.metadata.annotations.unwrap_or_default();
                    if is_whole || notes.get(INITIAL_END).is_none_or(|text| text != "true") {
                        Followed::Fresh(number(&version))
                    } else {
                        is_whole = true;
                        Followed::Whole(number(&version))
                    }
                }
                _ => {
                    let why = refusal(&line);
                    let is_old = why.code() == Some(410);
                    if is_old {
                        return (Ended::Anew(None), was_well);
                    }
                    return (ended(last, is_whole, Some(why)), was_well);
                }
            };
            was_well = true;
            if !version.is_empty() {
                last = Some(version);
            }
            if !(self.tell)(told).await {
                return (Ended::Unheard, true);
            }
        }
    }
}

fn ended(last: Option<String>, is_whole: bool, why: Option<Refused>) -> Ended {
    let is_old = why.as_ref().and_then(Refused::code) == Some(410);
    match last.filter(|_| is_whole && !is_old) {
        Some(version) => Ended::From(version, why),
        None => Ended::Anew(why),
    }
}

fn silent() -> Refused {
    Refused::Unreachable("a watch was silent for 150 s".to_owned())
}

fn place(named: Named) -> Place {
    Place {
        namespace: named.metadata.namespace,
        name: named.metadata.name,
    }
}

fn seen<T>(named: Named, object: Result<T, String>) -> Seen<T> {
    Seen {
        version: number(&named.metadata.resource_version),
        place: place(named),
        object,
    }
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

/// Somewhere between nothing and this, so that processes that lost a server together do not return together.
fn share_of(pause: Duration) -> Duration {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u8(0);
    pause.mul_f64((hasher.finish() % 1000) as f64 / 1000.0)
}
