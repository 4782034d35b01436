//! Operators that the engine does otherwise than Python become calls of filters: `a < b` becomes `(a )|_lt( b)`,
//! `a[::-1]` becomes `((a)|_slice(none,none,-1))`, and what a loop goes over is looked at first. A walk over the tokens,
//! by the precedence of Jinja's operators, finds how far the operands reach.

use minijinja::machinery::{Span, Token};

use super::{Edit, SourceMode, closing, insert, span_end, span_start};

/// Adds the edits for all expressions of a text.
pub(super) fn operators(tokens: &[(Token<'_>, Span)], reading: SourceMode, edits: &mut Vec<Edit>) {
    let mut walk = Walk { tokens, edits };
    if reading == SourceMode::Expression {
        return walk.all(0, tokens.len());
    }
    let mut at = 0;
    while let Some((token, _)) = tokens.get(at) {
        let opens = matches!(token, Token::VariableStart | Token::BlockStart);
        let ends = |(token, _): &(Token<'_>, Span)| matches!(token, Token::VariableEnd | Token::BlockEnd);
        let close = tokens[at..].iter().position(ends).map_or(tokens.len(), |length| at + length);
        match token {
            Token::VariableStart => walk.all(at + 1, close),
            Token::BlockStart => walk.statement(at + 1, close),
            _ => {}
        }
        at = if opens { close } else { at } + 1;
    }
}

/// Every function takes the place of a token and gives the place behind the operand that begins there: the same place,
/// if none does.
struct Walk<'t, 'a> {
    tokens: &'t [(Token<'a>, Span)],
    edits: &'t mut Vec<Edit>,
}

/// A sign between the operands of a comparison, and where its right operand ends.
struct ComparisonOperator {
    at: usize,
    /// The last token of the sign: `not in` has two.
    until: usize,
    word: &'static str,
    /// None: the engine does it as Python does.
    filter: Option<&'static str>,
    last: usize,
}

/// The filter that a sign of arithmetic becomes; None: it is no sign of this precedence.
type Filter = fn(&Token<'_>) -> Option<&'static str>;

impl<'a> Walk<'_, 'a> {
    fn token(&self, at: usize) -> Option<&Token<'a>> {
        self.tokens.get(at).map(|(token, _)| token)
    }

    fn word(&self, at: usize) -> &'a str {
        match self.token(at) {
            Some(Token::Ident(name)) => name,
            _ => "",
        }
    }

    /// All operands between two places; words and signs between them bind less than a comparison.
    fn all(&mut self, mut at: usize, until: usize) {
        while at < until {
            at = self.comparison(at).max(at + 1);
        }
    }

    /// The inside of `{% ... %}`.
    fn statement(&mut self, first: usize, until: usize) {
        let over = (first..until).find(|at| self.word(first) == "for" && self.word(*at) == "in");
        let Some(over) = over.map(|at| at + 1) else { return self.all(first + 1, until) };
        let (mut stop, mut depth) = (over, 0usize);
        while stop < until && !(depth == 0 && matches!(self.word(stop), "if" | "recursive")) {
            match self.token(stop) {
                Some(Token::ParenOpen | Token::BracketOpen | Token::BraceOpen) => depth += 1,
                Some(Token::ParenClose | Token::BracketClose | Token::BraceClose) => depth = depth.saturating_sub(1),
                _ => {}
            }
            stop += 1;
        }
        self.all(over, stop);
        if over < stop {
            self.wrap(over, "(", ")|_each", stop - 1);
        }
        self.all(stop, until);
    }

    /// `a < b`, `a in b`, `a < b <= c`.
    fn comparison(&mut self, first: usize) -> usize {
        let mut next = self.sum(first);
        if next == first {
            return first;
        }
        let mut signs: Vec<ComparisonOperator> = Vec::new();
        while let Some(mut sign) = self.sign(next) {
            let right = sign.until + 1;
            next = self.sum(right);
            if next == right {
                break;
            }
            sign.last = next - 1;
            signs.push(sign);
        }
        match signs.as_slice() {
            [ComparisonOperator { at, until, filter: Some(filter), last, .. }] => {
                self.call(first, (*at, *until), filter, *last)
            }
            chain if chain.len() > 1 => self.chain(first, chain),
            _ => {}
        }
        next
    }

    fn sign(&self, at: usize) -> Option<ComparisonOperator> {
        let (until, word, filter) = match self.token(at)? {
            Token::Lt => (at, "<", Some("_lt")),
            Token::Lte => (at, "<=", Some("_le")),
            Token::Gt => (at, ">", Some("_gt")),
            Token::Gte => (at, ">=", Some("_ge")),
            Token::Eq => (at, "==", None),
            Token::Ne => (at, "!=", None),
            Token::Ident("in") => (at, "in", Some("_in")),
            Token::Ident("not") if self.word(at + 1) == "in" => (at + 1, "not in", Some("_not_in")),
            _ => return None,
        };
        Some(ComparisonOperator { at, until, word, filter, last: until })
    }

    /// `a < b < c` becomes `(a )|_chain('<', b ,'<', c)`.
    fn chain(&mut self, first: usize, signs: &[ComparisonOperator]) {
        self.insert_before(first, "(");
        for (i, sign) in signs.iter().enumerate() {
            let open = if i == 0 { ")|_chain(" } else { "," };
            self.replace(sign.at, sign.until, format!("{open}'{}',", sign.word));
        }
        self.insert_behind(signs.last().map_or(first, |sign| sign.last), ")");
    }

    fn sum(&mut self, first: usize) -> usize {
        self.row(first, Self::concatenation, |token| match token {
            Token::Plus => Some("_add"),
            Token::Minus => Some("_sub"),
            _ => None,
        })
    }

    /// `a ~ b`, which the engine does as Python does.
    fn concatenation(&mut self, first: usize) -> usize {
        let mut next = self.product(first);
        while next != first && matches!(self.token(next), Some(Token::Tilde)) {
            let after = self.product(next + 1);
            if after == next + 1 {
                break;
            }
            next = after;
        }
        next
    }

    fn product(&mut self, first: usize) -> usize {
        self.row(first, Self::power, |token| match token {
            Token::Mul => Some("_mul"),
            Token::Div => Some("_div"),
            Token::FloorDiv => Some("_floordiv"),
            Token::Mod => Some("_mod"),
            _ => None,
        })
    }

    fn power(&mut self, first: usize) -> usize {
        self.row(first, Self::filtered, |token| matches!(token, Token::Pow).then_some("_pow"))
    }

    /// Operands with signs of one precedence between them, from the left: `a + b - c` becomes `(a )|_add( b )|_sub( c)`. Only
    /// the first operand gets brackets, because the engine limits how deep they may be nested.
    fn row(&mut self, first: usize, operand: fn(&mut Self, usize) -> usize, filter: Filter) -> usize {
        let mut next = operand(self, first);
        if next == first {
            return first;
        }
        let mut begun = false;
        while let Some(filter) = self.token(next).and_then(filter) {
            let after = operand(self, next + 1);
            if after == next + 1 {
                break;
            }
            if !begun {
                self.insert_before(first, "(");
            }
            // It closes the brackets of the operand before it.
            self.replace(next, next, format!(")|{filter}("));
            begun = true;
            next = after;
        }
        if begun {
            self.insert_behind(next - 1, ")");
        }
        next
    }

    /// An operand with its filters and tests.
    fn filtered(&mut self, first: usize) -> usize {
        let mut next = self.signed(first);
        if next == first {
            return first;
        }
        loop {
            next = match self.token(next) {
                Some(Token::Pipe) => self.arguments(self.name(next + 1)),
                Some(Token::Ident("is")) => {
                    let name = if self.word(next + 1) == "not" { next + 2 } else { next + 1 };
                    let behind = self.name(name);
                    match self.arguments(behind) {
                        same if same == behind && !is_separator(self.word(behind)) => self.signed(behind),
                        after => after,
                    }
                }
                _ => return next,
            };
        }
    }

    /// The place behind a name, which may have dots; the text may end before it.
    fn name(&self, first: usize) -> usize {
        let mut next = first + 1;
        while matches!(self.token(next), Some(Token::Dot)) {
            next += 2;
        }
        next.min(self.tokens.len())
    }

    fn arguments(&mut self, open: usize) -> usize {
        match (self.token(open), closing(self.tokens, open)) {
            (Some(Token::ParenOpen), Some(close)) => {
                self.all(open + 1, close);
                close + 1
            }
            _ => open,
        }
    }

    /// An operand with its members and calls, and the signs before it.
    fn signed(&mut self, first: usize) -> usize {
        let filter = match self.token(first) {
            Some(Token::Minus) => ")|_neg)",
            Some(Token::Plus) => ")|_pos)",
            _ => return self.chained(first),
        };
        let next = self.signed(first + 1);
        if next == first + 1 {
            return first;
        }
        let literal = matches!(self.token(first + 1), Some(Token::Int(_) | Token::Int128(_) | Token::Float(_)));
        if !(literal && filter == ")|_neg)") {
            self.replace(first, first, "((".into());
            self.insert_behind(next - 1, filter);
        }
        next
    }

    fn chained(&mut self, first: usize) -> usize {
        let mut next = self.primary(first);
        if next == first {
            return first;
        }
        loop {
            next = match self.token(next) {
                Some(Token::Dot) => self.name(next + 1),
                Some(Token::ParenOpen) => match self.arguments(next) {
                    same if same == next => return next,
                    after => after,
                },
                Some(Token::BracketOpen) => match closing(self.tokens, next) {
                    Some(close) => {
                        self.subscript(first, next, close);
                        close + 1
                    }
                    None => return next,
                },
                _ => return next,
            };
        }
    }

    fn subscript(&mut self, first: usize, open: usize, close: usize) {
        self.all(open + 1, close);
        let (mut colons, mut depth) = (Vec::new(), 0usize);
        for at in open + 1..close {
            match self.token(at) {
                Some(Token::ParenOpen | Token::BracketOpen | Token::BraceOpen) => depth += 1,
                Some(Token::ParenClose | Token::BracketClose | Token::BraceClose) => depth = depth.saturating_sub(1),
                Some(Token::Colon) if depth == 0 => colons.push(at),
                _ => {}
            }
        }
        let Some(&colon) = colons.first() else { return };
        let missing = |at: usize, next: usize| if at + 1 == next { "none" } else { "" };
        self.insert_before(first, "((");
        self.replace(open, open, format!(")|_slice({}", missing(open, colon)));
        for (i, at) in colons.iter().enumerate() {
            let next = colons.get(i + 1).copied().unwrap_or(close);
            self.replace(*at, *at, format!(",{}", missing(*at, next)));
        }
        self.replace(close, close, "))".into());
    }

    /// A name, a literal, or an expression in brackets.
    fn primary(&mut self, first: usize) -> usize {
        match self.token(first) {
            Some(Token::Ident(name)) if !is_separator(name) => first + 1,
            Some(Token::Int(_) | Token::Int128(_) | Token::Float(_)) => first + 1,
            Some(Token::Str(_) | Token::String(_)) => {
                let strings = self.tokens[first..].iter();
                first + strings.take_while(|(token, _)| matches!(token, Token::Str(_) | Token::String(_))).count()
            }
            Some(Token::ParenOpen | Token::BracketOpen | Token::BraceOpen) => match closing(self.tokens, first) {
                Some(close) => {
                    self.all(first + 1, close);
                    close + 1
                }
                None => first,
            },
            _ => first,
        }
    }

    /// `a SIGN b` becomes `(a )|filter( b)`.
    fn call(&mut self, first: usize, sign: (usize, usize), filter: &str, last: usize) {
        self.insert_before(first, "(");
        self.replace(sign.0, sign.1, format!(")|{filter}("));
        self.insert_behind(last, ")");
    }

    fn wrap(&mut self, first: usize, before: &str, behind: &str, last: usize) {
        self.insert_before(first, before);
        self.insert_behind(last, behind);
    }

    fn insert_before(&mut self, token: usize, text: &str) {
        self.edits.push(insert(span_start(&self.tokens[token].1), text));
    }

    fn insert_behind(&mut self, token: usize, text: &str) {
        self.edits.push(insert(span_end(&self.tokens[token].1), text));
    }

    fn replace(&mut self, first: usize, last: usize, text: String) {
        self.edits.push(Edit { start: span_start(&self.tokens[first].1), end: span_end(&self.tokens[last].1), text });
    }
}

/// Words between operands.
fn is_separator(name: &str) -> bool {
    matches!(name, "and" | "or" | "not" | "if" | "else" | "in" | "is")
}
