//! Values as YAML, as PyYAML's emitter writes them.

use minijinja::value::ValueKind;

use super::scalar;
use crate::value::Value;

/// How YAML is written.
#[derive(Debug, Clone)]
pub struct YamlStyle {
    pub indent: usize,
    /// Lines are broken at a space behind this column.
    pub width: usize,
    pub sort_keys: bool,
    pub flow: FlowStyle,
    /// Begins with `---`.
    pub explicit_start: bool,
}

impl Default for YamlStyle {
    fn default() -> Self {
        YamlStyle { indent: 2, width: 80, sort_keys: true, flow: FlowStyle::Never, explicit_start: false }
    }
}

/// Which lists and mappings are written in brackets; empty ones always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowStyle {
    Never,
    /// Those that hold only scalars.
    Leaves,
    Always,
}

/// A settled value as a YAML document that ends with a newline.
pub fn emit(value: &Value, style: &YamlStyle) -> String {
    let indent = if (2..10).contains(&style.indent) { style.indent } else { 2 };
    let width = if style.width > indent * 2 { style.width } else { 80 };
    let mut emitter = Emitter { out: String::new(), column: 0, behind_dash: true, style, step: indent, width };
    if style.explicit_start {
        emitter.write("---");
        emitter.line();
    }
    emitter.node(value, Place { indent: None, flow: false, key: false, of_mapping: false });
    emitter.line();
    emitter.out
}

struct Emitter<'a> {
    out: String,
    column: usize,
    /// A `-` was just written, or nothing at all: the next block continues in this line.
    behind_dash: bool,
    style: &'a YamlStyle,
    step: usize,
    width: usize,
}

/// Where a node is.
#[derive(Clone, Copy)]
struct Place {
    /// The column of the collection around it; None at the root.
    indent: Option<usize>,
    /// In brackets.
    flow: bool,
    key: bool,
    /// The value of a block mapping: a list in it needs no indentation.
    of_mapping: bool,
}

impl Emitter<'_> {
    fn write(&mut self, text: &str) {
        self.column += text.chars().count();
        self.out.push_str(text);
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn node(&mut self, value: &Value, place: Place) {
        match value.kind() {
            ValueKind::Map => self.map(value, place),
            ValueKind::Seq | ValueKind::Iterable => self.seq(value, place),
            _ => self.scalar(value, place),
        }
    }

    fn is_flow(&self, place: Place, mut parts: impl Iterator<Item = bool>) -> bool {
        place.flow
            || self.style.flow == FlowStyle::Always
            || self.style.flow == FlowStyle::Leaves && parts.all(|scalar| scalar)
    }

    fn seq(&mut self, value: &Value, place: Place) {
        let items: Vec<Value> = value.try_iter().into_iter().flatten().collect();
        if items.is_empty() {
            return self.write("[]");
        }
        if self.is_flow(place, items.iter().map(is_scalar)) {
            let indent = place.indent.map_or(self.step, |indent| indent + self.step);
            self.write("[");
            for (i, item) in items.iter().enumerate() {
                self.comma(i, indent);
                self.node(item, Place { indent: Some(indent), flow: true, key: false, of_mapping: false });
            }
            return self.write("]");
        }
        let indent = match place.indent {
            None => 0,
            Some(indent) if place.of_mapping => indent,
            Some(indent) => indent + self.step,
        };
        for item in &items {
            self.begin(indent);
            self.write("-");
            self.behind_dash = true;
            if is_scalar(item) || is_empty(item) || self.in_brackets(item) {
                self.write(" ");
            }
            self.node(item, Place { indent: Some(indent), flow: false, key: false, of_mapping: false });
            self.behind_dash = false;
        }
    }

    /// Whether a collection will be written in brackets.
    fn in_brackets(&self, value: &Value) -> bool {
        match self.style.flow {
            FlowStyle::Always => true,
            FlowStyle::Never => false,
            FlowStyle::Leaves => match value.kind() {
                ValueKind::Map => entries(value).iter().all(|(key, value)| is_scalar(key) && is_scalar(value)),
                _ => value.try_iter().into_iter().flatten().all(|item| is_scalar(&item)),
            },
        }
    }

    /// Goes to the column of a block's next entry: behind a `-` on the same line, if one was just written.
    fn begin(&mut self, indent: usize) {
        if !self.behind_dash || self.column > indent {
            self.line();
        }
        self.write(&" ".repeat(indent - self.column));
        self.behind_dash = false;
    }

    fn comma(&mut self, i: usize, indent: usize) {
        if i > 0 {
            self.write(",");
        }
        if self.column > self.width {
            self.line();
            self.write(&" ".repeat(indent));
        } else if i > 0 {
            self.write(" ");
        }
    }

    fn map(&mut self, value: &Value, place: Place) {
        let mut pairs = entries(value);
        if pairs.is_empty() {
            return self.write("{}");
        }
        if self.style.sort_keys {
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
        }
        let flow = self.is_flow(place, pairs.iter().map(|(key, value)| is_scalar(key) && is_scalar(value)));
        let indent = match place.indent {
            None if flow => self.step,
            None => 0,
            Some(indent) => indent + self.step,
        };
        if flow {
            self.write("{");
        }
        for (i, (key, value)) in pairs.iter().enumerate() {
            if flow {
                self.comma(i, indent);
            } else {
                self.begin(indent);
            }
            self.behind_dash = false;
            self.node(key, Place { indent: Some(indent), flow, key: true, of_mapping: false });
            self.write(":");
            if flow || is_scalar(value) || is_empty(value) || self.in_brackets(value) {
                self.write(" ");
            }
            self.node(value, Place { indent: Some(indent), flow, key: false, of_mapping: !flow });
        }
        if flow {
            self.write("}");
        }
    }

    fn scalar(&mut self, value: &Value, place: Place) {
        let indent = place.indent.map_or(self.step, |indent| indent + self.step);
        let text = value.to_string();
        match value.kind() {
            ValueKind::None | ValueKind::Undefined => self.write("null"),
            ValueKind::Bool => self.write(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.write(&number(&text)),
            _ => {
                let look = AllowedStyles::at(&text);
                let one_line = !(place.key && look.multiline);
                let plain = if place.flow { look.flow_plain } else { look.block_plain };
                if plain && one_line && !(place.key && text.is_empty()) && !scalar::is_special(&text) {
                    self.folded(&text, indent, !place.key);
                } else if look.single && one_line {
                    self.single(&text, indent, !place.key);
                } else {
                    self.double(&text, indent, !place.key);
                }
            }
        }
    }

    /// Text of one line, broken at single spaces.
    fn folded(&mut self, text: &str, indent: usize, split: bool) {
        let chars: Vec<char> = text.chars().collect();
        let mut word = String::new();
        for (i, c) in chars.iter().enumerate() {
            let alone = *c == ' ' && i > 0 && chars[i - 1] != ' ' && chars.get(i + 1).is_some_and(|next| *next != ' ');
            if alone {
                self.write(&word);
                word.clear();
                if split && self.column > self.width {
                    self.line();
                    self.write(&" ".repeat(indent));
                    continue;
                }
            }
            word.push(*c);
        }
        self.write(&word);
    }

    fn single(&mut self, text: &str, indent: usize, split: bool) {
        self.write("'");
        let mut rest = text;
        loop {
            let breaks = rest.len() - rest.trim_start_matches('\n').len();
            if breaks > 0 {
                // One line break more than there are, for a lone one would be a space.
                for _ in 0..=breaks {
                    self.line();
                }
                self.write(&" ".repeat(indent));
                rest = &rest[breaks..];
            }
            if rest.is_empty() {
                break;
            }
            let end = rest.find('\n').unwrap_or(rest.len());
            self.folded(&rest[..end].replace('\'', "''"), indent, split);
            rest = &rest[end..];
        }
        self.write("'");
    }

    fn double(&mut self, text: &str, indent: usize, split: bool) {
        self.write("\"");
        let chars: Vec<char> = text.chars().collect();
        let mut word = String::new();
        for (i, c) in chars.iter().enumerate() {
            let first = *c == ' ' && i > 0 && chars[i - 1] != ' ' && i + 1 < chars.len();
            if first && split {
                self.write(&word);
                word.clear();
                if self.column > self.width {
                    self.line();
                    self.write(&" ".repeat(indent));
                    // A space at the beginning of a line would be lost.
                    if chars[i + 1] == ' ' {
                        word.push('\\');
                    }
                    continue;
                }
            }
            match escape(*c) {
                Some(escaped) => word.push_str(&escaped),
                None => word.push(*c),
            }
        }
        self.write(&word);
        self.write("\"");
    }
}

fn entries(value: &Value) -> Vec<(Value, Value)> {
    value.as_object().and_then(|object| object.try_iter_pairs()).into_iter().flatten().collect()
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value.kind(), ValueKind::Map | ValueKind::Seq | ValueKind::Iterable)
}

fn is_empty(value: &Value) -> bool {
    value.len() == Some(0)
}

fn number(text: &str) -> String {
    match text {
        "inf" => ".inf".into(),
        "-inf" => "-.inf".into(),
        "nan" => ".nan".into(),
        _ if !text.contains('.') && text.contains('e') => text.replace('e', ".0e"),
        _ => text.into(),
    }
}

fn printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
        && c != '\u{feff}'
}

fn escape(c: char) -> Option<String> {
    Some(match c {
        '\0' => "\\0".into(),
        '\u{7}' => "\\a".into(),
        '\u{8}' => "\\b".into(),
        '\t' => "\\t".into(),
        '\n' => "\\n".into(),
        '\u{b}' => "\\v".into(),
        '\u{c}' => "\\f".into(),
        '\r' => "\\r".into(),
        '\u{1b}' => "\\e".into(),
        '"' => "\\\"".into(),
        '\\' => "\\\\".into(),
        '\u{85}' => "\\N".into(),
        '\u{a0}' => "\\_".into(),
        '\u{2028}' => "\\L".into(),
        '\u{2029}' => "\\P".into(),
        c if printable(c) => return None,
        c if (c as u32) < 0x100 => format!("\\x{:02X}", c as u32),
        c => format!("\\u{:04X}", c as u32),
    })
}

/// In which styles a text can be written.
struct AllowedStyles {
    multiline: bool,
    block_plain: bool,
    flow_plain: bool,
    single: bool,
}

impl AllowedStyles {
    fn at(text: &str) -> Self {
        if text.is_empty() {
            return AllowedStyles { multiline: false, block_plain: false, flow_plain: false, single: true };
        }
        let chars: Vec<char> = text.chars().collect();
        let (mut block, mut flow) = (false, false);
        let white = |i: usize| chars.get(i).is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
        if text.starts_with("---") || text.starts_with("...") {
            (block, flow) = (true, true);
        }
        for (i, c) in chars.iter().enumerate() {
            match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`'
                    if i == 0 =>
                {
                    (block, flow) = (true, true);
                }
                '?' | ':' if i == 0 => {
                    flow = true;
                    block |= white(1);
                }
                '-' if i == 0 && white(1) => (block, flow) = (true, true),
                ',' | '?' | '[' | ']' | '{' | '}' => flow = true,
                ':' => {
                    flow = true;
                    block |= white(i + 1);
                }
                '#' if i > 0 && white(i - 1) => (block, flow) = (true, true),
                _ => {}
            }
        }
        let edge = text.starts_with([' ', '\n']) || text.ends_with([' ', '\n']);
        let multiline = text.contains('\n');
        let special = chars.iter().any(|c| *c != '\n' && !printable(*c));
        let awkward = special || text.contains(" \n");
        let plain = !edge && !multiline && !awkward;
        AllowedStyles {
            multiline,
            block_plain: plain && !block,
            flow_plain: plain && !flow,
            single: !awkward && !text.contains("\n "),
        }
    }
}
