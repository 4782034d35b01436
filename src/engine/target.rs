//! From variables and keywords to how a host is reached and as whom.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use super::Job;
use crate::connection::{Confinement, HostKeys, Method, Target};
use crate::playbook::{Keywords, SourceValue};
use crate::remote::{self, Become};
use crate::template::{Error, Scope};
use crate::value::{ProcessEnvironment, Secret, Value, Vars, truth};

/// What the command line and the settings say of connections; keywords and variables win over it.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    pub user: Option<String>,
    pub port: Option<u16>,
    pub connection: Option<String>,
    pub private_key_file: Option<PathBuf>,
    pub private_key_passphrase: Option<Secret>,
    /// Asked for by `-k`.
    pub password: Option<Secret>,
    pub connect_timeout: Option<Duration>,
    pub host_keys: Option<HostKeys>,
    pub retries: u32,
    pub r#become: bool,
    pub become_user: Option<String>,
    pub become_method: Option<String>,
    pub become_exe: Option<String>,
    pub become_flags: Option<String>,
    /// Asked for by `-K`.
    pub become_password: Option<Secret>,
    pub ssh_args: String,
    pub ssh_common_args: String,
    pub ssh_extra_args: String,
    /// Instead of `~/.ssh/config`.
    pub ssh_config: Option<PathBuf>,
}

impl Defaults {
    /// Without the user's own passwords, keys and SSH options.
    fn without_secrets(&self) -> Defaults {
        Defaults {
            connection: None,
            private_key_file: None,
            private_key_passphrase: None,
            password: None,
            become_password: None,
            host_keys: None,
            ssh_args: String::new(),
            ssh_common_args: String::new(),
            ssh_extra_args: String::new(),
            ..self.clone()
        }
    }
}

/// The defaults of connection variables. Hosts of a foreign resource use only the resource's own credentials.
fn defaults(job: &Job) -> Cow<'_, Defaults> {
    match job.inventory.confined {
        Some(_) => Cow::Owned(job.defaults.without_secrets()),
        None => Cow::Borrowed(&job.defaults),
    }
}

/// Looks up the first of some variables that is there, rendered.
struct Lookup<'a> {
    job: &'a Job,
    scope: &'a Scope,
}

impl Lookup<'_> {
    fn value(&self, names: &[&str]) -> Result<Option<Value>, Error> {
        match names.iter().find_map(|name| self.scope.get(name)) {
            Some(raw) => self.job.templar.render(raw, self.scope).map(|value| (!value.is_none()).then_some(value)),
            None => Ok(None),
        }
    }

    fn text(&self, names: &[&str]) -> Result<Option<String>, Error> {
        Ok(self.value(names)?.map(|value| value.to_string()).filter(|text| !text.is_empty()))
    }

    fn secret(&self, names: &[&str]) -> Result<Option<Secret>, Error> {
        let text = self.text(names)?;
        text.iter().for_each(|text| self.job.keyring.hidden.add_secret(text));
        Ok(text.map(Secret::new))
    }

    fn keyword(&self, keyword: Option<&SourceValue>) -> Result<Option<Value>, Error> {
        let Some(written) = keyword else { return Ok(None) };
        let value = self.job.templar.render(&written.value, self.scope)?;
        Ok((!value.is_none() && !crate::template::is_omit(&value)).then_some(value))
    }

    fn number<T: std::str::FromStr>(&self, names: &[&str], what: &str) -> Result<Option<T>, Error> {
        let Some(text) = self.text(names)? else { return Ok(None) };
        let wrong = |_| other(format!("{what} is not a valid number: {text:?}"));
        text.trim().parse().map(Some).map_err(wrong)
    }
}

fn other(message: String) -> Error {
    Error::Other { message, origin: None }
}

/// How the host `name` is reached, by the variables of `scope` (its own, or a delegate's).
pub(crate) fn target(job: &Job, name: &str, keywords: &Keywords, scope: &Scope) -> Result<Target, Error> {
    let look = Lookup { job, scope };
    let confined = job.inventory.confined.clone();
    let defaults = defaults(job);
    let keyword = |keyword| look.keyword(keyword).map(|value| value.map(|value| value.to_string()));
    let connection = match look.text(&["ansible_connection"])? {
        Some(word) => Some(word),
        None => keyword(keywords.connection.as_ref())?.or_else(|| defaults.connection.clone()),
    };
    let method = match connection.as_deref().map(|word| word.rsplit('.').next().unwrap_or(word)) {
        None | Some("ssh" | "smart" | "paramiko" | "paramiko_ssh") => Method::Ssh,
        Some("local") => Method::Local,
        Some(word) => {
            return Err(other(format!("unknown ansible_connection {word:?}: use ssh or local")));
        }
    };
    if method == Method::Local {
        return Ok(local(name, confined, scope.surroundings.clone()));
    }
    let port = match look.number(&["ansible_port", "ansible_ssh_port"], "ansible_port")? {
        Some(port) => Some(port),
        None => match look.keyword(keywords.port.as_ref())? {
            Some(value) => Some(value.to_string().parse().map_err(|_| other(format!("invalid port number: {value}")))?),
            None => defaults.port,
        },
    };
    let user = match look.text(&["ansible_user", "ansible_ssh_user"])? {
        Some(user) => Some(user),
        None => keyword(keywords.remote_user.as_ref())?.or_else(|| defaults.user.clone()),
    };
    let password = look.secret(&["ansible_password", "ansible_ssh_password", "ansible_ssh_pass"])?;
    let key = look.text(&["ansible_private_key_file", "ansible_ssh_private_key_file"])?;
    let passphrase = look.secret(&["ansible_ssh_private_key_passphrase", "ansible_private_key_passphrase"])?;
    let arguments = [
        ("ansible_ssh_args", &defaults.ssh_args),
        ("ansible_ssh_common_args", &defaults.ssh_common_args),
        ("ansible_ssh_extra_args", &defaults.ssh_extra_args),
    ];
    let mut words = Vec::new();
    for (name, default) in arguments {
        words.push(look.text(&[name])?.unwrap_or_else(|| default.clone()));
    }
    words.retain(|word| !word.trim().is_empty());
    let timeout = look.number::<u64>(&["ansible_timeout", "ansible_ssh_timeout"], "ansible_timeout")?;
    Ok(Target {
        method,
        name: name.to_string(),
        address: look.text(&["ansible_host", "ansible_ssh_host"])?.unwrap_or_else(|| name.to_string()),
        port,
        user,
        password: password.or_else(|| defaults.password.clone()),
        private_key_file: key.map(|path| expand(&path, scope)).or_else(|| defaults.private_key_file.clone()),
        private_key_passphrase: passphrase.or_else(|| defaults.private_key_passphrase.clone()),
        private_key: look.secret(&["ansible_private_key", "ansible_ssh_private_key"])?,
        fingerprint: look.text(&["ansible_host_key_fingerprint"])?,
        host_keys: host_keys(&look)?.or(defaults.host_keys),
        arguments: words.join(" "),
        connect_timeout: timeout.map(Duration::from_secs).or(defaults.connect_timeout),
        retries: look
            .number(&["ansible_ssh_retries", "ansible_connection_retries"], "ansible_ssh_retries")?
            .unwrap_or(defaults.retries),
        config_file: defaults.ssh_config.clone(),
        confined,
        surroundings: scope.surroundings.clone(),
    })
}

/// Whether a variable says how a host is reached or as whom tasks run there.
pub(crate) fn is_connection_variable(name: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "async_dir",
        "become",
        "connection",
        "control_path",
        "host_key_",
        "paramiko",
        "pipelining",
        "private_key",
        "psrp",
        "remote_tmp",
        "scp",
        "sftp",
        "shell_",
        "su_",
        "sudo_",
        "winrm",
    ];
    const NAMES: &[&str] = &["host", "port", "user", "password", "timeout"];
    let Some(name) = name.strip_prefix("ansible_") else { return false };
    NAMES.contains(&name)
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || name.starts_with("ssh_") && !name.ends_with("_public") && !name.ends_with("_keytype")
        || name.ends_with("_interpreter")
}

/// What a task's templates see of how its host is reached where no variable says it: what keywords and settings say, under
/// the names of both ages. It is what [`target`] would take, so finding it here gives the same target.
pub(crate) fn variables(job: &Job, name: &str, keywords: &Keywords, scope: &Scope) -> Vars {
    let written = |keyword: &Option<SourceValue>| keyword.as_ref().map(|written| written.value.clone());
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let defaults = defaults(job);
    let connection = written(&keywords.connection).or_else(|| text(&defaults.connection));
    let said: [(&[&str], Option<Value>); 4] = [
        (&["ansible_connection"], connection.or_else(|| Some(Value::from("ssh")))),
        (&["ansible_host", "ansible_ssh_host"], Some(Value::from(name))),
        (&["ansible_user", "ansible_ssh_user"], written(&keywords.remote_user).or_else(|| text(&defaults.user))),
        // The keyword `port` is not seen.
        (&["ansible_port", "ansible_ssh_port"], None),
    ];
    let mut vars = Vars::new();
    for (names, said) in said {
        let Some(value) = names.iter().find_map(|name| scope.get(name)).cloned().or(said) else { continue };
        vars.extend(names.iter().map(|name| ((*name).into(), value.clone())));
    }
    vars
}

fn local(name: &str, confined: Option<Arc<Confinement>>, surroundings: Arc<ProcessEnvironment>) -> Target {
    Target {
        method: Method::Local,
        name: name.to_string(),
        address: "localhost".to_string(),
        confined,
        surroundings,
        ..Target::default()
    }
}

/// `ansible_host_key_checking: false` turns the check off; `accept-new` records new keys. Any other word is an error.
fn host_keys(look: &Lookup<'_>) -> Result<Option<HostKeys>, Error> {
    let names = ["ansible_ssh_host_key_checking", "ansible_host_key_checking"];
    let Some(name) = names.into_iter().find(|name| look.scope.get(name).is_some()) else { return Ok(None) };
    let Some(value) = look.value(&[name])? else { return Ok(None) };
    if let Some("accept-new" | "accept_new") = value.as_str() {
        return Ok(Some(HostKeys::AcceptNew));
    }
    let meant = match value.as_str().unwrap_or_default().to_lowercase().as_str() {
        "strict" | "ask" | "enabled" => " (did you mean \"true\"?)",
        "tofu" => " (did you mean \"accept-new\"?)",
        _ => "",
    };
    let checked = truth::expect(&value, name, &["accept-new"]).map_err(|message| other(format!("{message}{meant}")))?;
    Ok(Some(if checked { HostKeys::Strict } else { HostKeys::Off }))
}

/// `~` of the person's home; a relative path is relative to the playbook.
fn expand(path: &str, scope: &Scope) -> PathBuf {
    scope.base.join(scope.surroundings.expand_home(path))
}

/// Whom to become for this task; None: the login user stays.
pub(crate) fn become_user(job: &Job, keywords: &Keywords, scope: &Scope) -> Result<Option<Become>, Error> {
    let look = Lookup { job, scope };
    let defaults = defaults(job);
    let wanted = match look.value(&["ansible_become"])? {
        Some(value) => truth::expect(&value, "ansible_become", &[]).map_err(other)?,
        None => match look.keyword(keywords.r#become.as_ref())? {
            Some(value) => truth::expect(&value, "become", &[]).map_err(other)?,
            None => defaults.r#become,
        },
    };
    if !wanted {
        return Ok(None);
    }
    let word = |variables: &[&str], keyword: Option<&SourceValue>, default: Option<&String>| -> Result<_, Error> {
        Ok(match look.text(variables)? {
            Some(text) => Some(text),
            None => match look.keyword(keyword)? {
                Some(value) => Some(value.to_string()),
                None => default.cloned(),
            },
        })
    };
    let method = word(&["ansible_become_method"], keywords.become_method.as_ref(), defaults.become_method.as_ref())?;
    let method = match method.as_deref().map(|word| word.rsplit('.').next().unwrap_or(word)) {
        None | Some("sudo") => remote::Method::Sudo,
        Some("su") => remote::Method::Su,
        Some(word) => return Err(other(format!("unknown become_method {word:?}: use sudo or su"))),
    };
    let user = word(
        &["ansible_become_user", "ansible_sudo_user"],
        keywords.become_user.as_ref(),
        defaults.become_user.as_ref(),
    )?;
    let password = ["ansible_become_password", "ansible_become_pass", "ansible_sudo_pass"];
    Ok(Some(Become {
        method,
        user: user.unwrap_or_else(|| "root".to_string()),
        password: look.secret(&password)?.or_else(|| defaults.become_password.clone()),
        executable: word(&["ansible_become_exe"], keywords.become_exe.as_ref(), defaults.become_exe.as_ref())?,
        flags: word(&["ansible_become_flags"], keywords.become_flags.as_ref(), defaults.become_flags.as_ref())?,
    }))
}

/// The task's `environment`, outermost first; a later one wins.
pub(crate) fn task_environment(
    job: &Job,
    keywords: &Keywords,
    scope: &Scope,
) -> Result<IndexMap<String, String>, Error> {
    let mut merged = IndexMap::new();
    for written in &keywords.environment {
        let value = job.templar.render(&written.value, scope)?;
        let layers: Vec<Value> = match value.kind() {
            minijinja::value::ValueKind::Seq => value.try_iter().into_iter().flatten().collect(),
            _ => vec![value],
        };
        let is_nothing =
            |layer: &Value| layer.is_none() || layer.as_str() == Some("") || crate::template::is_omit(layer);
        for layer in layers.iter().filter(|layer| !is_nothing(layer)) {
            if layer.kind() != minijinja::value::ValueKind::Map {
                let message = format!("environment must be a mapping of names to values, not a {}", layer.kind());
                return Err(Error::other(message, Some(&written.origin)));
            }
            for key in layer.try_iter().into_iter().flatten() {
                let value = layer.get_item(&key).unwrap_or_default();
                merged.insert(key.to_string(), value.to_string());
            }
        }
    }
    Ok(merged)
}
