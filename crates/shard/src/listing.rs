//! Listing: the provider's machines, page by page, to the core (wire 12, RC-2, RC-3).
//!
//! ```text
//! asked for ──▶ bytes ──▶ screened, in pieces ──▶ the core
//!  page 3        page 3      page 2                 page 1        each while the others are at it
//! ```
//!
//! A page is read where it lies, on a thread of its own, and never becomes a message: of a fleet that is
//! as it was nothing is copied but what the core compares. A page waits until the core has taken in the
//! one before it, so a List of any length takes the memory of a few pages.
//!
//! Nothing beyond the public contract is assumed: a provider that does not page answers with one page,
//! one that does not count is not counted.

use std::collections::HashSet;
use std::sync::Arc;

use bigfleet_model::{Breach, IdRefused, MachineId, MachineRefused, shown};
use bigfleet_net::TurnChannel;
use bigfleet_shard_core::{Event, ListId, Listed, Sighting};
use bigfleet_wire::v1alpha1::ListFilter;
use bigfleet_wire::{Alike, Listing, RecordProblem, RefusedRecord, Unreadable};
use prost::Message;
use prost::bytes::{Buf, Bytes};
use tokio::sync::{mpsc, oneshot};
use tonic::Status;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;

use crate::digest::Digest;
use crate::hub::{Hub, Stopping};
use crate::list_problem::ListProblem;
use crate::offload::offload;
use crate::provider::{sighting, timed};
use crate::rpcs::Rpcs;
use crate::settings::Settings;

const LIST: &str = "/bigfleet.v1alpha1.CapacityProvider/List";
/// Machines asked for per page, of a provider that pages.
const MACHINES_PER_PAGE: i32 = 5_000;
/// Machines the core takes in at once; between two such pieces it can decide.
const PIECE: usize = 250;
/// Refused records named in the log, per List.
const NAMED: usize = 10;
/// Pages of one List: of a hundred machines each, twice the largest fleet.
const MOST_PAGES: usize = 20_000;
/// Pages without a machine in a row.
const MOST_EMPTY_PAGES: usize = 100;

/// Why a List did not come to its end.
pub(crate) enum Broken {
    Stopping,
    Provider(ListProblem),
}

impl Broken {
    fn unusable(why: String) -> Self {
        Self::Provider(ListProblem::Unusable(why))
    }
}

impl From<Stopping> for Broken {
    fn from(_: Stopping) -> Self {
        Self::Stopping
    }
}

impl From<Status> for Broken {
    fn from(status: Status) -> Self {
        Self::Provider(ListProblem::of(&status))
    }
}

impl From<Unreadable> for Broken {
    fn from(why: Unreadable) -> Self {
        Self::unusable(why.to_string())
    }
}

/// Who reads Lists.
#[derive(Clone, Debug)]
pub(crate) struct Lister {
    calls: Grpc<TurnChannel>,
    hub: Hub,
    rpcs: Arc<Rpcs>,
}

/// A page's records: those that can be used, and those that cannot.
struct ScreenedPage {
    pieces: Vec<Vec<Sighting>>,
    refused: Vec<RefusedRecord>,
}

impl ScreenedPage {
    /// How many machines it shows, whether or not they can be used.
    fn machines(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum::<usize>() + self.refused.len()
    }
}

/// The tokens of a List's pages (RC-5): a List that leads back to a page, or on for ever, is no List.
#[derive(Default)]
struct PageTokens {
    /// Hashes of the tokens so far: as long as a token may be, twenty thousand are few bytes.
    seen: HashSet<Digest>,
    empty: usize,
}

impl PageTokens {
    /// The next page was offered under this token; empty after the last.
    fn offered(&mut self, token: &[u8]) -> Result<(), Broken> {
        if token.is_empty() {
            return Ok(());
        }
        let problem = if !self.seen.insert(Digest::of_token(token)) {
            "the List leads back to a page it had already".to_owned()
        } else if MOST_PAGES <= self.seen.len() {
            format!("the List has more than {MOST_PAGES} pages")
        } else {
            return Ok(());
        };
        Err(Broken::unusable(problem))
    }

    /// A page showed so many machines.
    fn showed(&mut self, machines: usize) -> Result<(), Broken> {
        self.empty = if machines == 0 { self.empty + 1 } else { 0 };
        if MOST_EMPTY_PAGES < self.empty {
            let text = format!("the List has {} empty pages in a row", self.empty);
            return Err(Broken::unusable(text));
        }
        Ok(())
    }
}

/// What the pages of a List say together.
#[derive(Default)]
struct ListTotals {
    /// The last page, without its records.
    last: Listing,
    removed: Vec<MachineId>,
    seen: usize,
    named: usize,
}

impl Lister {
    pub(crate) fn new(channel: TurnChannel, told: (Hub, Arc<Rpcs>)) -> Self {
        let calls = Grpc::new(channel).max_decoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES);
        Self {
            calls,
            hub: told.0,
            rpcs: told.1,
        }
    }

    /// Lists all machines, or what changed since the cursor, to the core.
    pub(crate) async fn list(&self, list: ListId, cursor: Vec<u8>) -> Result<Listed, Broken> {
        let everything = cursor.is_empty();
        let filter = ListFilter {
            since_revision: cursor,
            page_size: MACHINES_PER_PAGE,
            accept_removed: true,
            ..ListFilter::default()
        };
        let (read, mut pages) = mpsc::channel(1);
        let reading = self.read_pages(filter, read);
        let telling = async move {
            while let Some(page) = pages.recv().await {
                self.tell(list, page).await?;
            }
            Ok::<(), Broken>(())
        };
        let (end, told) = tokio::join!(reading, telling);
        told?;
        let ListTotals {
            last,
            removed,
            seen,
            ..
        } = end?;
        let full = everything || last.is_full;
        if let Some(total) = last.total.filter(|_| full)
            && seen < total as usize
        {
            let text = format!("the List has {seen} of {total} machines");
            return Err(Broken::unusable(text));
        }
        Ok(Listed::Complete {
            full,
            removed,
            cursor: last.revision,
        })
    }

    async fn read_pages(
        &self,
        mut filter: ListFilter,
        read: mpsc::Sender<ScreenedPage>,
    ) -> Result<ListTotals, Broken> {
        let (mut end, mut alike) = (ListTotals::default(), Alike::default());
        let mut tokens = PageTokens::default();
        let mut answer = self.page(filter.clone()).await?;
        loop {
            filter.page_token = Listing::next_page(&answer)?.to_vec();
            tokens.offered(&filter.page_token)?;
            let next = async {
                if filter.page_token.is_empty() {
                    None
                } else {
                    Some(self.page(filter.clone()).await)
                }
            };
            let rpcs = Arc::clone(&self.rpcs);
            // Reading thousands of records is too much for an async worker.
            let screening = offload(move || {
                let screened = screen(&answer, &mut alike, &rpcs);
                screened.map(|screened| (screened, alike))
            });
            let (screened, next) = tokio::join!(screening, next);
            let (page, listing);
            ((page, listing), alike) = screened??;
            tokens.showed(page.machines())?;
            end.add(&page, listing);
            let sent = read.send(page).await;
            sent.map_err(|_| Broken::Stopping)?;
            match next {
                Some(next) => answer = next?,
                None => return Ok(end),
            }
        }
    }

    async fn page(&self, filter: ListFilter) -> Result<Bytes, Status> {
        let mut calls = self.calls.clone();
        let call = async {
            let ready = calls.ready().await;
            ready.map_err(bigfleet_net::unready)?;
            let request = tonic::Request::new(filter);
            calls
                .unary(request, PathAndQuery::from_static(LIST), Pages)
                .await
        };
        timed(&self.rpcs, "List", Settings::LIST_WITHIN, call).await
    }

    /// The core has one piece to take in while it takes in another, and a page is told when it has
    /// taken in all of it.
    async fn tell(&self, list: ListId, page: ScreenedPage) -> Result<(), Stopping> {
        let refused = page.refused.into_iter().map(breach).collect();
        let mut before = self.hand(list, Vec::new(), refused).await?;
        for piece in page.pieces {
            let next = self.hand(list, piece, Vec::new()).await?;
            before.await.map_err(|_| Stopping)?;
            before = next;
        }
        before.await.map_err(|_| Stopping)
    }

    async fn hand(
        &self,
        list: ListId,
        machines: Vec<Sighting>,
        refused: Vec<(String, MachineRefused)>,
    ) -> Result<oneshot::Receiver<()>, Stopping> {
        let page = Event::ListPage {
            list,
            machines,
            refused,
        };
        self.hub.hand(page, |_| ()).await
    }
}

impl ListTotals {
    fn add(&mut self, page: &ScreenedPage, mut listing: Listing) {
        for record in page.refused.iter().take(NAMED.saturating_sub(self.named)) {
            self.named += 1;
            let machine = record.id.as_ref().map_or("", MachineId::as_str);
            tracing::warn!(machine, err = %record.problem, "provider record rejected");
        }
        self.seen += page.machines();
        self.removed.extend(std::mem::take(&mut listing.removed));
        self.last = listing;
    }
}

fn screen(
    answer: &[u8],
    alike: &mut Alike,
    rpcs: &Rpcs,
) -> Result<(ScreenedPage, Listing), Unreadable> {
    let mut listing = Listing::read_bytes(answer, alike)?;
    rpcs.heed(&listing.records);
    let refused = std::mem::take(&mut listing.refused);
    let mut records = std::mem::take(&mut listing.records)
        .into_iter()
        .map(sighting);
    let next = || Some(records.by_ref().take(PIECE).collect::<Vec<_>>());
    let pieces = std::iter::from_fn(next).take_while(|piece| !piece.is_empty());
    let pieces = pieces.collect();
    Ok((ScreenedPage { pieces, refused }, listing))
}

/// A refused record as the core counts it. What breaks a rule of the wire rather than of the grid
/// counts as structural, which an id that cannot be one is too.
fn breach(refused: RefusedRecord) -> (String, MachineRefused) {
    let id = refused.id.map(|id| id.to_string()).unwrap_or_default();
    let problem = match refused.problem {
        RecordProblem::Grid(problem) => problem,
        RecordProblem::Limit { .. }
        | RecordProblem::Duplicate(_)
        | RecordProblem::ListedAndRemoved(_)
        | RecordProblem::RemovedId(..) => MachineRefused {
            id: shown(&id),
            breach: Breach::Id(IdRefused::Empty),
        },
    };
    (id, problem)
}

/// Filters out, pages in, as they were sent.
#[derive(Clone, Copy, Debug, Default)]
struct Pages;

impl Codec for Pages {
    type Encode = ListFilter;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Decoder for Pages {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(bytes.copy_to_bytes(bytes.remaining()))) // which shares them
    }
}

impl Encoder for Pages {
    type Item = ListFilter;
    type Error = Status;

    fn encode(&mut self, filter: ListFilter, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let written = filter.encode(into);
        written.map_err(|why| Status::internal(why.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(ended: Result<(), Broken>) -> String {
        match ended {
            Ok(()) => String::new(),
            Err(Broken::Stopping) => panic!("nobody stops"),
            Err(Broken::Provider(problem)) => problem.words(),
        }
    }

    /// RC-5: also a loop of several pages, which no page shows by itself.
    #[test]
    fn a_list_that_leads_back_ends_at_once() {
        let mut tokens = PageTokens::default();
        for token in [&b"2"[..], b"3", b"4"] {
            assert_eq!(problem(tokens.offered(token)), "");
        }
        assert!(problem(tokens.offered(b"2")).contains("leads back"));
        assert_eq!(problem(tokens.offered(b"")), "", "the last page has none");
    }

    #[test]
    fn a_list_without_end_ends() {
        let mut tokens = PageTokens::default();
        let pages = (0..u32::MAX).position(|page| tokens.offered(&page.to_be_bytes()).is_err());
        assert_eq!(pages, Some(MOST_PAGES - 1));
        let mut tokens = PageTokens::default();
        for _ in 0..MOST_EMPTY_PAGES {
            assert_eq!(problem(tokens.showed(0)), "");
        }
        assert_eq!(problem(tokens.showed(1)), "");
        let empty = (0..).position(|_| tokens.showed(0).is_err());
        assert_eq!(empty, Some(MOST_EMPTY_PAGES));
    }
}
