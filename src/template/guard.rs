//! A fault of the template engine ends what was rendered, not the run.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use super::Error;
use crate::value::Origin;

thread_local! {
    /// How many guarded parts this thread is in.
    static GUARDED: Cell<usize> = const { Cell::new(0) };
    /// What the last fault said of itself.
    static FAULT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Does the work; a panic in it becomes an error at the place. It is not reported elsewhere, unless `RUST_BACKTRACE` is set.
pub(super) fn located<T>(origin: Option<&Origin>, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    listen();
    GUARDED.set(GUARDED.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(GUARDED.get() - 1);
    done.unwrap_or_else(|_| {
        let fault = FAULT.with_borrow_mut(std::mem::take);
        Err(Error::other(format!("internal error in the template engine: {fault}"), origin))
    })
}

/// Has faults in guarded parts kept for [`located`]; all others go their way.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |fault| {
            if GUARDED.get() == 0 {
                return others(fault);
            }
            let words = panic_text(fault.payload());
            FAULT.set(fault.location().map_or(words.clone(), |place| format!("{words} ({place})")));
            if Backtrace::capture().status() == BacktraceStatus::Captured {
                others(fault);
            }
        }));
    });
}

fn panic_text(payload: &dyn std::any::Any) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no details".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_says_what_and_where() {
        let list: Vec<usize> = Vec::new();
        let error = located(None, || Ok(list[std::hint::black_box(1)])).unwrap_err().to_string();
        assert!(error.contains("index out of bounds") && error.contains("guard.rs"), "{error}");
        assert_eq!(located(None, || Ok(1)).unwrap(), 1);
    }
}
