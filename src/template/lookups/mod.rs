//! The lookups. To add one: write `fn name(call: &mut Call) -> Result<Vec<Value>, Error>` in the file of its theme and its
//! line in [`LOOKUPS`], which is sorted. All of them work on the controller.

mod files;
mod lists;
mod values;

use std::path::PathBuf;
use std::sync::Arc;

use super::args::{self, text};
use super::environment::COLLECTIONS as COLLECTION_NAMES;
use super::{Error, Scope};
use crate::value::Value;
use crate::value::origin::nearest;

/// A lookup: from its call to a list.
type Lookup = fn(&mut Call<'_>) -> Result<Vec<Value>, Error>;

static LOOKUPS: &[(&str, Lookup)] = &[
    ("csvfile", files::csvfile),
    ("dict", lists::dict),
    ("env", values::env),
    ("file", files::file),
    ("fileglob", files::fileglob),
    ("first_found", files::first_found),
    ("flattened", lists::items),
    ("indexed_items", lists::indexed_items),
    ("ini", files::ini),
    ("items", lists::items),
    ("lines", values::lines),
    ("list", lists::list),
    ("nested", lists::nested),
    ("password", files::password),
    ("pipe", values::pipe),
    ("random_choice", lists::random_choice),
    ("sequence", lists::sequence),
    ("subelements", lists::subelements),
    ("template", files::template),
    ("together", lists::together),
    ("unvault", files::unvault),
    ("varnames", values::varnames),
    ("vars", values::vars),
];

/// What a lookup is asked.
pub struct Call<'a> {
    pub terms: Vec<Value>,
    named: Vec<(String, Value)>,
    pub scope: &'a Arc<Scope>,
}

impl Call<'_> {
    /// An option by name.
    fn option(&self, name: &str) -> Option<&Value> {
        self.named.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn text_option(&self, name: &str, default: &str) -> String {
        self.option(name).map_or_else(|| default.to_owned(), text)
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.option(name).map_or(default, args::truthy)
    }

    /// The terms as text.
    fn texts(&self) -> Vec<String> {
        self.terms.iter().map(text).collect()
    }

    /// Where files named by terms are looked for: `folder` below each directory of the search path, then the directory.
    fn places(&self, name: &str, folder: &str) -> Vec<PathBuf> {
        let name = super::filters::expand_home(name);
        if name.starts_with('/') {
            return vec![name.into()];
        }
        let mut places = Vec::new();
        for directory in self.scope.search.iter().chain(std::iter::once(&*self.scope.base)) {
            places.push(directory.join(folder).join(&name));
            places.push(directory.join(&name));
        }
        places
    }

    fn find(&self, name: &str, folder: &str) -> Option<PathBuf> {
        self.places(name, folder).into_iter().find(|path| path.exists())
    }
}

fn fail(message: impl Into<String>) -> Error {
    Error::other(message, None)
}

/// Runs a lookup by its short or long name.
pub fn run(
    name: &str,
    terms: Vec<Value>,
    named: Vec<(String, Value)>,
    scope: &Arc<Scope>,
) -> Result<Vec<Value>, Error> {
    let short = COLLECTION_NAMES.iter().find_map(|collection| name.strip_prefix(collection)).unwrap_or(name);
    let Some((_, lookup)) = LOOKUPS.iter().find(|(known, _)| *known == short) else {
        return Err(fail(match nearest(short, LOOKUPS.iter().map(|(known, _)| *known)) {
            Some(near) => format!("there is no lookup {name:?}, did you mean {near:?}?"),
            None => format!("there is no lookup {name:?}"),
        }));
    };
    lookup(&mut Call { terms, named, scope })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_list_is_sorted_and_names_nothing_twice() {
        assert!(super::LOOKUPS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
