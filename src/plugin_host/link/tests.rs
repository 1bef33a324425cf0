use std::io::{Read, Write};
use std::os::unix::net;
use std::sync::Weak;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::*;
use crate::plugin_host::wire::{HEAD, Order, encode};

const LIMIT: Duration = Duration::from_secs(60);

/// A link, and its worker's end, which the test speaks for.
struct Bench {
    runtime: Runtime,
    link: Arc<Link>,
    worker: net::UnixStream,
    faults: Arc<Mutex<Vec<LibraryFault>>>,
}

impl Bench {
    fn new(limit: Duration) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (socket, worker) = net::UnixStream::pair().unwrap();
        worker.set_read_timeout(Some(LIMIT)).unwrap();
        let faults = Arc::<Mutex<Vec<_>>>::default();
        let told = Arc::clone(&faults);
        let link = runtime.block_on(async {
            let line = SocketLine::new(socket).unwrap();
            Link::start(line, limit, &Handle::current(), move |fault| told.lock().push(fault))
        });
        Self { runtime, link, worker, faults }
    }

    /// As a library is that usually takes this long.
    fn usually(self, usual: Duration) -> Self {
        self.link.usual.store(usual.as_nanos() as u64, Ordering::Relaxed);
        self
    }

    fn ask(&self, number: u64) -> JoinHandle<Answer> {
        let (link, mut order) = (Arc::clone(&self.link), Vec::new());
        encode(&Order::<String>::Ask { number, patience: LIMIT, ask: Arc::default() }, &mut order);
        self.runtime.spawn(async move { link.ask(number, &order, Instant::now() + LIMIT).await })
    }

    /// Reads one question of the worker's end.
    fn read(&mut self) {
        let mut head = [0; HEAD];
        self.worker.read_exact(&mut head).unwrap();
        self.worker.read_exact(&mut vec![0; u32::from_le_bytes(head) as usize]).unwrap();
    }

    fn reply(&mut self, reply: &Reply) {
        let mut frame = Vec::new();
        encode(reply, &mut frame);
        self.worker.write_all(&frame).unwrap();
    }

    fn answer(&mut self, number: u64) {
        self.reply(&Reply::Answer { number, outcome: Ok(Vec::new()) });
    }

    fn under_way(&self) -> usize {
        self.link.queue.lock().under_way.len()
    }

    /// A call that has its share, and who waits for it.
    fn waiting(&self, number: u64) -> (Waiting, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        let share = Arc::clone(&self.link.shares).try_acquire_owned().unwrap();
        (Waiting { asked: Asked::Call { number, answer }, limit: LIMIT, _share: share }, answered)
    }

    fn outcome(&self, asked: JoinHandle<Answer>) -> Answer {
        self.runtime.block_on(asked).unwrap()
    }
}

#[test]
fn a_call_is_begun_if_its_time_may_do_and_at_an_idle_library_whatever_it_takes() {
    // As slow as can be, and idle.
    let mut bench = Bench::new(LIMIT).usually(LIMIT);
    let first = bench.ask(1);
    bench.read();
    bench.answer(1);
    assert_eq!(bench.outcome(first), Ok(Vec::new()));
    assert!(bench.link.usual() < LIMIT);
    // One that waits for another is told at once that there is no time for it.
    let first = bench.ask(2);
    bench.read();
    bench = bench.usually(LIMIT);
    assert_eq!(bench.outcome(bench.ask(3)), Err(Unanswered::Busy));
    // One that has the time waits.
    bench = bench.usually(TOGETHER);
    let waiting = bench.ask(4);
    bench.answer(2);
    bench.read();
    bench.answer(4);
    assert_eq!(bench.outcome(first), Ok(Vec::new()));
    assert_eq!(bench.outcome(waiting), Ok(Vec::new()));
    assert!(bench.faults.lock().is_empty());
}

#[test]
fn calls_of_a_quick_library_are_under_way_together() {
    let mut bench = Bench::new(LIMIT).usually(Duration::from_micros(5));
    let asked: Vec<_> = (1..=3).map(|number| bench.ask(number)).collect();
    (1..=3).for_each(|_| bench.read());
    (1..=3).for_each(|number| bench.answer(number));
    for call in asked {
        assert_eq!(bench.outcome(call), Ok(Vec::new()));
    }
}

#[test]
fn an_order_that_the_socket_does_not_take_at_once_goes_on_before_the_next() {
    let mut bench = Bench::new(LIMIT).usually(Duration::from_micros(5));
    // More than any buffer of a socket, and no byte like those around it.
    let order: Arc<[u8]> = (0..8_u32 << 20).map(|at| (at % 251) as u8).collect();
    let ask = |number: u64, order: Arc<[u8]>| {
        let link = Arc::clone(&bench.link);
        bench.runtime.spawn(async move { link.ask(number, &order, Instant::now() + LIMIT).await })
    };
    let first = ask(1, Arc::clone(&order));
    while bench.under_way() < 1 {
        std::thread::yield_now();
    }
    let second = ask(2, Arc::from(&order[1..1000]));
    while bench.under_way() < 2 {
        std::thread::yield_now();
    }
    let mut read = vec![0; order.len() + 999];
    bench.worker.read_exact(&mut read).unwrap();
    assert!(read == [&order[..], &order[1..1000]].concat());
    (1..=2).for_each(|number| bench.answer(number));
    assert_eq!(bench.outcome(first), Ok(Vec::new()));
    assert_eq!(bench.outcome(second), Ok(Vec::new()));
}

#[test]
fn nothing_is_sent_on_a_line_that_was_retired_or_broke() {
    let check = |end: fn(&Link)| {
        let mut bench = Bench::new(LIMIT).usually(Duration::from_micros(5));
        // It keeps the conversation.
        let under_way = bench.ask(1);
        bench.read();
        end(&bench.link);
        // As who had its share and looked before that moment.
        let (waiting, answered) = bench.waiting(2);
        assert!(!bench.link.send(b"late", waiting));
        assert!(bench.runtime.block_on(answered).is_err(), "nobody answers");
        bench.answer(1);
        assert_eq!(bench.outcome(under_way), Ok(Vec::new()));
    };
    check(Link::retire);
    check(|link| link.fail(LibraryFault::Broken("it said so".to_owned())));
    // It breaks while a call has its share already.
    let bench = Bench::new(LIMIT);
    let (waiting, _answered) = bench.waiting(1);
    bench.link.break_off(LibraryFault::Timeout(1));
    assert!(!bench.link.send(b"late", waiting));
    assert_eq!(*bench.faults.lock(), [LibraryFault::Timeout(1)]);
}

#[test]
fn what_was_sent_before_a_link_was_retired_is_seen_to_its_end() {
    let bench = Bench::new(LIMIT);
    let (socket, mut worker) = net::UnixStream::pair().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        let line = SocketLine::new(socket).unwrap();
        let link = Link::start(line, LIMIT, &Handle::current(), |_| ());
        // The conversation learns of both at once.
        let (waiting, answered) = bench.waiting(1);
        assert!(link.send(b"in time", waiting));
        link.retire();
        let mut answer = Vec::new();
        encode(&Reply::Answer { number: 1, outcome: Ok(Vec::new()) }, &mut answer);
        worker.write_all(&answer).unwrap();
        answered.await
    });
    assert_eq!(outcome, Ok(Ok(Vec::new())));
}

#[test]
fn calls_have_shares_of_the_time_by_what_they_usually_take() {
    let check = |usual: Duration, expected: u32| assert_eq!(shares(usual), expected, "{usual:?}");
    check(Duration::ZERO, SHARES);
    check(Duration::from_nanos(1), 1);
    check(TOGETHER / SHARES, 1);
    check(TOGETHER / 2, SHARES / 2);
    check(TOGETHER, SHARES);
    check(Duration::MAX, SHARES);
}

#[test]
fn a_fault_is_the_first_call_s_and_the_others_may_be_asked_elsewhere() {
    let check = |limit: Duration, fault: fn(&mut Bench), expected: LibraryFault| {
        let mut bench = Bench::new(limit).usually(Duration::from_micros(5));
        let first = bench.ask(1);
        bench.read();
        let second = bench.ask(2);
        bench.read();
        fault(&mut bench);
        assert_eq!(bench.outcome(first), Err(Unanswered::LibraryFault(expected.clone())));
        assert_eq!(bench.outcome(second), Err(Unanswered::Gone), "{expected:?}");
        assert_eq!(bench.outcome(bench.ask(3)), Err(Unanswered::Gone), "{expected:?}");
        assert_eq!(*bench.faults.lock(), [expected]);
    };
    let protocol = |message: &str| LibraryFault::Protocol(message.to_owned());
    check(LIMIT, |bench| bench.answer(2), protocol("an answer to call 2, which is not the one under way"));
    check(
        LIMIT,
        |bench| bench.reply(&Reply::Snapshotted(Ok(()))),
        protocol("an answer of another kind than the question"),
    );
    let closed = LibraryFault::Crash("it closed its socket".to_owned());
    check(LIMIT, |bench| bench.worker.shutdown(std::net::Shutdown::Both).unwrap(), closed);
    check(Duration::from_secs(2), |_| (), LibraryFault::Timeout(2000));
}

#[test]
fn an_answer_that_nobody_waits_for_is_read_and_judged() {
    let mut bench = Bench::new(LIMIT);
    let left = bench.ask(1);
    bench.read();
    left.abort();
    bench.answer(1);
    let next = bench.ask(2);
    bench.read();
    let message = "it is broken".to_owned();
    bench.reply(&Reply::Answer { number: 2, outcome: Err(Refusal { message: message.clone(), for_good: true }) });
    let fault = LibraryFault::Broken(message);
    assert_eq!(bench.outcome(next), Err(Unanswered::LibraryFault(fault.clone())));
    assert_eq!(*bench.faults.lock(), [fault]);
}

#[test]
fn a_retired_link_ends_with_what_is_under_way() {
    let mut bench = Bench::new(LIMIT);
    let under_way = bench.ask(1);
    bench.read();
    let link = Arc::clone(&bench.link);
    let drained = bench.runtime.spawn(async move { link.drain().await });
    while !bench.link.is_broken() {
        std::thread::yield_now();
    }
    assert_eq!(bench.outcome(bench.ask(2)), Err(Unanswered::Gone));
    bench.answer(1);
    assert_eq!(bench.outcome(under_way), Ok(Vec::new()));
    bench.runtime.block_on(drained).unwrap();
    let link: Weak<Link> = Arc::downgrade(&bench.link);
    let Bench { runtime, link: last, mut worker, .. } = bench;
    drop(last);
    // The end of its socket is that of its task, which had the link.
    assert_eq!(worker.read(&mut [0]).unwrap(), 0);
    runtime.block_on(async {
        while link.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    });
}
