//! Arguments as one would give them to `ssh`: `-o Key=Value`, `-J`, `-i`, `-p`, `-l`, `-F` and what changes nothing here.

use std::path::PathBuf;

use super::parse::{self, Options};
use super::tokens::tilde;

/// What is said by arguments and is no configuration option.
#[derive(Debug, Default)]
pub(super) struct ParsedArguments {
    pub config_file: Option<PathBuf>,
}

/// Options that OpenSSH knows and that are taken in configuration files.
const UNDERSTOOD: &[&str] = &[
    "addressfamily",
    "certificatefile",
    "connecttimeout",
    "globalknownhostsfile",
    "hashknownhosts",
    "hostkeyalias",
    "hostname",
    "identitiesonly",
    "identityagent",
    "identityfile",
    "kbdinteractiveauthentication",
    "passwordauthentication",
    "port",
    "preferredauthentications",
    "proxycommand",
    "proxyjump",
    "pubkeyauthentication",
    "revokedhostkeys",
    "serveralivecountmax",
    "serveraliveinterval",
    "stricthostkeychecking",
    "user",
    "userknownhostsfile",
];

/// Options for what windlass always does, or does not have: connection sharing
/// (there is one connection per host), compression, terminals, logging.
const WITHOUT_EFFECT: &[&str] = &[
    "batchmode",
    "checkhostip",
    "compression",
    "connectionattempts",
    "controlmaster",
    "controlpath",
    "controlpersist",
    "gssapiauthentication",
    "hostbasedauthentication",
    "ipqos",
    "loglevel",
    "numberofpasswordprompts",
    "requesttty",
    "tcpkeepalive",
    "updatehostkeys",
    "visualhostkey",
];

/// Puts the options of an argument line into `options`. An argument that is not understood is an error.
pub(super) fn parse_ssh_arguments(line: &str, options: &mut Options) -> Result<ParsedArguments, String> {
    let words = shlex::split(line).ok_or_else(|| format!("a quote is not closed in the SSH arguments {line:?}"))?;
    let mut given = ParsedArguments::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return Err(format!("unsupported SSH argument {word:?}"));
        };
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            match letter {
                '4' => options.set_option("addressfamily", vec!["inet".to_owned()]),
                '6' => options.set_option("addressfamily", vec!["inet6".to_owned()]),
                // Compression, quietness, verbosity, no terminal, no forwarding: nothing of it is done here.
                'C' | 'q' | 'v' | 'T' | 'x' | 'a' | 'k' | 'n' => {}
                'o' | 'J' | 'i' | 'p' | 'l' | 'F' => {
                    let attached = rest.as_str();
                    let value = if attached.is_empty() { words.next() } else { Some(attached.to_owned()) };
                    let value = value.ok_or_else(|| format!("the SSH argument -{letter} has no value"))?;
                    one(letter, value, options, &mut given)?;
                    break;
                }
                _ => return Err(format!("unsupported SSH argument -{letter}")),
            }
        }
    }
    Ok(given)
}

fn one(letter: char, value: String, options: &mut Options, given: &mut ParsedArguments) -> Result<(), String> {
    match letter {
        'J' => options.set_option("proxyjump", vec![value]),
        'i' => options.set_option("identityfile", vec![value]),
        'p' => options.set_option("port", vec![value]),
        'l' => options.set_option("user", vec![value]),
        'F' => given.config_file = Some(tilde(&options.around, &value)),
        _ => return option(&value, options),
    }
    Ok(())
}

fn option(text: &str, options: &mut Options) -> Result<(), String> {
    let wrong = || format!("the SSH option {text:?} must have the form Key=Value");
    let (keyword, values) = parse::directive(text).map_err(|_| wrong())?.ok_or_else(wrong)?;
    if WITHOUT_EFFECT.contains(&keyword.as_str()) {
        return Ok(());
    }
    if !UNDERSTOOD.contains(&keyword.as_str()) {
        let name = text.split(['=', ' ']).next().unwrap_or(text);
        return Err(format!("unsupported SSH option {name}"));
    }
    if values.is_empty() {
        return Err(wrong());
    }
    options.set_option(&keyword, values);
    Ok(())
}
