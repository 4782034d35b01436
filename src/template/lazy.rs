//! Views of values that hold unrendered templates: each part is rendered when it is looked at, and never before.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};

use super::blocking::waiting;
use super::{Error, Scope, guard, is_omit, render};
use crate::value::{Deferred, Template, Value};

/// A list or mapping whose templates are rendered at access.
#[derive(Clone)]
pub(super) struct Lazy {
    inner: Value,
    scope: Arc<Scope>,
}

/// All variables of a scope as a mapping: the root of every template, `vars`, one host of `hostvars`.
#[derive(Clone)]
pub(super) struct ScopeView(pub Arc<Scope>);

/// A mapping of views that is large: `hostvars`.
pub(super) struct Views(pub Value);

impl std::fmt::Debug for Lazy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.inner)
    }
}

impl std::fmt::Debug for ScopeView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("variables")
    }
}

impl std::fmt::Debug for Views {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A raw value as a template sees it. Templates in it are rendered now if it is one, at access if it holds some.
pub(super) fn see(value: &Value, scope: &Arc<Scope>) -> Result<Value, Error> {
    let Some(object) = value.as_object() else { return Ok(value.clone()) };
    if let Some(template) = object.downcast_ref::<Template>() {
        return render::template(template, scope);
    }
    if let Some(secret) = object.downcast_ref::<Deferred>() {
        return revealed(secret);
    }
    if is_plain_container(value) {
        return Ok(Value::from_object(Lazy { inner: value.clone(), scope: scope.clone() }));
    }
    Ok(value.clone())
}

/// The text of a secret that was not read yet.
fn revealed(secret: &Deferred) -> Result<Value, Error> {
    // The first host that needs it may query an API server. Without `waiting`, other hosts that need it would block all threads
    // of the runtime, and the response would never arrive.
    let text = secret.known().unwrap_or_else(|| waiting(|| secret.resolve()));
    text.map(Value::from).map_err(|message| Error::other(message, None))
}

/// Plain lists and mappings.
fn is_plain_container(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    object.is::<Vec<Value>>() || object.is::<indexmap::IndexMap<Value, Value>>()
}

/// [`see`], in the engine's terms: undefined inside is undefined outside, other errors are values that fail.
fn look(value: &Value, scope: &Arc<Scope>) -> Option<Value> {
    match see(value, scope) {
        Ok(value) => Some(value),
        Err(error) if error.undefined().is_some() => None,
        Err(error) => Some(Value::from(error.into_engine())),
    }
}

/// Why a member that is there is undefined: its text fails.
pub(super) fn failure(value: &Value, key: &Value) -> Option<Error> {
    let (raw, scope) = match (value.downcast_object_ref::<Lazy>(), value.downcast_object_ref::<ScopeView>()) {
        (Some(lazy), _) => (lazy.inner.get_item(key).ok()?, &lazy.scope),
        (None, Some(view)) => (view.0.get(key.as_str()?)?.clone(), &view.0),
        (None, None) => return None,
    };
    see(&raw, scope).err()
}

impl Object for Lazy {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.inner.kind() {
            ValueKind::Map => ObjectRepr::Map,
            _ => ObjectRepr::Seq,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        look(&self.inner.as_object()?.get_value(key)?, &self.scope)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        look(&self.inner.as_object()?.get_value_by_str(key)?, &self.scope)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.inner.kind() {
            ValueKind::Map => Enumerator::Values(self.inner.try_iter().into_iter().flatten().collect()),
            _ => match self.inner.downcast_object::<Vec<Value>>() {
                Some(items) => {
                    let scope = self.scope.clone();
                    let item = move |index: usize| look(&items[index], &scope).unwrap_or_default();
                    Enumerator::Iter(Box::new((0..self.inner.len().unwrap_or(0)).map(item)))
                }
                None => Enumerator::Seq(self.inner.len().unwrap_or(0)),
            },
        }
    }
}

impl Object for ScopeView {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if key == SCOPE {
            return Some(Value::from_dyn_object(self.clone()));
        }
        look(self.0.get(key)?, &self.0)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.variable_names().iter().map(|name| Value::from(name.clone())).collect())
    }
}

impl Object for Views {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.as_object()?.get_value(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.try_iter().into_iter().flatten().collect())
    }
}

/// Under this name a template's root gives itself, so that filters and lookups find the scope.
pub(super) const SCOPE: &str = " scope";

/// The value with every template in it rendered and no lazy parts. `omit` is dropped from lists and mappings.
pub(super) fn settle(value: &Value, scope: &Arc<Scope>) -> Result<Value, Error> {
    EagerCopy { scope, views: false, left: DEEPEST_ON_THE_WAY }.value(value)
}

/// As [`settle`], for arguments of filters: `vars` and `hostvars` stay views, because they are large.
pub(super) fn settle_argument(value: &Value, scope: &Arc<Scope>) -> Result<Value, Error> {
    EagerCopy { scope, views: true, left: DEEPEST_ON_THE_WAY }.value(value)
}

/// How deep what a template builds on its way may nest; a namespace may even be put into itself.
const DEEPEST_ON_THE_WAY: usize = 1_000;

#[derive(Clone, Copy)]
struct EagerCopy<'a> {
    scope: &'a Arc<Scope>,
    /// Views stay.
    views: bool,
    /// How many levels there may be below.
    left: usize,
}

impl EagerCopy<'_> {
    fn value(self, value: &Value) -> Result<Value, Error> {
        let Some(object) = value.as_object() else {
            return match value.kind() {
                ValueKind::Invalid => Err(invalid(value)),
                // Who knows the text fills in the name.
                ValueKind::Undefined => Err(Error::Undefined { name: String::new(), origin: None }),
                _ => Ok(value.clone()),
            };
        };
        if let Some(template) = object.downcast_ref::<Template>() {
            return guard::located(template.origin.as_ref(), || self.value(&render::template(template, self.scope)?));
        }
        if let Some(secret) = object.downcast_ref::<Deferred>() {
            return revealed(secret);
        }
        if let Some(lazy) = object.downcast_ref::<Lazy>() {
            return EagerCopy { scope: &lazy.scope, ..self }.value(&lazy.inner);
        }
        if let Some(view) = object.downcast_ref::<ScopeView>() {
            return if self.views { Ok(value.clone()) } else { EagerCopy { scope: &view.0, ..self }.view() };
        }
        if self.views && object.is::<Views>() {
            return Ok(value.clone());
        }
        if let Some(plain) = super::mutable::plain_copy(value) {
            return self.value(&plain);
        }
        let left = self.left.checked_sub(1).ok_or_else(|| {
            Error::other(format!("more than {DEEPEST_ON_THE_WAY} lists and mappings within each other"), None)
        })?;
        if self.is_settled(value) { Ok(value.clone()) } else { EagerCopy { left, ..self }.container(value) }
    }

    /// All variables of the scope.
    fn view(self) -> Result<Value, Error> {
        let pair = |name: &Arc<str>| {
            let raw = self.scope.get(name).expect("the scope has its own names");
            Ok((Value::from(name.clone()), self.value(raw)?))
        };
        Ok(Value::from_pairs(self.scope.variable_names().iter().map(pair).collect::<Result<Vec<_>, Error>>()?))
    }

    fn container(self, value: &Value) -> Result<Value, Error> {
        let object = value.as_object().expect("only objects hold other values");
        match object.repr() {
            ObjectRepr::Map => {
                let mut pairs = Vec::new();
                for (key, item) in object.try_iter_pairs().into_iter().flatten() {
                    let item = self.value(&item)?;
                    if !is_omit(&item) {
                        pairs.push((key, item));
                    }
                }
                Ok(Value::from_pairs(pairs))
            }
            ObjectRepr::Seq | ObjectRepr::Iterable => {
                let mut items = Vec::new();
                for item in object.try_iter().into_iter().flatten() {
                    let item = self.value(&item)?;
                    if !is_omit(&item) {
                        items.push(item);
                    }
                }
                Ok(Value::from(items))
            }
            _ => Ok(value.clone()),
        }
    }

    /// Whether nothing in the value is to be rendered, dropped or listed.
    fn is_settled(self, value: &Value) -> bool {
        let Some(object) = value.as_object() else {
            return !matches!(value.kind(), ValueKind::Invalid | ValueKind::Undefined);
        };
        if object.is::<ScopeView>() || object.is::<Views>() {
            return self.views;
        }
        if object.is::<Template>()
            || object.is::<Deferred>()
            || object.is::<Lazy>()
            || is_omit(value)
            || super::mutable::plain_copy(value).is_some()
        {
            return false;
        }
        // What is too deep is looked at level by level.
        let Some(left) = self.left.checked_sub(1) else { return false };
        let below = EagerCopy { left, ..self };
        match object.repr() {
            ObjectRepr::Map => object.try_iter_pairs().into_iter().flatten().all(|(_, item)| below.is_settled(&item)),
            ObjectRepr::Seq => {
                !value.is_tuple() && object.try_iter().into_iter().flatten().all(|item| below.is_settled(&item))
            }
            ObjectRepr::Iterable => false,
            _ => true,
        }
    }
}

/// Whether a filter's argument must be settled first. `vars` and `hostvars` stay views: they are large.
pub(super) fn needs_settling(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return value.kind() == ValueKind::Invalid };
    if object.is::<ScopeView>() || object.is::<Views>() || value.is_tuple() || is_omit(value) {
        return false;
    }
    match object.repr() {
        // Those of the engine, too: a namespace may hold what is lazy, or itself.
        ObjectRepr::Map | ObjectRepr::Seq => true,
        _ => object.is::<Template>() || object.is::<Deferred>(),
    }
}

/// What a failing value says, as our error.
fn invalid(value: &Value) -> Error {
    match value.try_iter() {
        Err(error) => {
            Error::inside(&error).cloned().unwrap_or_else(|| Error::other(super::engine_error_text(&error), None))
        }
        Ok(_) => Error::other("a value that cannot be rendered", None),
    }
}

/// The scope of the template that is being rendered.
pub(super) fn scope_of(state: &minijinja::State<'_, '_>) -> Arc<Scope> {
    state
        .lookup(SCOPE)
        .and_then(|value| value.downcast_object_ref::<ScopeView>().map(|view| view.0.clone()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Templar;
    use crate::value::Vars;
    use crate::value::mutex::Mutex;

    fn rendered(text: &str, name: &str, value: Value) -> String {
        let mut scope = Scope::default();
        scope.push(Arc::new(Vars::from([(name.into(), value)])));
        Templar::new().render_string(&Template::template_value(text, None), &scope).unwrap()
    }

    #[test]
    fn a_namespace_is_rendered_before_a_filter_gets_it() {
        let list = Value::from(vec![Template::template_value("{{ 1 + 1 }}", None)]);
        let text = "{% set ns = namespace(a=1) %}{% set ns.l = l %}{{ ns | to_json }}";
        assert_eq!(rendered(text, "l", list), "{\"a\": 1, \"l\": [2]}");
    }

    /// Notes which members are read.
    #[derive(Debug)]
    struct Noted(Arc<Mutex<Vec<String>>>);

    impl Object for Noted {
        fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
            self.0.lock().push(key.to_string());
            Some(Value::from(1))
        }

        fn enumerate(self: &Arc<Self>) -> Enumerator {
            Enumerator::Str(&["a", "b"])
        }
    }

    #[test]
    fn a_filter_gets_a_large_mapping_of_views_as_it_is() {
        let read = Arc::<Mutex<Vec<String>>>::default();
        let mapping = Templar::views(Noted(read.clone()));
        assert_eq!(rendered("{{ 'a' | extract(hosts) }}", "hosts", mapping), "1");
        let read = read.lock().clone();
        assert!(!read.is_empty() && read.iter().all(|name| name == "a"), "{read:?}");
    }
}
