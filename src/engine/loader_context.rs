//! What the loader asks of the floors above it: which modules there are, whether a template is well formed.

use std::path::Path;
use std::sync::Arc;

use super::asynchronous;
use crate::modules;
use crate::playbook::load;
use crate::template::{self, Scope, Templar, own};
use crate::value::doc::Doc;
use crate::value::origin::Diagnostic;
use crate::value::{Origin, Value, Vars};

/// The modules and the templates of this build.
pub struct BuildContext {
    pub templar: Arc<Templar>,
}

impl load::LoaderContext for BuildContext {
    fn module(&self, name: &str) -> Option<&'static Doc> {
        modules::find_module(name).map(|entry| entry.doc)
    }

    fn modules(&self) -> Vec<&'static str> {
        modules::MODULES.iter().map(|entry| entry.doc.name).collect()
    }

    fn own_module(&self, name: &str, file: &Path) -> Result<&'static Doc, (String, &'static str)> {
        modules::own::open_module(name, file).map(|entry| entry.doc)
    }

    fn own_words(&self, words: &load::OwnPrograms) {
        words.filters.iter().for_each(|directory| self.templar.add_own(own::ProgramKind::Filter, directory));
        words.lookups.iter().for_each(|directory| self.templar.add_own(own::ProgramKind::Lookup, directory));
    }

    fn refuses_async(&self, doc: &'static Doc, left_alone: bool) -> Option<(String, &'static str)> {
        asynchronous::refusal(modules::entry_of_doc(doc).asynchronous, doc.name, left_alone)
    }

    fn check(&self, value: &Value) -> Result<(), Diagnostic> {
        self.templar.check_template(value).map_err(|error| complaint(&error, None))
    }

    fn check_expression(&self, expression: &str, origin: &Origin) -> Result<(), Diagnostic> {
        self.templar.check_expression(expression, Some(origin)).map_err(|error| complaint(&error, Some(origin)))
    }

    fn render(&self, value: &Value, vars: &Vars) -> Result<Value, Diagnostic> {
        let mut scope = Scope::default();
        scope.push(Arc::new(vars.clone()));
        self.templar.render(value, &scope).map_err(|error| complaint(&error, None))
    }
}

fn complaint(error: &template::Error, origin: Option<&Origin>) -> Diagnostic {
    let mut complaint = error.complaint();
    complaint.origin = complaint.origin.or_else(|| origin.cloned());
    complaint
}
