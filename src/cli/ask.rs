//! Questions to the person at the terminal.

use std::io::{IsTerminal, Write};

use anyhow::{Context, bail};

use crate::value::Secret;

/// Asks for a secret without showing it.
pub(super) fn secret(prompt: &str) -> anyhow::Result<Secret> {
    rpassword::prompt_password(prompt)
        .map(Secret::new)
        .with_context(|| format!("cannot ask for {prompt:?}: no terminal"))
}

/// Asks for a line.
pub(super) fn line(prompt: &str) -> anyhow::Result<String> {
    if !std::io::stdin().is_terminal() {
        bail!("cannot ask {prompt:?}: standard input is not a terminal\nhint: set the variable with -e");
    }
    let mut out = std::io::stderr();
    write!(out, "{prompt}").and_then(|()| out.flush()).context("cannot ask")?;
    let mut text = String::new();
    std::io::stdin().read_line(&mut text).context("cannot read the answer")?;
    Ok(text.trim_end_matches(['\n', '\r']).to_string())
}
