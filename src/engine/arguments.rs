//! The arguments of a task's module, rendered for one item.

use minijinja::value::ValueKind;

use super::item::Item;
use super::target::is_connection_variable;
use crate::modules::{self, ModuleEntry};
use crate::playbook::SourceValue;
use crate::template;
use crate::value::{Template, Value, Vars, has_marks};

impl Item<'_> {
    /// The arguments, rendered: `args:` override `module_defaults`, and the task's own arguments override both.
    pub(super) fn arguments(&self, entry: &ModuleEntry) -> Result<Vars, template::Error> {
        let templar = &self.batch.run.job.templar;
        let mut rendered = Vars::new();
        let mut merge = |value: &Value| {
            for key in value.try_iter().into_iter().flatten() {
                let item = value.get_item(&key).unwrap_or_default();
                if !template::is_omit(&item) {
                    rendered.insert(key.to_string().into(), item);
                }
            }
        };
        // Of those of play, blocks and task the innermost that names the module counts, as a whole.
        let mut innermost = None;
        for defaults in &self.task.keywords.module_defaults {
            let value = templar.render(&defaults.value, &self.scope)?;
            let long = format!("{}.{}", entry.doc.collection, entry.doc.name);
            let said = |name: &str| value.get_attr(name).ok().filter(|said| !said.is_undefined());
            innermost = said(&long).or_else(|| said(entry.doc.name)).or(innermost);
        }
        innermost.iter().for_each(&mut merge);
        if let Some(more) = &self.task.action.more_args {
            merge(&self.argument(entry, "args", &more.value)?);
        }
        // Defaults, and `args:` that is one template, were rendered as a whole.
        let whole = self.task.action.more_args.as_ref().is_none_or(|more| more.value.kind() != ValueKind::Map);
        let evaluated = evaluated(entry).filter(|_| whole).and_then(|name| rendered.get(name));
        evaluated.map_or(Ok(()), |value| templar.check_foreign(value))?;
        for (name, written) in &self.task.action.args {
            let mut value = self.argument(entry, name, &written.value)?;
            if entry.doc.name == "set_stats" {
                value = self.with_names(written, value)?;
            }
            // `set_fact` may name its variables by templates.
            let name = match has_marks(name) {
                true => {
                    templar.render_string(&Template::template_value(name, Some(&written.origin)), &self.scope)?.into()
                }
                false => name.clone(),
            };
            if template::is_omit(&value) {
                rendered.shift_remove(&name);
            } else {
                rendered.insert(name, value);
            }
        }
        Ok(rendered)
    }

    /// `set_fact` and `add_host` take what says how a host is reached only under a name that the person wrote: a mapping or a name
    /// that is a template may be a host's text, which would choose a program of this machine.
    pub(super) fn check_connection_variables(&self, entry: &ModuleEntry, given: &Vars) -> Result<(), modules::Error> {
        let module = entry.doc.name;
        if !matches!(module, "set_fact" | "add_host") {
            return Ok(());
        }
        let action = &self.task.action;
        let long = format!("{}.{module}", entry.doc.collection);
        let defaults = self.task.keywords.module_defaults.iter().map(|defaults| &defaults.value);
        let defaults =
            defaults.flat_map(|value| [value.get_attr(&long), value.get_attr(module)]).filter_map(Result::ok);
        let more = action.more_args.iter().map(|more| more.value.clone());
        let written: Vec<Value> = defaults.chain(more).filter(|value| value.kind() == ValueKind::Map).collect();
        let is_written = |name: &str| {
            let in_mapping = |value: &Value| value.get_attr(name).is_ok_and(|value| !value.is_undefined());
            action.args.contains_key(name) || written.iter().any(in_mapping)
        };
        match given.keys().find(|name| is_connection_variable(name) && !is_written(name)) {
            None => Ok(()),
            Some(name) => Err(modules::Error::Failed {
                message: format!(
                    "{module} must not set {name}, which says how a host is reached, by a template that gives the name of \
                     the variable, too: its text may come from a host"
                ),
                hint: Some(format!("write the name in the task: `{name}: ...`")),
            }),
        }
    }

    /// An argument, rendered. Those that are evaluated afterwards must not be what a host said.
    fn argument(&self, entry: &ModuleEntry, name: &str, value: &Value) -> Result<Value, template::Error> {
        let templar = &self.batch.run.job.templar;
        match evaluated(entry) {
            Some(evaluated) if evaluated == name => templar.indirect(value, &self.scope),
            Some(_) if name == "args" && value.kind() == ValueKind::Map => {
                let names = value.try_iter().into_iter().flatten();
                let pair = |name: Value| {
                    let item = value.get_item(&name).unwrap_or_default();
                    Ok((name.clone(), self.argument(entry, &name.to_string(), &item)?))
                };
                Ok(Value::from_pairs(names.map(pair).collect::<Result<Vec<_>, template::Error>>()?))
            }
            _ => templar.render(value, &self.scope),
        }
    }

    /// Those that can be rendered, and the others as they are written: what is known of a task that could not begin.
    pub(super) fn arguments_as_far(&self) -> Vars {
        let templar = &self.batch.run.job.templar;
        let value = |written: &SourceValue| {
            let rendered = templar.render(&written.value, &self.scope);
            rendered.unwrap_or_else(|_| Value::from(written.value.to_string()))
        };
        self.task.action.args.iter().map(|(name, written)| (name.clone(), value(written))).collect()
    }

    /// A mapping with its names rendered, those that the person wrote: `set_stats` may have templates there.
    fn with_names(&self, written: &SourceValue, value: Value) -> Result<Value, template::Error> {
        let names: Vec<Value> = written.value.try_iter().into_iter().flatten().collect();
        if value.kind() != ValueKind::Map || !names.iter().any(|name| name.as_str().is_some_and(has_marks)) {
            return Ok(value);
        }
        let templar = &self.batch.run.job.templar;
        let render = |name: &Value| match name.as_str().filter(|name| has_marks(name)) {
            Some(text) => templar
                .render_string(&Template::template_value(text, Some(&written.origin)), &self.scope)
                .map(Value::from),
            None => Ok(name.clone()),
        };
        let pairs = names.iter().map(|name| Ok((render(name)?, value.get_item(name).unwrap_or_default())));
        Ok(Value::from_pairs(pairs.collect::<Result<Vec<_>, template::Error>>()?))
    }
}

/// The argument of a module that holds expressions.
fn evaluated(entry: &ModuleEntry) -> Option<&'static str> {
    match entry.doc.name {
        "assert" => Some("that"),
        "debug" => Some("var"),
        _ => None,
    }
}
