//! The lookups. To add one: write `fn name(call: &mut Call) -> Result<Vec<Value>, Error>` in the file of its theme and
//! its line in [`LOOKUPS`], which is sorted: name, what is said of it, an example, which is tested. All of them work on
//! the controller.

mod files;
mod lists;
mod outside;
mod values;

use std::path::PathBuf;
use std::sync::Arc;

use super::COLLECTIONS as COLLECTION_NAMES;
use super::conversions::{self, to_text};
use super::{Error, Scope, own};
use crate::value::Value;
use crate::value::doc::LanguageItem;
use crate::value::nearest::nearest;
pub(super) use files::of_task;

/// A lookup: from its call to a list.
pub(super) type Lookup = fn(&mut LookupCall<'_>) -> Result<Vec<Value>, Error>;

/// Every lookup, sorted by name.
pub(super) static LOOKUPS: &[(LanguageItem, Lookup)] = &[
    (
        LanguageItem::new("config", "Current settings, by Ansible's names.")
            .takes("names..., on_missing='error'")
            .example("lookup('config', 'DEFAULT_ROLES_PATH')"),
        outside::config,
    ),
    (
        LanguageItem::new(
            "csvfile",
            "A value from a CSV file on the controller: the line that starts with the key, the column col.",
        )
        .takes("key, file='ansible.csv', delimiter='TAB', col=1, default=none")
        .example("lookup('csvfile', 'h1', file='hosts.csv', delimiter=',', col=2)"),
        files::csvfile,
    ),
    (
        LanguageItem::new("dict", "A mapping as a list of mappings with key and value.")
            .takes("mappings...")
            .gives("query('dict', {'a': 1})", "[{'key': 'a', 'value': 1}]"),
        lists::dict,
    ),
    (
        LanguageItem::new("env", "Environment variables of the controller.")
            .takes("names..., default=''")
            .gives("lookup('env', 'NO_SUCH_VARIABLE', default='x')", "x"),
        values::env,
    ),
    (
        LanguageItem::new(
            "file",
            "The contents of files on the controller, searched in files/ of the role and the play.",
        )
        .takes("paths..., lstrip=false, rstrip=true")
        .example("lookup('file', 'ca.pem')"),
        files::lookup_file,
    ),
    (
        LanguageItem::new("fileglob", "The files on the controller that match patterns, sorted; without directories.")
            .takes("patterns...")
            .example("query('fileglob', 'conf.d/*.conf')"),
        files::fileglob,
    ),
    (
        LanguageItem::new("first_found", "The first of several files on the controller that exists.")
            .takes("names..., files=[], paths=[], skip=false")
            .example("lookup('first_found', [inventory_hostname ~ '.conf', 'default.conf'])"),
        files::first_found,
    ),
    (
        LanguageItem::new("flattened", "The items of several lists in one list, with one level removed.")
            .takes("lists...")
            .gives("query('flattened', [1, 2], [3])", "[1, 2, 3]"),
        lists::lookup_items,
    ),
    (
        LanguageItem::new("indexed_items", "Pairs of a position, from 0, and an item.")
            .takes("lists...")
            .gives("query('indexed_items', ['a', 'b']) | map('first')", "[0, 1]"),
        lists::indexed_items,
    ),
    (
        LanguageItem::new("ini", "A value from an INI or properties file on the controller.")
            .takes("key, file='ansible.ini', section='global', type='ini', default='', re=false")
            .example("lookup('ini', 'port', section='server', file='app.ini')"),
        files::ini,
    ),
    (
        LanguageItem::new("inventory_hostnames", "The hosts of the inventory that match patterns.")
            .takes("patterns...")
            .example("query('inventory_hostnames', 'etcd:!h3')"),
        outside::inventory_hostnames,
    ),
    (
        LanguageItem::new(
            "items",
            "The items of several lists in one list, with one level removed, as with_items loops over them.",
        )
        .takes("lists...")
        .gives("query('items', [1, 2], 3)", "[1, 2, 3]"),
        lists::lookup_items,
    ),
    (
        LanguageItem::new("lines", "The output of commands on the controller, line by line.")
            .takes("commands...")
            .gives("query('lines', 'echo a; echo b')", "['a', 'b']"),
        values::lookup_lines,
    ),
    (
        LanguageItem::new("list", "Its arguments, as a list.").takes("items...").gives("query('list', 1, 2)", "[1, 2]"),
        lists::lookup_list,
    ),
    (
        LanguageItem::new("nested", "Every combination of one item of each list.")
            .takes("lists...")
            .gives("query('nested', [1, 2], ['a'])", "[[1, 'a'], [2, 'a']]"),
        lists::nested,
    ),
    (
        LanguageItem::new(
            "password",
            "A password in a file on the controller, generated at random if the file does not exist.",
        )
        .takes("path, length=20, chars=['ascii_letters', 'digits', '.,:-_'], encrypt=none, seed=none")
        .example("lookup('password', 'credentials/admin', length=32)"),
        files::password,
    ),
    (
        LanguageItem::new("pipe", "The output of commands on the controller, each as a whole.")
            .takes("commands...")
            .gives("lookup('pipe', 'echo a')", "a"),
        values::pipe,
    ),
    (
        LanguageItem::new("random_choice", "A random item.")
            .takes("items...")
            .example("query('random_choice', 'a', 'b')"),
        lists::random_choice,
    ),
    (
        LanguageItem::new("sequence", "A sequence of numbers as formatted texts: start=1 end=3, or 1-3:h%02d.")
            .takes("text, start=1, end=none, count=none, stride=1, format='%d'")
            .gives("query('sequence', 'start=1 end=3 format=h%d')", "['h1', 'h2', 'h3']"),
        lists::sequence,
    ),
    (
        LanguageItem::new("subelements", "Pairs of an item and each of the items of a list that is its member.")
            .takes("list, key, options")
            .gives("query('subelements', [{'n': 'a', 'k': [1, 2]}], 'k') | map('last')", "[1, 2]"),
        lists::subelements,
    ),
    (
        LanguageItem::new("template", "Template files on the controller, rendered with the current variables.")
            .takes("paths..., convert_data=true, template_vars={}")
            .example("lookup('template', 'motd.j2', template_vars={'who': 'etcd'})"),
        files::template,
    ),
    (
        LanguageItem::new(
            "together",
            "Combines the first items of several lists, the second ones, and so on; none where a list is shorter.",
        )
        .takes("lists...")
        .gives("query('together', [1, 2], ['a', 'b'])", "[[1, 'a'], [2, 'b']]"),
        lists::together,
    ),
    (
        LanguageItem::new("unvault", "The contents of vault files on the controller, decrypted.")
            .takes("paths...")
            .example("lookup('unvault', 'secret.key')"),
        files::unvault,
    ),
    (
        LanguageItem::new("url", "The response of a web server: line by line, or with split_lines=false as a whole.")
            .takes(
                "urls..., split_lines=true, username='', password='', force_basic_auth=true, headers={}, \
                 http_agent='windlass', timeout=10, validate_certs=true, ca_path='', follow_redirects='urllib2'",
            )
            .example("lookup('url', 'http://127.0.0.1:8080/version')"),
        outside::url,
    ),
    (
        LanguageItem::new("varnames", "The names of all variables that match regular expressions.")
            .takes("patterns...")
            .example("query('varnames', '^etcd_')"),
        values::varnames,
    ),
    (
        LanguageItem::new("vars", "Variables by name, for computed names.")
            .takes("names..., default")
            .gives("lookup('vars', 'no_such_variable', default=5)", "5"),
        values::vars,
    ),
];

/// What a lookup is asked.
pub(super) struct LookupCall<'a> {
    pub terms: Vec<Value>,
    named: Vec<(String, Value)>,
    pub scope: &'a Arc<Scope>,
}

impl LookupCall<'_> {
    /// An option by name.
    fn option(&self, name: &str) -> Option<&Value> {
        self.named.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn text_option(&self, name: &str, default: &str) -> String {
        self.option(name).map_or_else(|| default.to_owned(), to_text)
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.option(name).map_or(default, conversions::truthy)
    }

    /// The terms as text.
    fn texts(&self) -> Vec<String> {
        self.terms.iter().map(to_text).collect()
    }

    /// Where files named by terms are looked for: `folder` below each directory of the search path, then the directory.
    fn places(&self, name: &str, folder: &str) -> Vec<PathBuf> {
        let name = self.scope.surroundings.expand_home(name);
        if name.is_absolute() {
            return vec![name];
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
pub(super) fn run_lookup(
    name: &str,
    terms: Vec<Value>,
    named: Vec<(String, Value)>,
    scope: &Arc<Scope>,
) -> Result<Vec<Value>, Error> {
    let short = COLLECTION_NAMES.iter().find_map(|collection| name.strip_prefix(collection)).unwrap_or(name);
    if let Some(program) = scope.engine.programs().find_program_path(own::ProgramKind::Lookup, name) {
        return own::lookup(name, program, terms, named, scope);
    }
    let Some((_, lookup)) = LOOKUPS.iter().find(|(word, _)| word.name == short) else {
        let near = nearest(short, LOOKUPS.iter().map(|(word, _)| word.name)).map(str::to_owned);
        return Err(Error::Unknown { what: "lookup", name: name.to_owned(), near, origin: None });
    };
    lookup(&mut LookupCall { terms, named, scope })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_list_is_sorted_and_names_nothing_twice() {
        assert!(super::LOOKUPS.windows(2).all(|pair| pair[0].0.name < pair[1].0.name));
    }
}
