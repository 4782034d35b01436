//! Lists and mappings that a template may change: `{% set l = [] %}{% set _ = l.append(1) %}`.

use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};

use super::conversions::fail;
use super::lazy::{Lazy, ScopeView, Views};
use crate::value::mutex::Mutex;
use crate::value::{DEEPEST, Value};

#[derive(Debug)]
struct List(Mutex<Vec<Value>>);

#[derive(Debug)]
struct Dict(Mutex<IndexMap<Value, Value>>);

/// A list or mapping as one that can be changed; other values as they are.
pub(super) fn mutable(value: Value) -> Value {
    match value.kind() {
        ValueKind::Seq => Value::from_object(List(Mutex::new(value.try_iter().into_iter().flatten().collect()))),
        ValueKind::Map => Value::from_object(Dict(Mutex::new(pairs(&value)))),
        _ => value,
    }
}

/// The unchangeable copy of a changeable value; None: it is none.
pub(super) fn plain_copy(value: &Value) -> Option<Value> {
    if let Some(list) = value.downcast_object_ref::<List>() {
        return Some(Value::from(lock(&list.0).clone()));
    }
    value.downcast_object_ref::<Dict>().map(|dict| Value::from_pairs(lock(&dict.0).clone()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock()
}

/// Refuses values that are the list or mapping at this address, or contain it: a walk through something that contains
/// itself never ends.
fn check<T>(values: &[Value], this: &Arc<T>) -> Result<(), Error> {
    match within(values, Arc::as_ptr(this).addr(), DEEPEST) {
        true => Err(fail("a list or mapping must not contain itself, or be nested deeper than 200 levels")),
        false => Ok(()),
    }
}

fn within(values: &[Value], address: usize, left: usize) -> bool {
    values.iter().any(|value| holds(value, address, left))
}

/// Whether a value is what is at the address, or holds it, or nests deeper than `left`.
fn holds(value: &Value, address: usize, left: usize) -> bool {
    let Some(object) = value.as_object() else { return false };
    let Some(left) = left.checked_sub(1) else { return true };
    if let Some(list) = object.downcast_ref::<List>() {
        return std::ptr::from_ref(list).addr() == address || within(&lock(&list.0).clone(), address, left);
    }
    if let Some(dict) = object.downcast_ref::<Dict>() {
        let items = || lock(&dict.0).iter().flat_map(|(key, item)| [key.clone(), item.clone()]).collect::<Vec<_>>();
        return std::ptr::from_ref(dict).addr() == address || within(&items(), address, left);
    }
    // No variable has what a template changes in it, and none is rendered for this.
    if object.is::<Lazy>() || object.is::<ScopeView>() || object.is::<Views>() {
        return false;
    }
    match object.repr() {
        ObjectRepr::Seq => object.try_iter().into_iter().flatten().any(|item| holds(&item, address, left)),
        ObjectRepr::Map => {
            let mut pairs = object.try_iter_pairs().into_iter().flatten();
            pairs.any(|(key, item)| holds(&key, address, left) || holds(&item, address, left))
        }
        _ => false,
    }
}

fn pairs(value: &Value) -> IndexMap<Value, Value> {
    value.as_object().and_then(|object| object.try_iter_pairs()).into_iter().flatten().collect()
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let list = lock(&self.0);
        let index = key.as_i64()?;
        let index = if index < 0 { index + list.len() as i64 } else { index };
        list.get(usize::try_from(index).ok()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(lock(&self.0).clone())
    }

    fn call_method(self: &Arc<Self>, _: &mut State<'_, '_>, method: &str, args: &[Value]) -> Result<Value, Error> {
        // What looks into values must not hold the lock: this list may be among them.
        let items = || lock(&self.0).clone();
        match method {
            "append" => {
                let (value,): (Value,) = from_args(args)?;
                check(std::slice::from_ref(&value), self)?;
                lock(&self.0).push(value);
            }
            "extend" => {
                let values: Vec<Value> = from_args::<(Value,)>(args)?.0.try_iter()?.collect();
                check(&values, self)?;
                lock(&self.0).extend(values);
            }
            "insert" => {
                let (at, value): (usize, Value) = from_args(args)?;
                check(std::slice::from_ref(&value), self)?;
                let mut list = lock(&self.0);
                let at = at.min(list.len());
                list.insert(at, value);
            }
            "remove" => {
                let (value,): (Value,) = from_args(args)?;
                let at = items().iter().position(|item| *item == value);
                let at = at.ok_or_else(|| fail("list.remove: no such item"))?;
                lock(&self.0).remove(at);
            }
            "pop" => {
                let (at,): (Option<i64>,) = from_args(args)?;
                let mut list = lock(&self.0);
                let at = at.unwrap_or(-1);
                let at = if at < 0 { at + list.len() as i64 } else { at };
                let at = usize::try_from(at).ok().filter(|at| *at < list.len());
                let at = at.ok_or_else(|| fail("list.pop: no such index"))?;
                return Ok(list.remove(at));
            }
            "clear" => lock(&self.0).clear(),
            "reverse" => lock(&self.0).reverse(),
            "sort" => {
                let (options,): (minijinja::value::Kwargs,) = from_args(args)?;
                let reverse = options.get::<Option<bool>>("reverse")?.unwrap_or(false);
                options.assert_all_used()?;
                let mut keyed: Vec<_> = items().into_iter().map(|item| (vec![item.clone()], item)).collect();
                super::python::sort(&mut keyed, reverse)?;
                *lock(&self.0) = keyed.into_iter().map(|(_, item)| item).collect();
            }
            _ => return Err(Error::from(ErrorKind::UnknownMethod)),
        }
        Ok(Value::from(()))
    }
}

impl Object for Dict {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        // A key is looked into while the lock is held.
        check(std::slice::from_ref(key), self).ok()?;
        lock(&self.0).get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(lock(&self.0).keys().cloned().collect())
    }

    fn call_method(self: &Arc<Self>, _: &mut State<'_, '_>, method: &str, args: &[Value]) -> Result<Value, Error> {
        match method {
            "update" => {
                let (other,): (Value,) = from_args(args)?;
                let other = pairs(&other);
                check(&other.iter().flat_map(|(key, item)| [key.clone(), item.clone()]).collect::<Vec<_>>(), self)?;
                lock(&self.0).extend(other);
                Ok(Value::from(()))
            }
            "setdefault" => {
                let (key, value): (Value, Option<Value>) = from_args(args)?;
                check(&[key.clone(), value.clone().unwrap_or_default()], self)?;
                Ok(lock(&self.0).entry(key).or_insert(value.unwrap_or(Value::from(()))).clone())
            }
            "pop" => {
                let (key, default): (Value, Option<Value>) = from_args(args)?;
                check(std::slice::from_ref(&key), self)?;
                let found = lock(&self.0).shift_remove(&key).or(default);
                found.ok_or_else(|| fail(format!("dict.pop: no key {key}")))
            }
            "popitem" => {
                let (key, value) = lock(&self.0).pop().ok_or_else(|| fail("dict.popitem: the mapping is empty"))?;
                Ok(Value::from(minijinja::value::Tuple::new(vec![key, value])))
            }
            "clear" => {
                lock(&self.0).clear();
                Ok(Value::from(()))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}
