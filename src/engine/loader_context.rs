//! What the loader asks of the floors above it: which modules there are, whether a template is well formed.

use std::path::Path;
use std::sync::Arc;

use super::asynchronous;
use crate::modules;
use crate::playbook::load;
use crate::template::{self, Scope, Templar, own};
use crate::value::doc::Doc;
use crate::value::origin::Complaint;
use crate::value::{Origin, Value, Vars};

/// The modules and the templates of this build.
pub struct Known {
    pub templar: Arc<Templar>,
}

impl load::Known for Known {
    fn module(&self, name: &str) -> Option<&'static Doc> {
        modules::find(name).map(|entry| entry.doc)
    }

    fn modules(&self) -> Vec<&'static str> {
        modules::MODULES.iter().map(|entry| entry.doc.name).collect()
    }

    fn own_module(&self, name: &str, file: &Path) -> Result<&'static Doc, (String, &'static str)> {
        modules::own::open(name, file).map(|entry| entry.doc)
    }

    fn own_words(&self, words: &load::Words) {
        words.filters.iter().for_each(|directory| self.templar.add_own(own::Sort::Filter, directory));
        words.lookups.iter().for_each(|directory| self.templar.add_own(own::Sort::Lookup, directory));
    }

    fn refuses_async(&self, doc: &'static Doc, left_alone: bool) -> Option<(String, &'static str)> {
        asynchronous::refusal(modules::of(doc).asynchronous, doc.name, left_alone)
    }

    fn check(&self, value: &Value) -> Result<(), Complaint> {
        self.templar.check(value).map_err(|error| complaint(&error, None))
    }

    fn check_expression(&self, expression: &str, origin: &Origin) -> Result<(), Complaint> {
        self.templar.check_expression(expression, Some(origin)).map_err(|error| complaint(&error, Some(origin)))
    }

    fn render(&self, value: &Value, vars: &Vars) -> Result<Value, Complaint> {
        let mut scope = Scope::default();
        scope.push(Arc::new(vars.clone()));
        self.templar.render(value, &scope).map_err(|error| complaint(&error, None))
    }
}

fn complaint(error: &template::Error, origin: Option<&Origin>) -> Complaint {
    let mut complaint = error.complaint();
    complaint.origin = complaint.origin.or_else(|| origin.cloned());
    complaint
}
