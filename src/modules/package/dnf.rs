//! `dnf`: packages of Fedora, RHEL and their kin; yum where there is no dnf.

use serde::Deserialize;

use super::{database_error, failure, first_of, in_english, run, said};
use crate::modules::execution::quote;
use crate::modules::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Command, Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dnf {
    pub name: Vec<String>,
    pub list: Option<String>,
    /// Present if not given; absent with `autoremove`.
    pub state: Option<DnfState>,
    pub enablerepo: Vec<String>,
    pub disablerepo: Vec<String>,
    pub exclude: Vec<String>,
    pub update_cache: bool,
    pub update_only: bool,
    pub disable_gpg_check: bool,
    pub allowerasing: bool,
    pub allow_downgrade: bool,
    pub nobest: Option<bool>,
    pub install_weak_deps: Option<bool>,
    pub autoremove: bool,
    pub cacheonly: bool,
    pub best: Option<bool>,
    pub bugfix: bool,
    pub security: bool,
    pub conf_file: Option<String>,
    pub disable_excludes: Option<String>,
    pub disable_plugin: Vec<String>,
    pub enable_plugin: Vec<String>,
    pub download_dir: Option<String>,
    pub download_only: bool,
    pub installroot: Option<String>,
    pub releasever: Option<String>,
    pub skip_broken: bool,
    pub sslverify: Option<bool>,
    pub validate_certs: Option<bool>,
    pub use_backend: Option<String>,
    /// Nothing more is needed to look.
    #[serde(rename = "install_repoquery")]
    pub _install_repoquery: bool,
    /// dnf itself waits.
    #[serde(rename = "lock_timeout")]
    pub _lock_timeout: i64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DnfState {
    #[default]
    #[serde(alias = "installed")]
    Present,
    #[serde(alias = "removed")]
    Absent,
    Latest,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DnfChange {
    tool: String,
    install: Vec<String>,
    upgrade: Vec<String>,
    remove: Vec<String>,
}

impl DnfChange {
    fn is_empty(&self) -> bool {
        self.install.is_empty() && self.upgrade.is_empty() && self.remove.is_empty()
    }
}

/// `yum`: the older name of `dnf`.
pub(crate) static YUM: Doc = Doc {
    name: "yum",
    summary: "Install and remove packages on Fedora, RHEL and their derivatives; the same as dnf",
    example: "\
- name: Install what the service needs
  yum:
    name: [ca-certificates, curl]
",
    ..Dnf::DOC
};

impl Module for Dnf {
    const CHANGES: Changes = Changes::Packages;
    const DOC: Doc = Doc {
        name: "dnf",
        collection: "ansible.builtin",
        summary: "Install and remove packages on Fedora, RHEL and their derivatives",
        arguments: &[
            Argument::new(
                "name",
                ArgumentKind::List(&ArgumentKind::Str),
                "Packages, as name or name-version; @name is a group, * means all",
            )
            .alias(&["pkg"])
            .default("[]"),
            Argument::new(
                "list",
                ArgumentKind::Str,
                "List these instead: installed, available, updates, repos or a package",
            ),
            Argument::new(
                "state",
                ArgumentKind::Str,
                "Whether they should be installed, absent, or installed in the newest \
                version (default: present, or absent with autoremove)",
            )
            .choices(&["present", "installed", "absent", "removed", "latest"]),
            Argument::new("enablerepo", ArgumentKind::List(&ArgumentKind::Str), "Repositories to enable").default("[]"),
            Argument::new("disablerepo", ArgumentKind::List(&ArgumentKind::Str), "Repositories to disable")
                .default("[]"),
            Argument::new("exclude", ArgumentKind::List(&ArgumentKind::Str), "Packages to exclude").default("[]"),
            Argument::new("update_cache", ArgumentKind::Bool, "Whether to update the package lists first")
                .alias(&["expire-cache"])
                .default("false"),
            Argument::new("update_only", ArgumentKind::Bool, "Whether to upgrade installed packages only")
                .default("false"),
            Argument::new("disable_gpg_check", ArgumentKind::Bool, "Whether to skip the check of signatures")
                .default("false"),
            Argument::new(
                "allowerasing",
                ArgumentKind::Bool,
                "Whether other packages may be removed to resolve \
                conflicts",
            )
            .default("false"),
            Argument::new("allow_downgrade", ArgumentKind::Bool, "Whether to allow downgrades").default("false"),
            Argument::new(
                "nobest",
                ArgumentKind::Bool,
                "Whether to install an older version if the newest has unmet \
                dependencies",
            ),
            Argument::new("best", ArgumentKind::Bool, "Whether to install only the newest version"),
            Argument::new("bugfix", ArgumentKind::Bool, "Whether state: latest installs only bug fixes")
                .default("false"),
            Argument::new("security", ArgumentKind::Bool, "Whether state: latest installs only security updates")
                .default("false"),
            Argument::new("conf_file", ArgumentKind::Str, "The configuration file"),
            Argument::new(
                "disable_excludes",
                ArgumentKind::Str,
                "Ignore the excluded packages of: all, main or a repository",
            ),
            Argument::new("disable_plugin", ArgumentKind::List(&ArgumentKind::Str), "Plugins to disable").default("[]"),
            Argument::new("enable_plugin", ArgumentKind::List(&ArgumentKind::Str), "Plugins to enable").default("[]"),
            Argument::new("download_dir", ArgumentKind::Str, "The directory for download_only"),
            Argument::new("download_only", ArgumentKind::Bool, "Whether to download packages without installing them")
                .default("false"),
            Argument::new("installroot", ArgumentKind::Str, "The root directory of the system to change").default("/"),
            Argument::new("releasever", ArgumentKind::Str, "The release to install packages from"),
            Argument::new(
                "skip_broken",
                ArgumentKind::Bool,
                "Whether to skip packages that cannot be \
                installed",
            )
            .default("false"),
            Argument::new("sslverify", ArgumentKind::Bool, "Whether to check the certificates of repositories")
                .default("true"),
            Argument::new("validate_certs", ArgumentKind::Bool, "The same").default("true"),
            Argument::new("use_backend", ArgumentKind::Str, "Which program to use")
                .default("auto")
                .choices(&["auto", "dnf", "dnf4", "dnf5", "yum", "yum4"]),
            Argument::new("install_repoquery", ArgumentKind::Bool, "Accepted for compatibility; it is not needed")
                .default("true"),
            Argument::new(
                "lock_timeout",
                ArgumentKind::Int,
                "Accepted for compatibility; dnf has its own lock timeout",
            )
            .default("30"),
            Argument::new("install_weak_deps", ArgumentKind::Bool, "Whether to also install weak dependencies"),
            Argument::new(
                "autoremove",
                ArgumentKind::Bool,
                "Whether to remove packages that nothing depends on any more",
            )
            .default("false"),
            Argument::new("cacheonly", ArgumentKind::Bool, "Whether to use only the local cache").default("false"),
        ],
        free_form: None,
        example: "\
- name: Install what the service needs
  dnf:
    name: [ca-certificates, curl]
    install_weak_deps: false
",
        returns: &[
            Return::new("results", "Messages of dnf, as lines; with list, packages or repositories"),
            Return::new("stdout", "Standard output of dnf"),
            Return::new("stderr", "Standard error"),
            Return::new("rc", "0"),
        ],
    };
    type Change = DnfChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<DnfChange>, Error> {
        self.check()?;
        let tools = self.tools();
        let tool = first_of(probe, tools)
            .await?
            .ok_or_else(|| Error::failed(format!("the host has no program for it: searched {}", tools.join(", "))))?;
        if let Some(what) = &self.list {
            return Ok(Plan::Unchanged(self.list(probe, &tool, what).await?));
        }
        let change = self.changes(probe, tool).await?;
        let outcome = Outcome::default().with("rc", 0);
        Ok(if self.autoremove && !here.check {
            Plan::Unknown(change)
        } else if !change.is_empty() {
            Plan::Change { diff: Vec::new(), outcome: outcome.with("results", change.result_lines()), change }
        } else if self.update_cache && !here.check {
            Plan::Unknown(change)
        } else {
            Plan::Unchanged(outcome.message("Nothing to do").with("results", Vec::<String>::new()))
        })
    }

    async fn apply(&self, change: DnfChange, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let mut outputs = Vec::new();
        let mut changed = !change.is_empty();
        if self.update_cache {
            outputs.push(run(remote, &self.argv(&change.tool, &["makecache"], &[])).await?);
        }
        let verbs = [(self.install_verb(), &change.install), ("upgrade", &change.upgrade), ("remove", &change.remove)];
        for (verb, names) in verbs.into_iter().filter(|(_, names)| !names.is_empty()) {
            outputs.push(run(remote, &self.argv(&change.tool, &[verb], names)).await?);
        }
        if self.autoremove {
            let output = run(remote, &self.argv(&change.tool, &["autoremove"], &[])).await?;
            changed |= !says_nothing_to_do(&String::from_utf8_lossy(&output.stdout));
            outputs.push(output);
        }
        let outcome = said(&outputs).with("rc", 0);
        let results = outcome.values.get("stdout_lines").cloned().unwrap_or_default();
        Ok(Outcome { changed, ..outcome.with("results", results) })
    }
}

impl DnfChange {
    fn result_lines(&self) -> Vec<String> {
        let said =
            |what: &str, names: &[String]| names.iter().map(|name| format!("{what}: {name}")).collect::<Vec<_>>();
        [said("Installed", &self.install), said("Upgraded", &self.upgrade), said("Removed", &self.remove)].concat()
    }
}

impl Dnf {
    /// What `list` asks for, as `results`.
    async fn list(&self, probe: &Probe, tool: &str, what: &str) -> Result<Outcome, Error> {
        let kinds: &[(&str, &str)] = match what {
            "installed" => &[("--installed", "installed")],
            "available" => &[("--available", "available")],
            "updates" | "upgrades" => &[("--upgrades", "available")],
            "repos" | "repositories" => {
                let argv = self.argv(tool, &["-q", "repolist", "--enabled"], &[]);
                return Ok(listed(repositories(&asked(probe, &argv).await?)));
            }
            spec if spec.is_empty() || spec.starts_with('-') => {
                return Err(Error::failed(format!(
                    "invalid list {spec:?}: use installed, available, updates, repos or a package"
                )));
            }
            _ => &[("--installed", "installed"), ("--available", "available")],
        };
        let spec = if kinds.len() > 1 { vec![what.to_owned()] } else { Vec::new() };
        let mut packages = Vec::new();
        for (option, state) in kinds {
            let argv = self.argv(tool, &["-q", "repoquery", "--qf", FORMAT, option], &spec);
            packages.extend(packages_of(&asked(probe, &argv).await?, state));
        }
        Ok(listed(packages))
    }

    async fn changes(&self, probe: &Probe, tool: String) -> Result<DnfChange, Error> {
        let names: Vec<&str> = self.name.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
        if let Some(wrong) = names.iter().find(|name| name.starts_with('-') || name.contains(char::is_whitespace)) {
            return Err(Error::failed(format!("invalid package name {wrong:?}")));
        }
        let mut change = DnfChange { tool, ..DnfChange::default() };
        let all = names.contains(&"*");
        let names: Vec<&str> = names.into_iter().filter(|name| *name != "*").collect();
        let installed = self.installed(probe, &names).await?;
        let owned = |wanted: bool| -> Vec<String> {
            names.iter().zip(&installed).filter(|(_, is)| **is == wanted).map(|(name, _)| (*name).to_owned()).collect()
        };
        match self.state() {
            DnfState::Absent => change.remove = owned(true),
            DnfState::Present if self.update_only => {}
            DnfState::Present => change.install = owned(false),
            DnfState::Latest => {
                change.install = if self.update_only { Vec::new() } else { owned(false) };
                let there = owned(true);
                if all || !there.is_empty() {
                    let outdated = self.outdated(probe, &change.tool, if all { &[] } else { &there }).await?;
                    change.upgrade = outdated;
                }
            }
        }
        Ok(change)
    }

    /// Which of these are installed, in their order. A group is said not to be: only dnf knows. A package file counts as
    /// what is in it.
    async fn installed(&self, probe: &Probe, names: &[&str]) -> Result<Vec<bool>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let root = self.root().map(|root| format!("--root={}", quote(root))).unwrap_or_default();
        let line = format!(
            "for n in {}; do case $n in /*.rpm) n=$(rpm -qp --qf '%{{NAME}}-%{{VERSION}}-%{{RELEASE}}.%{{ARCH}}' \"$n\" 2>/dev/null) ;; esac; \
             e=$({{ rpm {root} -q -- \"$n\" >/dev/null || rpm {root} -q --whatprovides -- \"$n\" >/dev/null; }} 2>&1); \
             printf '%s %s\\n' $? \"$(printf %s \"$e\" | tr '\\n' '\\t')\"; done",
            names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(" ")
        );
        let output = probe.query(&in_english(Command::shell(line))).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let answers: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
        if answers.len() != names.len() {
            return Err(Error::failed("cannot list the installed packages: rpm failed"));
        }
        let is_installed = |(name, (code, words)): (&&str, &(&str, &str))| {
            let failed = |why: &str| Err(Error::failed(format!("cannot query the package {name}: {why}")));
            let words = words.replace('\t', "\n");
            match (code.parse::<u8>(), database_error(&words, "error: file ")) {
                (Ok(0), _) => Ok(true),
                (Ok(..126), None) => Ok(false),
                (_, Some(error)) => failed(error),
                (_, None) => failed(&format!("rpm ended with code {code}")),
            }
        };
        names.iter().zip(&answers).map(is_installed).collect()
    }

    /// Which packages have a newer version.
    async fn outdated(&self, probe: &Probe, tool: &str, names: &[String]) -> Result<Vec<String>, Error> {
        let argv = self.argv(tool, &["-q", "check-update"], names);
        let output = probe.query(&in_english(Command::program(argv.clone()))).await?;
        match output.code {
            0 => Ok(Vec::new()),
            100 => Ok(updates(&String::from_utf8_lossy(&output.stdout))),
            _ => Err(failure(&argv, &output)),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let problem = match () {
            () if self.best.is_some() && self.nobest.is_some() => "only best or nobest can be given, not both",
            () if (self.security || self.bugfix) && self.state() != DnfState::Latest => {
                "security and bugfix work with state: latest only"
            }
            () if self.autoremove && self.state() != DnfState::Absent => "autoremove works with state: absent only",
            () if self.download_dir.is_some() && !self.download_only => "download_dir works with download_only only",
            () => return Ok(()),
        };
        Err(Error::failed(problem))
    }

    fn state(&self) -> DnfState {
        self.state.unwrap_or(if self.autoremove { DnfState::Absent } else { DnfState::Present })
    }

    fn tools(&self) -> &'static [&'static str] {
        match self.use_backend.as_deref() {
            Some("dnf" | "dnf4" | "yum4") => &["dnf-3", "dnf"],
            Some("dnf5") => &["dnf5"],
            _ => &["dnf", "dnf5", "yum"],
        }
    }

    /// The root of another system, if it is one.
    fn root(&self) -> Option<&str> {
        self.installroot.as_deref().filter(|root| *root != "/")
    }

    fn install_verb(&self) -> &'static str {
        if self.allow_downgrade {
            "install"
        } else if self.update_only {
            "upgrade"
        } else {
            "install"
        }
    }

    fn argv(&self, tool: &str, words: &[&str], names: &[String]) -> Vec<String> {
        let mut argv = vec![tool.to_owned(), "-y".to_owned()];
        argv.extend(self.disablerepo.iter().map(|name| format!("--disablerepo={name}")));
        argv.extend(self.enablerepo.iter().map(|name| format!("--enablerepo={name}")));
        argv.extend(self.exclude.iter().map(|name| format!("--exclude={name}")));
        argv.extend(self.disable_plugin.iter().map(|name| format!("--disableplugin={name}")));
        argv.extend(self.enable_plugin.iter().map(|name| format!("--enableplugin={name}")));
        let valued = [
            ("--config", self.conf_file.as_deref()),
            ("--disableexcludes", self.disable_excludes.as_deref()),
            ("--downloaddir", self.download_dir.as_deref()),
            ("--installroot", self.root()),
            ("--releasever", self.releasever.as_deref()),
        ];
        argv.extend(valued.into_iter().filter_map(|(flag, value)| Some(format!("{flag}={}", value?))));
        let is_checked = self.sslverify != Some(false) && self.validate_certs != Some(false);
        let flags = [
            (self.disable_gpg_check, "--nogpgcheck"),
            (self.allowerasing, "--allowerasing"),
            (self.nobest == Some(true) || self.best == Some(false), "--nobest"),
            (self.best == Some(true) || self.nobest == Some(false), "--best"),
            (self.bugfix, "--bugfix"),
            (self.security, "--security"),
            (self.download_only, "--downloadonly"),
            (self.skip_broken, "--skip-broken"),
            (!is_checked, "--setopt=sslverify=0"),
            (self.cacheonly, "--cacheonly"),
            (self.install_weak_deps == Some(false), "--setopt=install_weak_deps=False"),
            (self.install_weak_deps == Some(true), "--setopt=install_weak_deps=True"),
        ];
        argv.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag.to_owned()));
        argv.extend(words.iter().map(|word| (*word).to_owned()));
        argv.extend(names.iter().cloned());
        argv
    }
}

/// One line for a package. dnf ends lines by itself up to version 4; version 5 does not.
const FORMAT: &str = "%{name} %{arch} %{epoch} %{release} %{version} %{repoid}\n";

async fn asked(probe: &Probe, argv: &[String]) -> Result<String, Error> {
    let output = probe.query(&in_english(Command::program(argv.iter().cloned()))).await?;
    match output.code {
        0 => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(failure(argv, &output)),
    }
}

fn listed(results: Vec<Value>) -> Outcome {
    Outcome::default().message("").with("results", results)
}

fn packages_of(text: &str, state: &str) -> Vec<Value> {
    let package = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, arch, epoch, release, version, repo] = fields[..] else { return None };
        let whole = format!("{epoch}:{name}-{version}-{release}.{arch}");
        Some(Value::from_pairs([
            ("name", name),
            ("arch", arch),
            ("epoch", epoch),
            ("release", release),
            ("version", version),
            ("repo", repo),
            ("envra", &whole),
            ("nevra", &whole),
            ("yumstate", state),
        ]))
    };
    text.lines().filter_map(package).collect()
}

fn repositories(text: &str) -> Vec<Value> {
    let ids = text.lines().filter_map(|line| line.split_whitespace().next()).filter(|id| *id != "repo");
    ids.map(|id| Value::from_pairs([("repoid", id), ("state", "enabled")])).collect()
}

/// The names in `check-update`: `curl.x86_64  7.88  updates`, up to the part about obsolete packages.
fn updates(text: &str) -> Vec<String> {
    text.lines()
        .take_while(|line| !line.starts_with("Obsoleting"))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            (fields.len() == 3).then(|| fields[0].to_owned())
        })
        .collect()
}

fn says_nothing_to_do(text: &str) -> bool {
    text.lines().any(|line| line.trim().starts_with("Nothing to do"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_options() {
        let dnf = Dnf {
            enablerepo: vec!["epel".into()],
            disablerepo: vec!["*".into()],
            disable_gpg_check: true,
            install_weak_deps: Some(false),
            ..Dnf::default()
        };
        assert_eq!(
            dnf.argv("dnf", &[dnf.install_verb()], &["curl".to_owned()]).join(" "),
            "dnf -y --disablerepo=* --enablerepo=epel --nogpgcheck --setopt=install_weak_deps=False install curl"
        );
    }

    #[test]
    fn every_argument_has_its_option() {
        let dnf = Dnf {
            best: Some(true),
            security: true,
            bugfix: true,
            conf_file: Some("/c".into()),
            disable_excludes: Some("all".into()),
            disable_plugin: vec!["a".into()],
            enable_plugin: vec!["b".into()],
            download_dir: Some("/d".into()),
            download_only: true,
            installroot: Some("/r".into()),
            releasever: Some("40".into()),
            skip_broken: true,
            sslverify: Some(false),
            ..Dnf::default()
        };
        assert_eq!(
            dnf.argv("dnf", &["upgrade"], &[]).join(" "),
            "dnf -y --disableplugin=a --enableplugin=b --config=/c --disableexcludes=all --downloaddir=/d --installroot=/r \
             --releasever=40 --best --bugfix --security --downloadonly --skip-broken --setopt=sslverify=0 upgrade"
        );
        let usual = Dnf { installroot: Some("/".into()), sslverify: Some(true), nobest: Some(true), ..Dnf::default() };
        assert_eq!(usual.argv("dnf", &["install"], &[]).join(" "), "dnf -y --nobest install");
    }

    #[test]
    fn what_does_not_go_together_is_refused_and_autoremove_means_absent() {
        let autoremove = Dnf { autoremove: true, ..Dnf::default() };
        assert_eq!((autoremove.state(), Dnf::default().state()), (DnfState::Absent, DnfState::Present));
        assert!(autoremove.check().is_ok());
        for wrong in [
            Dnf { best: Some(true), nobest: Some(true), ..Dnf::default() },
            Dnf { security: true, ..Dnf::default() },
            Dnf { autoremove: true, state: Some(DnfState::Latest), ..Dnf::default() },
            Dnf { download_dir: Some("/d".into()), ..Dnf::default() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        let backend = |name: &str| Dnf { use_backend: Some(name.into()), ..Dnf::default() }.tools();
        assert_eq!((backend("dnf5"), backend("dnf4")), (&["dnf5"][..], &["dnf-3", "dnf"][..]));
    }

    #[test]
    fn packages_and_repositories_are_listed() {
        let found = packages_of("curl x86_64 0 1.fc39 7.88 @System\n\nwarning of something\n", "installed");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].get_attr("nevra").unwrap().as_str(), Some("0:curl-7.88-1.fc39.x86_64"));
        assert_eq!(found[0].get_attr("yumstate").unwrap().as_str(), Some("installed"));
        let found = repositories("repo id       repo name\nfedora        Fedora 39\n");
        assert_eq!((found.len(), found[0].get_attr("repoid").unwrap().as_str()), (1, Some("fedora")));
    }

    #[test]
    fn updates_are_read_up_to_what_is_obsolete() {
        let text =
            "\ncurl.x86_64   7.88-1.fc39   updates\nvim.noarch 9 updates\nObsoleting Packages\nold.x86_64 1 updates\n";
        assert_eq!(updates(text), ["curl.x86_64", "vim.noarch"]);
    }

    #[test]
    fn both_words_for_a_state_mean_the_same() {
        let state = |word: &str| serde_json::from_str::<DnfState>(&format!("{word:?}")).unwrap();
        assert_eq!(
            (state("installed"), state("removed"), state("latest")),
            (DnfState::Present, DnfState::Absent, DnfState::Latest)
        );
        assert!(says_nothing_to_do("Dependencies resolved.\nNothing to do.\n"));
    }
}
