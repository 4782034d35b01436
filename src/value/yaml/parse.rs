//! From the parser's events to nodes: anchors, merge keys, tags, and messages that say what to do.

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde::de::IgnoredAny;

use super::loosen::{join_surrogates, loosen};
use super::{Node, NodeKind, scalar};
use crate::value::DEEPEST;
use crate::value::origin::{Diagnostic, Origin, Source};

/// How many nodes aliases may copy, so that a small file cannot fill the memory.
const COPIES: usize = 500_000;

/// All documents of a text. `source` is what the nodes' places name; its text may be withheld (vault files).
pub(super) fn documents(
    source: &Arc<Source>,
    text: &str,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Vec<Node>, Diagnostic> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let count = warnings.len();
    let strict = read_documents(source, text, &HashMap::new(), warnings);
    if strict.is_ok() {
        return strict;
    }
    let json = join_surrogates(text).filter(|_| serde_json::from_str::<IgnoredAny>(text).is_ok());
    if let Some(json) = &json {
        warnings.truncate(count);
        if let Ok(nodes) = read_documents(source, json, &HashMap::new(), warnings) {
            return Ok(nodes);
        }
    }
    let Some(loosened) = loosen(json.as_deref().unwrap_or(text)) else { return strict };
    warnings.truncate(count);
    // A remaining error is reported for the original text.
    read_documents(source, &loosened.text, &loosened.shifts, warnings).or(strict)
}

fn read_documents(
    source: &Arc<Source>,
    text: &str,
    shifts: &HashMap<usize, usize>,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Vec<Node>, Diagnostic> {
    // The last line of a literal or folded text ends as the file does.
    let open = text.chars().last().filter(|last| !matches!(last, '\n' | '\r')).map(|_| text.chars().count());
    let parser = Parser::new_from_str(text);
    let mut reader =
        Reader { parser, source, text, shifts, open, anchors: HashMap::new(), copies: 0, kept: 0, warnings };
    let mut nodes = Vec::new();
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => return Ok(nodes),
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            event => nodes.push(reader.node(event, span, 0)?),
        }
    }
}

struct Reader<'a, 'w> {
    parser: Parser<'a, StrInput<'a>>,
    source: &'w Arc<Source>,
    text: &'a str,
    /// How many blanks each line has more than as it was written.
    shifts: &'w HashMap<usize, usize>,
    /// The length of a text that does not end with a newline.
    open: Option<usize>,
    anchors: HashMap<usize, Node>,
    copies: usize,
    /// What `anchors` holds, in nodes.
    kept: usize,
    warnings: &'w mut Vec<Diagnostic>,
}

impl<'a> Reader<'a, '_> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Diagnostic> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.explain(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn origin(&self, line: usize, column: usize) -> Origin {
        let line = line.max(1);
        let shift = self.shifts.get(&line).copied().unwrap_or(0);
        Origin { source: self.source.clone(), line, column: column.saturating_sub(shift) + 1 }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Diagnostic> {
        let origin = self.origin(span.start.line(), span.start.col());
        if depth > DEEPEST {
            return Err(too_deep(&origin));
        }
        let (kind, anchor, tag) = match event {
            Event::Alias(id) => return self.alias(id, &origin),
            Event::Scalar(mut text, style, anchor, tag) => {
                if self.ends_with_text(&text, style, &span) {
                    text.to_mut().pop();
                }
                (self.scalar(&text, style, tag.as_deref(), &origin)?, anchor, tag)
            }
            Event::SequenceStart(anchor, tag) => (NodeKind::Seq(self.items(depth)?), anchor, tag),
            Event::MappingStart(anchor, tag) => (NodeKind::Map(self.pairs(depth, &origin)?), anchor, tag),
            _ => return Err(Diagnostic::new("unexpected end of the YAML text", Some(&origin))),
        };
        let tag = self.own_tag(tag.as_deref(), &kind, &origin)?;
        let node = Node { kind, tag, origin };
        if anchor > 0 {
            // Anchors inside anchors are kept once for each of them.
            self.kept += size(&node);
            if self.kept > COPIES {
                return Err(Diagnostic::new("anchors (&name) make this file too large", Some(&node.origin)));
            }
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Whether a literal or folded text ends where the file does, without the newline that the parser adds.
    fn ends_with_text(&self, text: &str, style: ScalarStyle, span: &Span) -> bool {
        let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if !block || !text.ends_with('\n') || self.open.is_none_or(|end| span.end.index() < end) {
            return false;
        }
        let last = self.text.rsplit('\n').next().unwrap_or("");
        // A line of blanks alone is text as far as it is indented more than the rest.
        let of_text = text.strip_suffix('\n').and_then(|text| text.rsplit('\n').next());
        !last.trim_matches(' ').is_empty()
            || of_text.is_some_and(|line| line.trim_matches(' ').is_empty() && last.ends_with(line))
    }

    fn alias(&mut self, id: usize, origin: &Origin) -> Result<Node, Diagnostic> {
        let Some(node) = self.anchors.get(&id) else {
            return Err(Diagnostic::new("this alias is inside the value that it refers to", Some(origin)));
        };
        self.copies += size(node);
        if self.copies > COPIES {
            return Err(Diagnostic::new("aliases (*name) make this file too large", Some(origin)));
        }
        Ok(node.clone())
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Node>, Diagnostic> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(items);
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn pairs(&mut self, depth: usize, map: &Origin) -> Result<Vec<(Node, Node)>, Diagnostic> {
        let mut pairs = Vec::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = self.node(event, span, depth + 1)?;
            self.check_key(&key, map)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            if merge { merge_into(&mut merged, value)? } else { pairs.push((key, value)) }
        }
        Ok(self.unite(merged, pairs))
    }

    fn check_key(&self, key: &Node, map: &Origin) -> Result<(), Diagnostic> {
        match &key.kind {
            NodeKind::Map(_) if map.line == key.origin.line && map.column + 1 == key.origin.column => {
                Err(Diagnostic::new("a value that begins with {{ must be quoted", Some(map)).hint(QUOTE))
            }
            NodeKind::Map(_) | NodeKind::Seq(_) => {
                Err(Diagnostic::new(format!("{} must not be a key", key.what()), Some(&key.origin)))
            }
            _ => Ok(()),
        }
    }

    /// The merged pairs, then the written ones; a later one takes the place of an equal one.
    fn unite(&mut self, merged: Vec<(Node, Node)>, written: Vec<(Node, Node)>) -> Vec<(Node, Node)> {
        let count = merged.len();
        let mut index: HashMap<String, (usize, bool)> = HashMap::with_capacity(count + written.len());
        let mut pairs: Vec<(Node, Node)> = Vec::with_capacity(count + written.len());
        for (i, pair) in merged.into_iter().chain(written).enumerate() {
            let fresh = i >= count;
            match index.get_mut(&identity(&pair.0)) {
                Some((at, was_written)) => {
                    if *was_written && fresh {
                        let first = &pairs[*at].0.origin;
                        let message = format!("{} is given twice, first in line {}", name(&pair.0), first.line);
                        self.warnings.push(Diagnostic::new(message, Some(&pair.0.origin)));
                    }
                    *was_written |= fresh;
                    pairs[*at] = pair;
                }
                None => {
                    index.insert(identity(&pair.0), (pairs.len(), fresh));
                    pairs.push(pair);
                }
            }
        }
        pairs
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        origin: &Origin,
    ) -> Result<NodeKind, Diagnostic> {
        match tag {
            Some(tag) if is_core(tag) => scalar::tagged(core_suffix(tag), text).ok_or_else(|| {
                Diagnostic::new(format!("\"{text}\" is not a valid !!{}", core_suffix(tag)), Some(origin))
            }),
            Some(_) => Ok(NodeKind::Str(text.into())),
            None if style == ScalarStyle::Plain => Ok(scalar::resolve_scalar(text)),
            None => Ok(NodeKind::Str(text.into())),
        }
    }

    /// The tag of a node, if it is one of ours; YAML's own have done their work by now.
    fn own_tag(&self, tag: Option<&Tag>, kind: &NodeKind, origin: &Origin) -> Result<Option<Arc<str>>, Diagnostic> {
        let Some(tag) = tag else { return Ok(None) };
        if is_core(tag) {
            return Ok(None);
        }
        let name = format!("{}{}", tag.handle, tag.suffix);
        match (name.as_str(), kind) {
            ("!vault" | "!vault-encrypted", NodeKind::Str(_)) => Ok(Some("!vault".into())),
            ("!vault" | "!vault-encrypted", _) => {
                Err(Diagnostic::new("!vault must be followed by a string", Some(origin)))
            }
            ("!unsafe", _) => Ok(Some("!unsafe".into())),
            ("!", _) => Ok(None),
            _ => Err(Diagnostic::new(format!("unknown tag {name}"), Some(origin)).hint("use !vault or !unsafe")),
        }
    }

    /// Whether the parser gave up where more lists and mappings in brackets are open than it counts.
    fn is_too_deep(&self, at: &Marker) -> bool {
        let open = self.text.chars().take(at.index() + 1).fold(0usize, |open, c| match c {
            '[' | '{' => open + 1,
            ']' | '}' => open.saturating_sub(1),
            _ => open,
        });
        open > usize::from(u8::MAX)
    }

    fn explain(&self, error: &ScanError) -> Diagnostic {
        let marker = error.marker();
        let origin = self.origin(marker.line(), marker.col());
        let lines: Vec<&str> = self.text.lines().collect();
        let line = lines.get(origin.line - 1).copied().unwrap_or("");
        let before = origin.line.checked_sub(2).and_then(|i| lines.get(i)).copied().unwrap_or("");
        // The parser stops before a tab, in it or behind it.
        let tab = |line: &str| line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t');
        if let Some(nth) = [origin.line, origin.line + 1, origin.line.saturating_sub(1)]
            .into_iter()
            .find(|n| *n > 0 && tab(lines.get(n - 1).unwrap_or(&"")))
        {
            let column = lines[nth - 1].find('\t').unwrap_or(0);
            return Diagnostic::new("a tab is used for indentation", Some(&self.origin(nth, column)))
                .hint("use spaces");
        }
        if self.is_too_deep(error.marker()) {
            return too_deep(&origin);
        }
        let complaint = Diagnostic::new(format!("not valid YAML: {}", error.info()), Some(&origin));
        match advice(line).or_else(|| advice(before)).or_else(|| advice_on(error.info())) {
            Some(hint) => complaint.hint(hint),
            None => complaint,
        }
    }
}

fn too_deep(origin: &Origin) -> Diagnostic {
    Diagnostic::new(format!("more than {DEEPEST} nested lists and mappings"), Some(origin))
}

const QUOTE: &str = "quote the template: \"{{ ... }}\"";

/// What is often wrong with a line that does not parse.
fn advice(line: &str) -> Option<&'static str> {
    let value = line.split_once(": ").map(|(_, value)| value).or_else(|| line.trim_start().strip_prefix("- "))?.trim();
    if value.starts_with("{{") {
        return Some(QUOTE);
    }
    let quoted = |q: char| value.len() > 1 && value.starts_with(q) && !value.ends_with(q) && value[1..].contains(q);
    if quoted('"') || quoted('\'') {
        return Some("the quotes must span the whole value");
    }
    if value.starts_with("\"{{") && value.ends_with("}}\"") {
        return Some("use single quotes inside of double ones: \"{{ lookup('file', 'x') }}\"");
    }
    if value.starts_with(['@', '`', '%', '*', '&', '!']) {
        return Some("a value that begins with this character must be quoted");
    }
    if !value.starts_with(['"', '\'']) && value.contains(": ") {
        return Some("a value that contains \": \" must be quoted");
    }
    None
}

/// What is often wrong where the parser says this. Only hints depend on its words; the cases `tests/mistakes/yaml_*` fail when these
/// words change.
fn advice_on(words: &str) -> Option<&'static str> {
    let has = |part: &str| words.contains(part);
    if has("quoted scalar") && has("end of stream") {
        Some("this quote is never closed")
    } else if has("expected '-' indicator") || has("did not find expected key") {
        Some("keys of one mapping, and entries of one list, must start in the same column")
    } else if has("illegal placement of ':'") || has("flow") {
        Some("a [ or { above may not be closed")
    } else if has("mapping values are not allowed") {
        Some("check that the line above is a key with its colon, and that a space follows each \"-\"")
    } else {
        None
    }
}

fn merge_into(merged: &mut Vec<(Node, Node)>, value: Node) -> Result<(), Diagnostic> {
    match value.kind {
        NodeKind::Map(pairs) => merged.extend(pairs),
        NodeKind::Seq(items) => {
            for item in items.into_iter().rev() {
                match item.kind {
                    NodeKind::Map(pairs) => merged.extend(pairs),
                    _ => return Err(no_merge(&item)),
                }
            }
        }
        _ => return Err(no_merge(&value)),
    }
    Ok(())
}

fn no_merge(node: &Node) -> Diagnostic {
    Diagnostic::new(format!("<< needs a mapping or a list of mappings, this is {}", node.what()), Some(&node.origin))
}

/// What makes two keys equal.
fn identity(key: &Node) -> String {
    match &key.kind {
        NodeKind::Str(text) => format!("s{text}"),
        other => format!("{other:?}"),
    }
}

fn name(key: &Node) -> String {
    match &key.kind {
        NodeKind::Str(text) => format!("the key \"{text}\""),
        _ => key.what(),
    }
}

fn size(node: &Node) -> usize {
    match &node.kind {
        NodeKind::Seq(items) => 1 + items.iter().map(size).sum::<usize>(),
        NodeKind::Map(pairs) => 1 + pairs.iter().map(|(key, value)| size(key) + size(value)).sum::<usize>(),
        _ => 1,
    }
}

fn is_core(tag: &Tag) -> bool {
    tag.handle.starts_with("tag:yaml.org,2002:")
        || tag.handle == "!!"
        || tag.handle.is_empty() && tag.suffix.starts_with("tag:yaml.org,2002:")
}

fn core_suffix(tag: &Tag) -> &str {
    tag.suffix.strip_prefix("tag:yaml.org,2002:").unwrap_or(&tag.suffix)
}
