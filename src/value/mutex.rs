//! The locks of the whole program, with one policy: a lock is given out even if a thread panicked while it held it. Every
//! change under a lock is one step, so that what is behind it is whole; the panic itself is reported by the code that waits for
//! that thread. `clippy.toml` refuses the standard library's locks elsewhere.

#![expect(clippy::disallowed_types, reason = "the only place that uses the standard library's locks")]

use std::sync::{MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard};

/// A lock for one at a time.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock for many readers or one writer.
#[derive(Debug, Default)]
pub struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(std::sync::RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_elsewhere_locks_nobody_out() {
        let (one, many) = (Mutex::new(1), RwLock::new(2));
        let panics = std::panic::AssertUnwindSafe(|| {
            let (_one, _many) = (one.lock(), many.write());
            panic!("while both are held");
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(*one.lock(), 1);
        assert_eq!(*many.read(), 2);
        assert_eq!(*many.write(), 2);
        assert_eq!(one.into_inner(), 1);
    }
}
