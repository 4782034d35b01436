//! Lists and mappings that a template may change: `{% set l = [] %}{% set _ = l.append(1) %}`.

use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};

use crate::value::Value;

#[derive(Debug)]
struct List(Mutex<Vec<Value>>);

#[derive(Debug)]
struct Dict(Mutex<IndexMap<Value, Value>>);

/// A list or mapping as one that can be changed; other values as they are.
pub fn mutable(value: Value) -> Value {
    match value.kind() {
        ValueKind::Seq => Value::from_object(List(Mutex::new(value.try_iter().into_iter().flatten().collect()))),
        ValueKind::Map => Value::from_object(Dict(Mutex::new(pairs(&value)))),
        _ => value,
    }
}

/// The unchangeable copy of a changeable value; None: it is none.
pub fn plain(value: &Value) -> Option<Value> {
    if let Some(list) = value.downcast_object_ref::<List>() {
        return Some(Value::from(lock(&list.0).clone()));
    }
    value.downcast_object_ref::<Dict>().map(|dict| Value::from_pairs(lock(&dict.0).clone()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut list = lock(&self.0);
        match method {
            "append" => list.push(from_args::<(Value,)>(args)?.0),
            "extend" => list.extend(from_args::<(Value,)>(args)?.0.try_iter()?),
            "insert" => {
                let (at, value): (usize, Value) = from_args(args)?;
                let at = at.min(list.len());
                list.insert(at, value);
            }
            "remove" => {
                let (value,): (Value,) = from_args(args)?;
                let at = list.iter().position(|item| *item == value);
                let at = at.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "list.remove: no such item"))?;
                list.remove(at);
            }
            "pop" => {
                let (at,): (Option<i64>,) = from_args(args)?;
                let at = at.unwrap_or(-1);
                let at = if at < 0 { at + list.len() as i64 } else { at };
                let at = usize::try_from(at).ok().filter(|at| *at < list.len());
                let at = at.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "list.pop: no such index"))?;
                return Ok(list.remove(at));
            }
            "clear" => list.clear(),
            "reverse" => list.reverse(),
            "sort" => {
                let (options,): (minijinja::value::Kwargs,) = from_args(args)?;
                let reverse = options.get::<Option<bool>>("reverse")?.unwrap_or(false);
                options.assert_all_used()?;
                let mut keyed: Vec<_> = list.iter().map(|item| (vec![item.clone()], item.clone())).collect();
                super::python::sort(&mut keyed, reverse)?;
                *list = keyed.into_iter().map(|(_, item)| item).collect();
            }
            _ => return Err(Error::from(ErrorKind::UnknownMethod)),
        }
        Ok(Value::from(()))
    }
}

impl Object for Dict {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
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
                lock(&self.0).extend(other);
                Ok(Value::from(()))
            }
            "setdefault" => {
                let (key, value): (Value, Option<Value>) = from_args(args)?;
                Ok(lock(&self.0).entry(key).or_insert(value.unwrap_or(Value::from(()))).clone())
            }
            "pop" => {
                let (key, default): (Value, Option<Value>) = from_args(args)?;
                let missing = || Error::new(ErrorKind::InvalidOperation, format!("dict.pop: no key {key}"));
                lock(&self.0).shift_remove(&key).or(default).ok_or_else(missing)
            }
            "popitem" => {
                let (key, value) = lock(&self.0)
                    .pop()
                    .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "dict.popitem: the mapping is empty"))?;
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
