//! Logs in: keys, then keyboard-interactive, then password, as far as the server takes them and we have them.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use russh::client::AuthResult;
use russh::client::{Handle, KeyboardInteractiveAuthResponse as Answer, Prompt};
use russh::keys::agent::AgentIdentity;
use russh::keys::signature::Signer as _;
use russh::keys::ssh_encoding::Encode;
use russh::keys::ssh_key::{self, private::KeypairData};
use russh::keys::{Certificate, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey};
use russh::{AgentAuthError, MethodKind, MethodSet, Signer};
use tokio::sync::watch;

use super::login_keys::{self, Agent, Candidate};
use super::verify::{Client, in_words};
use crate::connection::Error;
use crate::connection::config::{Method, SshSettings, bracketed};
use crate::value::Secret;

/// Why the login failed.
#[derive(Debug)]
pub(super) enum LoginFailure {
    Refused(Error),
    /// The server threw us out before everything was tried.
    TooManyFailures(Error),
    Lost(Error),
}

/// Logs in; `with_keys`: also by keys. `distrust`: why the host gets neither a password nor what an agent signs.
pub(super) async fn authenticate(
    session: &mut Handle<Client>,
    settings: &SshSettings,
    lost: &watch::Receiver<Option<String>>,
    with_keys: bool,
    distrust: Option<&str>,
) -> Result<(), LoginFailure> {
    let mut login = Login {
        session,
        settings,
        lost,
        socket: settings.agent.as_deref(),
        keys: None,
        agent: None,
        methods: settings.methods.clone(),
        tried: Vec::new(),
        notes: Vec::new(),
        offered: MethodSet::empty(),
    };
    if !with_keys {
        login.methods.retain(|method| *method != Method::PublicKey);
        login.notes.push("the server rejected too many keys before windlass could try the password".to_owned());
    }
    if let Some(why) = distrust {
        login.methods.retain(|method| *method == Method::PublicKey);
        login.socket = None;
        login.notes.push(format!("windlass uses no password and no SSH agent, because {why}"));
    }
    login.run().await
}

struct Login<'a> {
    session: &'a mut Handle<Client>,
    settings: &'a SshSettings,
    lost: &'a watch::Receiver<Option<String>>,
    /// The agent's, if it is to be asked.
    socket: Option<&'a Path>,
    /// Not yet offered. None: not yet collected.
    keys: Option<VecDeque<Candidate>>,
    agent: Option<Agent>,
    /// Not yet exhausted.
    methods: Vec<Method>,
    /// For the message, if all fails.
    tried: Vec<String>,
    notes: Vec<String>,
    /// What the server says it takes.
    offered: MethodSet,
}

/// What became of one attempt.
enum Attempt {
    In,
    /// Accepted, and the server requires a further method.
    Further,
    No,
}

impl Login<'_> {
    async fn run(mut self) -> Result<(), LoginFailure> {
        // Asks what the server takes; costs no attempt there.
        let result = self.session.authenticate_none(&self.settings.user).await;
        if let Attempt::In = self.outcome(result)? {
            return Ok(());
        }
        let offered: Vec<&str> = self.offered.iter().map(<&str>::from).collect();
        tracing::debug!(host = self.settings.label, user = self.settings.user, ?offered, "logging in");
        let next = |login: &Self| login.methods.iter().copied().find(|method| login.offered.contains(&kind(*method)));
        while let Some(method) = next(&self) {
            let attempt = match method {
                Method::PublicKey => self.keys().await?,
                Method::KeyboardInteractive => self.keyboard_interactive().await?,
                Method::Password => self.password().await?,
            };
            let words = match attempt {
                Attempt::In => "logged in",
                Attempt::Further => "accepted; the server requires another method",
                Attempt::No => "rejected",
            };
            tracing::debug!(host = self.settings.label, ?method, "{words}");
            match attempt {
                // Anything sent after success is not answered.
                Attempt::In => return Ok(()),
                // A second key may be tried; there is no second password.
                Attempt::Further if method == Method::PublicKey => {}
                Attempt::Further | Attempt::No => self.methods.retain(|left| *left != method),
            }
        }
        Err(LoginFailure::Refused(self.refused(None)))
    }

    fn outcome(&mut self, result: Result<AuthResult, russh::Error>) -> Result<Attempt, LoginFailure> {
        match result {
            Ok(AuthResult::Success) => Ok(Attempt::In),
            Ok(AuthResult::Failure { remaining_methods, partial_success }) => {
                self.answered(remaining_methods, partial_success)
            }
            Err(error) => Err(self.ended(&in_words(&error))),
        }
    }

    fn answered(&mut self, remaining: MethodSet, partial: bool) -> Result<Attempt, LoginFailure> {
        // A dead session looks like a refusal that leaves nothing.
        if remaining.is_empty() && (self.session.is_closed() || self.lost.borrow().is_some()) {
            return Err(self.ended("the host closed it"));
        }
        self.offered = remaining;
        Ok(if partial { Attempt::Further } else { Attempt::No })
    }

    fn ended(&self, reason: &str) -> LoginFailure {
        let reason = self.lost.borrow().clone().unwrap_or_else(|| reason.to_owned());
        if reason.to_lowercase().contains("too many authentication failures") {
            return LoginFailure::TooManyFailures(self.refused(Some("too many attempts")));
        }
        LoginFailure::Lost(super::connect::cannot(self.settings, &format!("it ended the login: {reason}"), None))
    }

    async fn keys(&mut self) -> Result<Attempt, LoginFailure> {
        if self.keys.is_none() {
            let binding = self.session.agent_session_binding().cloned();
            let found = login_keys::candidates(self.settings, self.socket, binding.as_ref()).await;
            self.keys = Some(found.list.into());
            self.agent = found.agent;
            self.notes.extend(found.notes);
        }
        while let Some(candidate) = self.keys.as_mut().and_then(VecDeque::pop_front) {
            let description = candidate.description();
            tracing::debug!(host = self.settings.label, key = description, "trying a key");
            let attempt = match candidate {
                Candidate::Agent { key, certificate, .. } => self.agent_key(key, certificate).await,
                Candidate::File { path, certificate } => {
                    self.own_key(move |passphrase| login_keys::private_key(&path, passphrase), certificate).await
                }
                Candidate::Text(text) => {
                    let read = move |passphrase: Option<&Secret>| {
                        login_keys::private_key_of(text.reveal(), "in ansible_private_key", passphrase)
                    };
                    self.own_key(read, None).await
                }
            };
            match attempt {
                Ok(Attempt::No) => self.tried.push(description),
                Ok(attempt) => return Ok(attempt),
                Err(Skip::Key(note)) => {
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                }
                Err(Skip::All(denied)) => {
                    self.tried.push(description);
                    return Err(self.with_tried(denied));
                }
            }
        }
        Ok(Attempt::No)
    }

    /// The list of what was tried has grown since the error was made.
    fn with_tried(&self, denied: LoginFailure) -> LoginFailure {
        match denied {
            LoginFailure::TooManyFailures(_) => LoginFailure::TooManyFailures(self.refused(Some("too many attempts"))),
            other => other,
        }
    }

    async fn agent_key(&mut self, key: PublicKey, certificate: Option<Certificate>) -> Result<Attempt, Skip> {
        let hash = self.rsa_hash(key.algorithm().is_rsa()).await?;
        let Some(agent) = &mut self.agent else { return Ok(Attempt::No) };
        let (user, shown) = (&self.settings.user, login_keys::name_of(&key));
        let result = match certificate {
            Some(certificate) => self.session.authenticate_certificate_with(user, certificate, hash, agent).await,
            None => self.session.authenticate_publickey_with(user, key, hash, agent).await,
        };
        self.signed(result, &format!("the SSH agent's {shown}"))
    }

    fn signed(&mut self, result: Result<AuthResult, AgentAuthError>, signer: &str) -> Result<Attempt, Skip> {
        match result {
            Ok(result) => self.outcome(Ok(result)).map_err(Skip::All),
            Err(AgentAuthError::Send(_)) => Err(Skip::All(self.ended("the host closed it"))),
            Err(AgentAuthError::Key(error)) => Err(Skip::Key(format!("{signer} cannot sign: {error}"))),
        }
    }

    /// Signs with a key that `read` gives, opened by the passphrase if it has to be.
    async fn own_key(
        &mut self,
        read: impl FnOnce(Option<&Secret>) -> Result<PrivateKey, String> + Send + 'static,
        certificate: Option<Certificate>,
    ) -> Result<Attempt, Skip> {
        let passphrase = self.settings.passphrase.clone();
        // Deriving the key of an encrypted file takes long on purpose.
        let read = tokio::task::spawn_blocking(move || read(passphrase.as_ref())).await;
        let key = read.map_err(|error| Skip::Key(error.to_string()))?.map_err(Skip::Key)?;
        let hash = self.rsa_hash(key.algorithm().is_rsa()).await?;
        let user = &self.settings.user;
        let result = match certificate {
            Some(certificate) => {
                let mut signer = Local(key);
                self.session.authenticate_certificate_with(user, certificate, hash, &mut signer).await
            }
            None => {
                let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash);
                let result = self.session.authenticate_publickey(user, key).await;
                return self.outcome(result).map_err(Skip::All);
            }
        };
        self.signed(result, "the key")
    }

    /// The hash to sign with by an RSA key. SHA-1, all that very old servers know, is not used.
    async fn rsa_hash(&self, rsa: bool) -> Result<Option<HashAlg>, Skip> {
        if !rsa {
            return Ok(None);
        }
        match self.session.best_supported_rsa_hash().await {
            Ok(Some(Some(hash))) => Ok(Some(hash)),
            // The server does not say; those that know SHA-2 at all know this one.
            Ok(None) => Ok(Some(HashAlg::Sha256)),
            Ok(Some(None)) => Err(Skip::Key("the host accepts RSA keys only with SHA-1, which is insecure".to_owned())),
            Err(error) => Err(Skip::All(self.ended(&in_words(&error)))),
        }
    }

    async fn password(&mut self) -> Result<Attempt, LoginFailure> {
        let Some(password) = self.settings.password.clone() else { return Ok(Attempt::No) };
        self.tried.push("password".to_owned());
        let result = self.session.authenticate_password(&self.settings.user, password.reveal()).await;
        self.outcome(result)
    }

    async fn keyboard_interactive(&mut self) -> Result<Attempt, LoginFailure> {
        let Some(password) = self.settings.password.clone() else { return Ok(Attempt::No) };
        self.tried.push("keyboard-interactive".to_owned());
        let mut asked = false;
        let mut answer =
            self.session.authenticate_keyboard_interactive_start(&self.settings.user, None::<String>).await;
        loop {
            let prompts = match answer {
                Ok(Answer::Success) => return Ok(Attempt::In),
                Ok(Answer::Failure { remaining_methods, partial_success }) => {
                    return self.answered(remaining_methods, partial_success);
                }
                Ok(Answer::InfoRequest { prompts, .. }) => prompts,
                Err(error) => return Err(self.ended(&in_words(&error))),
            };
            let responses = self.respond(&prompts, &password, &mut asked);
            answer = self.session.authenticate_keyboard_interactive_respond(responses).await;
        }
    }

    /// The password to the first hidden prompt; nothing to all others. PAM also asks without any prompt.
    fn respond(&mut self, prompts: &[Prompt], password: &Secret, asked: &mut bool) -> Vec<String> {
        let mut responses = Vec::new();
        for prompt in prompts {
            if prompt.echo || *asked {
                self.notes.push(format!("the host asks {:?}, which windlass cannot answer", prompt.prompt.trim()));
                responses.push(String::new());
                continue;
            }
            *asked = true;
            if prompt.prompt.to_lowercase().contains("password") {
                // The same password by the other method would be one wrong attempt more.
                self.methods.retain(|method| *method != Method::Password);
            }
            responses.push(password.reveal().to_owned());
        }
        responses
    }

    fn refused(&self, why: Option<&str>) -> Error {
        let settings = self.settings;
        let offered: Vec<&str> = self.offered.iter().map(<&str>::from).collect();
        let place = format!("{}:{}", bracketed(&settings.address), settings.port);
        let mut message = format!("cannot log in to {} ({place}) as {}: ", settings.label, settings.user);
        message.push_str(why.unwrap_or("permission denied"));
        if !offered.is_empty() {
            message.push_str(&format!(" (the host accepts {})", offered.join(", ")));
        }
        match self.tried.is_empty() {
            true => message.push_str("; found no key and no password to try"),
            false => message.push_str(&format!("; tried {}", self.tried.join(", "))),
        }
        for note in &self.notes {
            message.push_str(&format!("; {note}"));
        }
        Error::Unreachable { message, hint: Some(self.hint().to_owned()) }
    }

    fn hint(&self) -> &'static str {
        match (self.tried.is_empty(), self.settings.password.is_some()) {
            (true, _) => "set ansible_ssh_private_key_file, load a key into ssh-agent, or set ansible_password",
            (false, true) => "check the user and the password",
            (false, false) => "check the user, and that the key is in the user's authorized_keys on the host",
        }
    }
}

/// Why a key was not offered to the end.
enum Skip {
    /// The note says why; the next key may do.
    Key(String),
    All(LoginFailure),
}

fn kind(method: Method) -> MethodKind {
    match method {
        Method::PublicKey => MethodKind::PublicKey,
        Method::KeyboardInteractive => MethodKind::KeyboardInteractive,
        Method::Password => MethodKind::Password,
    }
}

/// Signs for a certificate with a key of ours: russh's own way takes SHA-1 for RSA.
struct Local(PrivateKey);

impl Signer for Local {
    type Error = AgentAuthError;

    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        hash: Option<HashAlg>,
        mut to_sign: Vec<u8>,
    ) -> Result<Vec<u8>, AgentAuthError> {
        let signature = match self.0.key_data() {
            KeypairData::Rsa(pair) => (pair, hash).try_sign(&to_sign),
            _ => self.0.try_sign(&to_sign),
        };
        let signature = signature.map_err(|error| russh::keys::Error::from(ssh_key::Error::from(error)))?;
        let mut blob = Vec::new();
        signature.encode(&mut blob).map_err(russh::keys::Error::from)?;
        blob.encode(&mut to_sign).map_err(russh::keys::Error::from)?;
        Ok(to_sign)
    }
}
