//! Intake: how many bytes of operators' frames may be in memory, and who pays for them (SE-9).
//!
//! ```text
//! body ─ bytes of a frame, as they arrive ─▶ charged to the caller and to the process ─▶ the frame
//!            │ too large, or no room                                                       │
//!            ▼                                                                             ▼
//!        RESOURCE_EXHAUSTED: the newest bytes are refused             taken in: the charge is given back
//! ```
//!
//! A caller that was not identified by its certificate pays as its connection. Nothing that is paid for by
//! one can be taken from another, but for the bound of the process.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bigfleet_net::Caller;
use http_body::Frame;
use prost::bytes::Bytes;
use tonic::Status;
use tonic::body::Body;

/// The largest first frame: a Hello is some hundred bytes.
pub(crate) const MOST_BEFORE_HELLO: usize = 64 << 10;
/// What one caller may have in memory.
const MOST_EACH: usize = 64 << 20;
/// What all of them may.
const MOST_IN_ALL: usize = 512 << 20;
/// What precedes a message: whether it is compressed, and its length.
const HEAD: usize = 5;

/// Who pays.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Payer {
    Identity(String),
    Connection(Option<SocketAddr>),
}

impl Payer {
    fn of(caller: &Caller) -> Self {
        match caller.identity() {
            Some(identity) => Self::Identity(identity.to_string()),
            None => Self::Connection(caller.addr()),
        }
    }
}

/// What is in memory.
#[derive(Debug, Default)]
struct Spent {
    in_all: usize,
    by_payer: BTreeMap<Payer, usize>,
}

/// How much may be in memory, and how much is.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// The largest frame after Hello.
    pub(crate) largest_frame: usize,
    spent: Arc<Mutex<Spent>>,
}

impl Budget {
    pub(crate) fn new(largest_frame: usize) -> Self {
        Self {
            largest_frame,
            spent: Arc::default(),
        }
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many bytes are being taken in.
    #[cfg(test)]
    pub(crate) fn in_all(&self) -> usize {
        self.spent().in_all
    }

    /// The frames of one stream of this caller.
    pub(crate) fn intake(&self, caller: &Caller) -> Arc<Intake> {
        Arc::new(Intake {
            budget: self.clone(),
            payer: Payer::of(caller),
            whole: Mutex::default(),
        })
    }
}

/// Bytes that somebody pays for, until it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Budget,
    payer: Payer,
    bytes: usize,
}

impl Charge {
    /// How many there are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Status> {
        let mut spent = self.budget.spent();
        let own = spent.by_payer.get(&self.payer).copied().unwrap_or_default();
        for (most, now, whose) in [
            (MOST_EACH, own, "of this caller"),
            (MOST_IN_ALL, spent.in_all, "of all callers"),
        ] {
            if most < now + bytes {
                return Err(Status::resource_exhausted(format!(
                    "{now} bytes {whose} are being taken in, of {most}; send less at once (SE-9)"
                )));
            }
        }
        spent.in_all += bytes;
        spent.by_payer.insert(self.payer.clone(), own + bytes);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut spent = self.budget.spent();
        spent.in_all -= self.bytes;
        if let Some(own) = spent.by_payer.get_mut(&self.payer) {
            *own -= self.bytes;
            if *own == 0 {
                spent.by_payer.remove(&self.payer);
            }
        }
    }
}

/// The frames of one stream, from their arrival until they are decoded.
#[derive(Debug)]
pub(crate) struct Intake {
    budget: Budget,
    payer: Payer,
    /// Of the frames that have arrived whole and are not decoded yet, in order.
    whole: Mutex<VecDeque<Charge>>,
}

impl Intake {
    fn whole(&self) -> MutexGuard<'_, VecDeque<Charge>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nothing(&self) -> Charge {
        Charge {
            budget: self.budget.clone(),
            payer: self.payer.clone(),
            bytes: 0,
        }
    }

    /// The charge of the next frame that is decoded.
    pub(crate) fn decoded(&self) -> Charge {
        let next = self.whole().pop_front();
        next.unwrap_or_else(|| self.nothing())
    }

    /// The body of a stream, metered.
    pub(crate) fn meter(self: &Arc<Self>, body: Body) -> Body {
        Body::new(Metered {
            body,
            meter: Meter {
                intake: Arc::clone(self),
                head: [0; HEAD],
                head_bytes: 0,
                missing: 0,
                arriving: None,
                is_first: true,
            },
            end: None,
        })
    }
}

/// How far the frames of a stream have arrived.
#[derive(Debug)]
struct Meter {
    intake: Arc<Intake>,
    head: [u8; HEAD],
    head_bytes: usize,
    /// Bytes that are missing of the frame that arrives.
    missing: usize,
    arriving: Option<Charge>,
    is_first: bool,
}

/// Bytes that are refused, and how many of them belong to what came before.
#[derive(Debug)]
struct Refused {
    before: usize,
    status: Status,
}

impl Meter {
    /// More bytes arrived.
    fn add(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        let mut rest = bytes;
        loop {
            // Where the frame begins that may be refused.
            let before = bytes.len() - rest.len();
            let refused = |status| Refused { before, status };
            if let Some(charge) = &mut self.arriving {
                let more = self.missing.min(rest.len());
                charge.add(more).map_err(refused)?;
                self.missing -= more;
                rest = &rest[more..];
                if self.missing != 0 {
                    return Ok(());
                }
                let charge = self.arriving.take();
                self.intake.whole().extend(charge);
                continue;
            }
            let more = (HEAD - self.head_bytes).min(rest.len());
            let (head, body) = rest.split_at(more);
            self.head[self.head_bytes..][..more].copy_from_slice(head);
            (self.head_bytes, rest) = (self.head_bytes + more, body);
            if self.head_bytes < HEAD {
                return Ok(());
            }
            self.begin().map_err(refused)?;
        }
    }

    /// The head of a frame has arrived.
    fn begin(&mut self) -> Result<(), Status> {
        let [_, length @ ..] = self.head;
        let length = u32::from_be_bytes(length) as usize;
        let (most, which) = if self.is_first {
            (MOST_BEFORE_HELLO, "a first frame")
        } else {
            (self.intake.budget.largest_frame, "a frame")
        };
        if most < length {
            return Err(Status::resource_exhausted(format!(
                "{which} of {length} bytes is larger than {most} (SE-9)"
            )));
        }
        (self.head_bytes, self.missing, self.is_first) = (0, length, false);
        self.arriving = Some(self.intake.nothing());
        Ok(())
    }
}

struct Metered {
    body: Body,
    meter: Meter,
    /// Why it ends, once what came before has been passed on.
    end: Option<Status>,
}

impl http_body::Body for Metered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(status) = self.end.take() {
            return Poll::Ready(Some(Err(status)));
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
            && let Err(Refused { before, status }) = self.meter.add(bytes)
        {
            self.end = Some(status);
            return Poll::Ready(Some(Ok(Frame::data(bytes.slice(..before)))));
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(length: usize) -> Vec<u8> {
        let head = u32::try_from(length).unwrap().to_be_bytes();
        [&[0], &head[..], &vec![7; length]].concat()
    }

    fn meter(budget: &Budget, addr: &str) -> Meter {
        let caller = Caller::plaintext(Some(addr.parse().unwrap()));
        Meter {
            intake: budget.intake(&caller),
            head: [0; HEAD],
            head_bytes: 0,
            missing: 0,
            arriving: None,
            is_first: true,
        }
    }

    #[test]
    fn a_frame_is_charged_as_it_arrives_and_until_it_is_taken_in() {
        let budget = Budget::new(1000);
        let mut one = meter(&budget, "127.0.0.1:1");
        let bytes = [framed(10), framed(0), framed(100)].concat();
        // However the bytes are cut.
        for cut in 1..bytes.len() {
            one.is_first = true;
            for piece in bytes.chunks(cut) {
                one.add(piece).unwrap();
            }
            assert_eq!(budget.in_all(), 110);
            let taken: Vec<usize> = (0..3).map(|_| one.intake.decoded().bytes).collect();
            assert_eq!((taken, budget.in_all()), (vec![10, 0, 100], 0));
        }
        one.add(&framed(100)[..50]).unwrap();
        assert_eq!(budget.in_all(), 45, "not what was announced");
        drop(one);
        assert_eq!(budget.in_all(), 0, "a stream that broke off pays no more");
        assert!(budget.spent().by_payer.is_empty());
    }

    /// SE-9: before Hello little, later as much as is set.
    #[test]
    fn a_frame_that_is_too_large_is_refused_by_its_head() {
        let budget = Budget::new(200_000);
        let mut one = meter(&budget, "127.0.0.1:1");
        let head = |length: u32| [&[0], &length.to_be_bytes()[..]].concat();
        let refused = one.add(&head(65_537)).unwrap_err().status;
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        let mut one = meter(&budget, "127.0.0.1:1");
        one.add(&framed(65_536)).unwrap();
        one.add(&framed(200_000)).unwrap();
        let refused = one.add(&[framed(7), head(200_001)].concat()).unwrap_err();
        assert_eq!(refused.before, 12, "what came before is heard");
        assert_eq!(
            refused.status.message(),
            "a frame of 200001 bytes is larger than 200000 (SE-9)"
        );
    }

    #[test]
    fn a_caller_pays_for_itself_and_all_of_them_for_the_process() {
        let budget = Budget::new(MOST_EACH);
        let mut callers: Vec<Meter> = (0..9)
            .map(|number| meter(&budget, &format!("127.0.0.1:{number}")))
            .collect();
        for one in &mut callers[..8] {
            one.is_first = false;
            one.add(&framed(MOST_EACH)).unwrap();
            let refused = one.add(&framed(1)).unwrap_err().status;
            assert!(refused.message().contains("of this caller"), "{refused}");
        }
        let refused = callers[8].add(&framed(1)).unwrap_err().status;
        assert!(refused.message().contains("of all callers"), "{refused}");
        drop(callers[0].intake.decoded());
        callers.truncate(8);
        let mut next = meter(&budget, "127.0.0.1:9");
        next.add(&framed(1)).unwrap();
    }
}
