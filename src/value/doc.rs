//! What a module says of itself: its name, its arguments with their types, an example, what it returns.
//! The loader checks tasks against it, the engine coerces arguments by it, `windlass doc` prints it.

/// The name of the argument that accepts any name.
pub const ANY_NAME: &str = "*";

/// A module's documentation; the only place where its arguments are listed.
#[derive(Debug)]
pub struct Doc {
    /// Short name, `copy`. The long one is `ansible.builtin.copy` unless `collection` says otherwise.
    pub name: &'static str,
    /// `ansible.builtin`, `ansible.posix`, or `windlass` for our own.
    pub collection: &'static str,
    /// One line, no full stop.
    pub summary: &'static str,
    pub arguments: &'static [Argument],
    /// The argument that takes the text of the short form (`command: ls -l` is `cmd`); None: no short form.
    pub free_form: Option<&'static str>,
    /// Tasks in YAML (a list), run by a test.
    pub example: &'static str,
    pub returns: &'static [Return],
}

/// The collection of modules that a person wrote.
pub const OWN: &str = "library";

impl Doc {
    /// Whether a person wrote the module; windlass does not know its arguments.
    pub fn is_own(&self) -> bool {
        self.collection == OWN
    }

    /// The argument of that name or alias. One named [`ANY_NAME`] matches every other name: `set_fact` and
    /// `add_host` take variables of any name, which keep the names they were written with.
    pub fn argument(&self, name: &str) -> Option<&'static Argument> {
        let named = self.arguments.iter().find(|a| a.name == name || a.aliases.contains(&name));
        named.or_else(|| self.arguments.iter().find(|a| a.name == ANY_NAME))
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Argument {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: ArgumentKind,
    pub required: bool,
    /// As one would write it in YAML: `present`, `false`, `[]`.
    pub default: Option<&'static str>,
    /// For strings; empty: any.
    pub choices: &'static [&'static str],
    /// Its value is never shown.
    pub secret: bool,
    /// One line, no full stop.
    pub summary: &'static str,
}

impl Argument {
    pub const fn new(name: &'static str, kind: ArgumentKind, summary: &'static str) -> Self {
        Argument { name, aliases: &[], kind, required: false, default: None, choices: &[], secret: false, summary }
    }
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }
    pub const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }
    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }
    pub const fn choices(mut self, choices: &'static [&'static str]) -> Self {
        self.choices = choices;
        self
    }
    pub const fn mark_secret(mut self) -> Self {
        self.secret = true;
        self
    }
}

/// The names of arguments, for a hint.
pub fn listed(arguments: &[Argument]) -> String {
    arguments.iter().map(|argument| argument.name).collect::<Vec<_>>().join(", ")
}

/// Modules that run a command which the user writes as text, and whose result is what it printed.
pub const COMMAND_MODULES: &[&str] = &["command", "shell", "raw", "script"];

/// The type of an argument; values are coerced to it as Ansible does (`"yes"` is true, `"a,b"` a list).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    Str,
    /// A path; `~` is expanded on the host that it is for.
    Path,
    Bool,
    Int,
    Float,
    /// File permissions: octal number, octal text, or symbolic (`u=rw,g=r`). Arrives as a string.
    Mode,
    /// A list; a lone value becomes a list of one, a string is split at commas.
    List(&'static ArgumentKind),
    Dict,
    /// Whatever was written.
    Any,
}

impl ArgumentKind {
    /// In a person's words: `list of string`.
    pub fn kind_text(self) -> String {
        match self {
            ArgumentKind::Str => "string".to_string(),
            ArgumentKind::Path => "path".to_string(),
            ArgumentKind::Bool => "bool".to_string(),
            ArgumentKind::Int => "integer".to_string(),
            ArgumentKind::Float => "number".to_string(),
            ArgumentKind::Mode => "mode".to_string(),
            ArgumentKind::List(of) => format!("list of {}", of.kind_text()),
            ArgumentKind::Dict => "mapping".to_string(),
            ArgumentKind::Any => "anything".to_string(),
        }
    }
}

#[derive(Debug)]
pub struct Return {
    pub name: &'static str,
    /// One line, no full stop.
    pub summary: &'static str,
}

impl Return {
    pub const fn new(name: &'static str, summary: &'static str) -> Self {
        Return { name, summary }
    }
}

/// The documentation of one item of the language apart from modules: a keyword, filter, test, lookup, function, variable.
#[derive(Debug, Clone, Copy)]
pub struct LanguageItem {
    pub name: &'static str,
    /// Its arguments, as written between parentheses: `other, recursive=false`. Empty: none.
    pub takes: &'static str,
    /// One sentence or more.
    pub about: &'static str,
    /// An expression, or tasks or plays in YAML.
    pub example: &'static str,
    /// What the expression gives, as a template prints it; empty: that depends.
    pub gives: &'static str,
}

impl LanguageItem {
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        LanguageItem { name, takes: "", about, example: "", gives: "" }
    }
    pub const fn takes(mut self, takes: &'static str) -> Self {
        self.takes = takes;
        self
    }
    pub const fn example(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }
    pub const fn gives(mut self, example: &'static str, gives: &'static str) -> Self {
        self.example = example;
        self.gives = gives;
        self
    }

    /// How it is called: its name, and what it takes in parentheses.
    pub fn call(&self) -> String {
        if self.takes.is_empty() { self.name.to_owned() } else { format!("{}({})", self.name, self.takes) }
    }
}
