//! Keywords that may be templates: the one way to read them. A value that cannot be read is an error, never "off".

use super::batch::Batch;
use super::host::HostRun;
use crate::playbook::{SourceValue, Task};
use crate::template::{self, Error, Scope, Templar};
use crate::value::{Value, float, truth};

/// A keyword and its name.
pub(super) type NamedKeyword<'a> = (&'static str, Option<&'a SourceValue>);

/// The value of a keyword; None: the task does not set it, or sets it to null or `omit`.
pub(super) fn keyword_value(
    templar: &Templar,
    keyword: Option<&SourceValue>,
    scope: &Scope,
) -> Result<Option<Value>, Error> {
    let Some(written) = keyword else { return Ok(None) };
    let value = templar.render(&written.value, scope)?;
    Ok((!value.is_none() && !template::is_omit(&value)).then_some(value))
}

/// A keyword that is true or false.
pub(super) fn keyword_flag(
    templar: &Templar,
    (name, keyword): NamedKeyword<'_>,
    scope: &Scope,
) -> Result<Option<bool>, Error> {
    evaluate_keyword(templar, keyword, scope, |value| truth::expect(value, name, &[]))
}

/// A keyword that is a number.
pub(super) fn keyword_number(
    templar: &Templar,
    (name, keyword): NamedKeyword<'_>,
    scope: &Scope,
) -> Result<Option<f64>, Error> {
    evaluate_keyword(templar, keyword, scope, |value| {
        finite(value).ok_or_else(|| format!("{name} must be a number, not {value:?}"))
    })
}

/// A keyword that is a whole number; what is below zero counts as zero.
pub(super) fn whole(templar: &Templar, (name, keyword): NamedKeyword<'_>, scope: &Scope) -> Result<Option<u32>, Error> {
    let whole = |value: &Value| finite(value).filter(|number| number.fract() == 0.0).map(float::clamped);
    evaluate_keyword(templar, keyword, scope, |value| {
        whole(value).ok_or_else(|| format!("{name} must be a whole number, not {value:?}"))
    })
}

/// A keyword that is a percentage, with or without the sign.
pub(super) fn percentage(
    templar: &Templar,
    (name, keyword): NamedKeyword<'_>,
    scope: &Scope,
) -> Result<Option<f64>, Error> {
    let percentage = |value: &Value| finite(&Value::from(value.to_string().replace('%', "")));
    evaluate_keyword(templar, keyword, scope, |value| {
        percentage(value).ok_or_else(|| format!("{name} must be a percentage, not {value:?}"))
    })
}

fn evaluate_keyword<T>(
    templar: &Templar,
    keyword: Option<&SourceValue>,
    scope: &Scope,
    typed: impl FnOnce(&Value) -> Result<T, String>,
) -> Result<Option<T>, Error> {
    let Some((written, value)) = keyword.zip(keyword_value(templar, keyword, scope)?) else { return Ok(None) };
    typed(&value).map(Some).map_err(|message| Error::Other { message, origin: Some(written.origin.clone()) })
}

fn finite(value: &Value) -> Option<f64> {
    value.to_string().trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

/// How the hosts of a group share a task.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SharedTaskKeywords {
    pub once: bool,
    /// How many hosts run it at a time.
    pub throttle: Option<usize>,
}

/// A host and why it cannot run the task.
pub(super) type Refused = (HostRun, Error);

/// How hosts share a task, as the first of them says whose keywords can be read. The others come back with their errors.
pub(super) fn sharing(
    batch: &Batch,
    task: &Task,
    hosts: Vec<HostRun>,
) -> (SharedTaskKeywords, Vec<HostRun>, Vec<Refused>) {
    let (mut able, mut refused, mut first) = (Vec::new(), Vec::new(), None);
    for host in hosts {
        match sharing_of(batch, task, &host) {
            Ok(sharing) => {
                // Who says that it runs once is the one that runs it.
                match (first, sharing) {
                    (None, Some(sharing)) if sharing.once => able.insert(0, host),
                    _ => able.push(host),
                }
                first = first.or(sharing);
            }
            Err(error) => refused.push((host, error)),
        }
    }
    (first.unwrap_or_default(), able, refused)
}

/// None: the host skips the task, so what its keywords are does not matter.
fn sharing_of(batch: &Batch, task: &Task, host: &HostRun) -> Result<Option<SharedTaskKeywords>, Error> {
    let keywords = &task.keywords;
    let doc = task.action.doc;
    // Includes are no modules.
    let by_nature = !doc.is_own() && crate::modules::find_module(doc.name).is_some_and(|entry| entry.once);
    if keywords.run_once.is_none() && keywords.throttle.is_none() && keywords.any_errors_fatal.is_none() {
        return Ok(Some(SharedTaskKeywords { once: by_nature, throttle: None }));
    }
    let (templar, scope) = (&batch.run.job.templar, batch.task_scope(host, task));
    let read = || {
        let once = keyword_flag(templar, ("run_once", keywords.run_once.as_ref()), &scope)?.unwrap_or(by_nature);
        let throttle = whole(templar, ("throttle", keywords.throttle.as_ref()), &scope)?;
        // Its value counts when a host fails; that it has one must be known before.
        keyword_flag(templar, ("any_errors_fatal", keywords.any_errors_fatal.as_ref()), &scope)?;
        Ok(SharedTaskKeywords { once, throttle: throttle.filter(|hosts| *hosts > 0).map(|hosts| hosts as usize) })
    };
    match read() {
        Err(_) if skipped(batch, task, &scope) => Ok(None),
        read => read.map(Some),
    }
}

/// Whether the conditions of a task say no without an item of its loop.
fn skipped(batch: &Batch, task: &Task, scope: &Scope) -> bool {
    let holds = |when: &SourceValue| batch.run.job.templar.condition(&when.value, Some(&when.origin), scope);
    matches!(task.keywords.when.iter().map(holds).find(|held| !matches!(held, Ok(true))), Some(Ok(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_infinite() {
        assert_eq!(finite(&Value::from(" 2.5 ")), Some(2.5));
        for text in ["nan", "inf", "-infinity", "", "1e999", "two"] {
            assert_eq!(finite(&Value::from(text)), None, "{text}");
        }
    }
}
