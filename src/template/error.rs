//! What goes wrong while rendering, with the place in the person's text and the variables on the way there.

use std::error::Error as _;

use crate::value::Origin;
use crate::value::origin::Diagnostic;

/// What goes wrong while rendering.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The variable, and where the text that used it is.
    #[error("{name:?} is undefined")]
    Undefined { name: String, origin: Option<Origin> },
    /// A value that `undef(hint='...')` left undefined: the text of the hint.
    #[error("{hint}")]
    Hint { hint: String, origin: Option<Origin> },
    /// A filter, test or lookup that is not there; `near` is what may have been meant.
    #[error("there is no {what} {name:?}")]
    Unknown { what: &'static str, name: String, near: Option<String>, origin: Option<Origin> },
    #[error("{message}")]
    Other { message: String, origin: Option<Origin> },
    /// A text used `variable`, whose own text failed; `origin` is where the outer text is.
    #[error("cannot render {variable:?}")]
    Within { variable: String, origin: Option<Origin>, source: Box<Error> },
}

impl Error {
    pub(crate) fn other(message: impl Into<String>, origin: Option<&Origin>) -> Self {
        Error::Other { message: message.into(), origin: origin.cloned() }
    }

    /// The innermost error: what is really wrong.
    pub fn root(&self) -> &Error {
        match self {
            Error::Within { source, .. } => source.root(),
            error => error,
        }
    }

    /// The name of the undefined variable, or its hint, if this is such an error.
    pub fn undefined(&self) -> Option<&str> {
        match self.root() {
            Error::Undefined { name, .. } | Error::Hint { hint: name, .. } => Some(name),
            _ => None,
        }
    }

    /// The location of the wrong text; else of the nearest text around it that has one.
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Error::Undefined { origin, .. }
            | Error::Hint { origin, .. }
            | Error::Unknown { origin, .. }
            | Error::Other { origin, .. } => origin.as_ref(),
            Error::Within { origin, source, .. } => source.origin().or(origin.as_ref()),
        }
    }

    /// The variables on the way from the outermost text to the wrong one.
    pub fn chain(&self) -> Vec<&str> {
        match self {
            Error::Within { variable, source, .. } => {
                let mut chain = vec![variable.as_str()];
                chain.extend(source.chain());
                chain
            }
            _ => Vec::new(),
        }
    }

    /// What is wrong in one line, at its place, to be shown with a caret.
    pub fn complaint(&self) -> Diagnostic {
        let chain = self.chain();
        let mut message = self.root().to_string();
        for variable in chain.iter().rev() {
            message.push_str(&format!(", needed by {variable:?}"));
        }
        let complaint = Diagnostic::new(message, self.origin());
        match self.root() {
            Error::Unknown { near: Some(near), .. } => complaint.hint(format!("did you mean {near:?}?")),
            _ => complaint,
        }
    }

    /// Our own error inside one of the template engine.
    pub(crate) fn inside(error: &minijinja::Error) -> Option<&Error> {
        let mut source = error.source();
        while let Some(error) = source {
            if let Some(own) = error.downcast_ref::<Error>() {
                return Some(own);
            }
            source = error.source();
        }
        None
    }

    /// As an error of the template engine, to travel through it.
    pub(crate) fn into_engine(self) -> minijinja::Error {
        minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, self.to_string()).with_source(self)
    }
}

impl From<Error> for Diagnostic {
    fn from(error: Error) -> Self {
        error.complaint()
    }
}
