//! Secrets that are read when something needs them, and not before.

use std::fmt;
use std::sync::{Arc, OnceLock};

use minijinja::value::{Object, ObjectRepr};

use super::{SecretTexts, Value};

/// A secret that is not read yet. It shows where it comes from; only rendering it reads its value, and
/// from then on no report shows it.
pub struct Deferred {
    place: String,
    read: Box<dyn Fn() -> Result<String, String> + Send + Sync>,
    /// None: what it reads may be shown.
    hidden: Option<SecretTexts>,
    content: OnceLock<Result<Arc<str>, String>>,
}

impl Deferred {
    /// A placeholder for the secret. `place` is shown instead of it (`the file /etc/key`); `read` is called at
    /// most once, and its error is the reason.
    pub fn deferred_value(
        place: impl Into<String>,
        hidden: &SecretTexts,
        read: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> Value {
        Deferred::value(place.into(), Some(hidden.clone()), Box::new(read))
    }

    /// As [`Deferred::deferred_value`], for what is no secret, such as the path of a directory that is filled when its path is read.
    pub fn deferred_path(
        place: impl Into<String>,
        read: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> Value {
        Deferred::value(place.into(), None, Box::new(read))
    }

    fn value(
        place: String,
        hidden: Option<SecretTexts>,
        read: Box<dyn Fn() -> Result<String, String> + Send + Sync>,
    ) -> Value {
        Value::from_object(Deferred { place, read, hidden, content: OnceLock::new() })
    }

    /// The secret, if it was read already.
    pub fn known(&self) -> Option<Result<Arc<str>, String>> {
        self.content.get().cloned()
    }

    /// Reads the secret, if that was not done yet. Concurrent callers also wait.
    ///
    /// # Errors
    /// One line that says why it cannot be read, and nothing of it.
    pub fn resolve(&self) -> Result<Arc<str>, String> {
        let read = || {
            let text = (self.read)().map_err(|why| format!("cannot read {}: {why}", self.place))?;
            if let Some(hidden) = &self.hidden {
                hidden.add_secret(&text);
            }
            Ok(Arc::from(text))
        };
        self.content.get_or_init(read).clone()
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl Object for Deferred {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.hidden.is_some() { "a secret: " } else { "" };
        write!(f, "{kind}{}", self.place)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_secret_is_read_once_when_it_is_asked_for_and_hidden_from_then_on() {
        let (hidden, times) = (SecretTexts::default(), Arc::new(AtomicUsize::new(0)));
        let counted = times.clone();
        let value = Deferred::deferred_value("the file /key", &hidden, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok("hunter2-long".to_owned())
        });
        assert_eq!(value.to_string(), "a secret: the file /key");
        assert_eq!(serde_json::to_string(&value).unwrap(), "\"a secret: the file /key\"");
        assert!(hidden.is_empty() && times.load(Ordering::Relaxed) == 0);
        let secret = value.downcast_object_ref::<Deferred>().unwrap();
        assert_eq!(
            [secret.resolve().unwrap(), secret.resolve().unwrap()].map(|text| text.to_string()),
            ["hunter2-long"; 2]
        );
        assert_eq!((times.load(Ordering::Relaxed), &*hidden.hide("a hunter2-long")), (1, "a ***"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let value =
            Deferred::deferred_value("the file /key", &SecretTexts::default(), || Err("there is none".to_owned()));
        let secret = value.downcast_object_ref::<Deferred>().unwrap();
        assert_eq!(secret.resolve().unwrap_err(), "cannot read the file /key: there is none");
    }
}
