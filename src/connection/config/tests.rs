//! What we make of configurations, compared with what `ssh -G` makes of them, and arguments.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use super::*;
use crate::connection::Method as ConnectionMethod;
use crate::value::ProcessEnvironment;

fn target(address: &str, config_file: Option<PathBuf>) -> Target {
    Target {
        method: ConnectionMethod::Ssh,
        name: "web1".to_owned(),
        address: address.to_owned(),
        config_file,
        surroundings: Arc::new(ProcessEnvironment::of_process()),
        ..Target::default()
    }
}

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

/// What OpenSSH says about a host: keyword and value of each line.
fn openssh(config: &Path, address: &str) -> Vec<(String, String)> {
    let output = Command::new("ssh").arg("-G").arg("-F").arg(config).arg(address).output();
    let output = output.expect("openssh-client is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_once(' ')).map(|(key, value)| (key.into(), value.into())).collect()
}

/// The same of ours, in the words of `ssh -G`.
fn ours(config: &Path, address: &str) -> Vec<(&'static str, Vec<String>)> {
    let settings = SshSettings::of_target(&target(address, Some(config.to_owned()))).unwrap();
    let shown = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    let jump = |jump: &ProxyHop| {
        let user = jump.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let port = jump.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{user}{}{port}", bracketed(&jump.host))
    };
    let jumps = settings.jumps.iter().map(jump).collect::<Vec<_>>().join(",");
    let seconds = |time: Duration| vec![time.as_secs().to_string()];
    let given = |value: Option<String>| value.into_iter().collect::<Vec<_>>();
    vec![
        ("hostname", vec![settings.address.clone()]),
        ("port", vec![settings.port.to_string()]),
        ("user", vec![settings.user.clone()]),
        ("identityfile", settings.identity_files.as_deref().map(shown).unwrap_or_default()),
        ("certificatefile", shown(&settings.certificate_files)),
        ("proxyjump", given(Some(jumps).filter(|jumps| !jumps.is_empty()))),
        ("proxycommand", given(settings.proxy_command.clone())),
        ("hostkeyalias", given(settings.host_key_alias.clone())),
        ("userknownhostsfile", vec![shown(&settings.user_known_hosts).join(" ")]),
        ("globalknownhostsfile", vec![shown(&settings.global_known_hosts).join(" ")]),
        ("identitiesonly", vec![if settings.identities_only { "yes" } else { "no" }.to_owned()]),
        ("serveralivecountmax", vec![settings.alive_count.to_string()]),
        ("serveraliveinterval", settings.alive_interval.map(seconds).unwrap_or_default()),
        ("connecttimeout", seconds(settings.connect_timeout)),
    ]
}

/// Values that `ssh -G` prints as written, or not at all, as ours: paths with `~` and tokens put in.
fn comparable(keyword: &str, values: Vec<String>, settings_user: &str, address: &str, given: &str) -> Vec<String> {
    let expand = |text: &String| {
        let around = ProcessEnvironment::of_process();
        let tokens = Tokens { given, address, port: 2200, user: settings_user, around: &around };
        tokens.expand_path(text, keyword).unwrap().display().to_string()
    };
    let of_files = ["identityfile", "certificatefile", "userknownhostsfile", "globalknownhostsfile"];
    if of_files.contains(&keyword) {
        return values
            .iter()
            .map(|value| value.split(' ').map(|word| expand(&word.to_owned())).collect::<Vec<_>>().join(" "))
            .collect();
    }
    values
}

#[test]
fn configurations_mean_what_openssh_takes_them_to_mean() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("conf.d")).unwrap();
    fs::write(path("conf.d/10-first.conf"), "Port 2201\nHost inc*\n User included\n").unwrap();
    fs::write(path("conf.d/20-second.conf"), "Host *\n User too-late\n ServerAliveInterval 1m\n").unwrap();
    fs::write(path("conf.d/.hidden.conf"), "Host *\n User hidden\n").unwrap();
    fs::write(path("inner"), "Host nowhere\n User never\nMatch all\n ConnectTimeout 44\n").unwrap();
    let text = format!(
        r#"
# A comment, and a line before any block
IgnoreUnknown UnheardOf
UnheardOf yes
ConnectTimeout=33

Host plain
    HostName 10.0.0.1
    User = deploy
    Port 2200  # the other door
    IdentityFile ~/.ssh/first
    IdentityFile "~/.ssh/with blank"
    IdentityFile ~/.ssh/first
    IdentitiesOnly yes

Host plain
    User late
    IdentityFile /keys/%h-%n-%r

Host *.prod !db.prod
    HostName %h.example.com
    ProxyJump bastion1,ops@bastion2:2222
    ServerAliveCountMax 7

Host db.prod "quoted" db?.prod
    HostName=db.internal
    ProxyCommand nc -X "5" %h %p # not a comment here
    ProxyJump not-this-one

Match originalhost matched,other user deploy
    Port 1111
Match host 10.0.0.1
    HostKeyAlias by-address
Match originalhost matched
    User deploy
Match originalhost matched user deploy,x
    Port 2222
Match !originalhost plain,matched,*.prod
    ServerAliveCountMax 9
Match originalhost finally
    HostName final.example.com
Match final host final.example.com
    Port 4444
Match all
    GlobalKnownHostsFile /etc/a /etc/b

Host inc* nested
    Include {0}/conf.d/*.conf
    UserKnownHostsFile ~/.ssh/own
Host asleep
    Include {0}/inner
Host none
    ProxyJump none
    CertificateFile ~/.ssh/cert.pub
Host jump6
    ProxyJump [2001:db8::1]:22
Host *
    UserKnownHostsFile ~/.ssh/known_hosts ~/.ssh/other_hosts
    ServerAliveInterval 20
    IdentityFile /keys/common
    User fallback
    ProxyJump gate
"#,
        directory.path().display()
    );
    let config = path("config");
    fs::write(&config, text).unwrap();
    let hosts = [
        "plain", "PLAIN", "web.prod", "db.prod", "db1.prod", "quoted", "matched", "other", "finally", "included",
        "nested", "asleep", "none", "jump6", "unknown", "10.0.0.1",
    ];
    for host in hosts {
        let settings = SshSettings::of_target(&target(host, Some(config.clone()))).unwrap();
        let all_theirs = openssh(&config, host);
        for (keyword, values) in ours(&config, host) {
            let of_keyword = all_theirs.iter().filter(|(name, _)| name == keyword);
            let theirs = of_keyword.map(|(_, value)| value.clone()).collect();
            let theirs = comparable(keyword, theirs, &settings.user, &settings.address, host);
            // `ssh -G` shows a command with its tokens still in it.
            let theirs = match keyword {
                "proxycommand" => {
                    let around = ProcessEnvironment::of_process();
                    let tokens = Tokens {
                        given: host,
                        address: &settings.address,
                        port: settings.port,
                        user: &settings.user,
                        around: &around,
                    };
                    theirs.iter().map(|command| tokens.expand_tokens(command, keyword).unwrap()).collect()
                }
                _ => theirs,
            };
            assert_eq!(values, theirs, "{keyword} of {host}");
        }
    }
}

#[test]
fn what_is_said_first_counts_inventory_then_arguments_then_files() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config");
    fs::write(&config, "User file\nPort 3\nIdentityFile /file\nStrictHostKeyChecking no\nConnectTimeout 3\n").unwrap();
    let mut target = target("h", Some(config));
    let settings = SshSettings::of_target(&target).unwrap();
    assert_eq!((settings.user.as_str(), settings.port, settings.host_keys), ("file", 3, HostKeys::Off));

    target.arguments = "-o User=argument -p 2 -i /argument -oStrictHostKeyChecking=accept-new".to_owned();
    let settings = SshSettings::of_target(&target).unwrap();
    assert_eq!((settings.user.as_str(), settings.port, settings.host_keys), ("argument", 2, HostKeys::AcceptNew));

    target.user = Some("inventory".to_owned());
    target.port = Some(1);
    target.private_key_file = Some("/inventory".into());
    target.host_keys = Some(HostKeys::Strict);
    target.connect_timeout = Some(Duration::from_millis(1500));
    let settings = SshSettings::of_target(&target).unwrap();
    assert_eq!((settings.user.as_str(), settings.port, settings.host_keys), ("inventory", 1, HostKeys::Strict));
    assert_eq!(settings.connect_timeout, Duration::from_millis(1500));
    let keys = settings.identity_files.unwrap();
    assert_eq!(keys, ["/inventory", "/argument", "/file"].map(PathBuf::from));
}

#[test]
fn without_any_configuration_the_defaults_are_safe() {
    let settings = SshSettings::of_target(&target("h", Some("none".into()))).unwrap();
    assert_eq!(
        (settings.port, settings.host_keys, settings.user),
        (22, HostKeys::Strict, local_user(&ProcessEnvironment::of_process()))
    );
    assert_eq!((settings.connect_timeout, settings.alive_count), (CONNECT_TIMEOUT, 3));
    assert_eq!((settings.identity_files, settings.jumps), (None, vec![]));
    assert_eq!(settings.alive_interval, Some(Duration::from_secs(15)));
    assert_eq!(settings.methods, [Method::PublicKey, Method::KeyboardInteractive, Method::Password]);
    assert_eq!(settings.user_known_hosts[0], home(&ProcessEnvironment::of_process()).join(".ssh/known_hosts"));
}

#[test]
fn arguments_may_be_written_in_every_usual_way() {
    let mut target = target("h", Some("none".into()));
    for (arguments, port, user) in [
        ("-p2200 -l deploy", 2200, "deploy"),
        ("-o Port=2200 -o User=deploy", 2200, "deploy"),
        ("-oPort=2200 -o'User deploy'", 2200, "deploy"),
        ("-o port=2200 -o \"USER = deploy\" -o Port=1", 2200, "deploy"),
        ("-Cqp 2200 -vvvldeploy", 2200, "deploy"),
    ] {
        target.arguments = arguments.to_owned();
        let settings = SshSettings::of_target(&target).unwrap();
        assert_eq!((settings.port, settings.user.as_str()), (port, user), "{arguments}");
    }
    target.arguments = "-J a,b@[::1]:3 -o UserKnownHostsFile=none -o PreferredAuthentications=password,publickey \
                        -o KbdInteractiveAuthentication=no"
        .to_owned();
    let settings = SshSettings::of_target(&target).unwrap();
    assert_eq!(settings.jumps[1], ProxyHop { user: Some("b".to_owned()), host: "::1".to_owned(), port: Some(3) });
    assert_eq!((settings.user_known_hosts, settings.methods), (vec![], vec![Method::Password, Method::PublicKey]));
}

#[test]
fn a_file_named_by_an_argument_is_read_instead() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("other");
    fs::write(&config, "User other\n").unwrap();
    let mut target = target("h", None);
    target.arguments = format!("-F {}", config.display());
    assert_eq!(SshSettings::of_target(&target).unwrap().user, "other");
    target.arguments = "-F /no/such/file".to_owned();
    assert!(message(SshSettings::of_target(&target)).contains("cannot read /no/such/file"));
}

#[test]
fn what_cannot_be_understood_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config");
    let place = config.display().to_string();
    for (text, expected) in [
        ("Host *\nMatch originalhost h exec true\n", format!("{place}:2: Match exec is not supported")),
        ("Match tagged x\n", format!("{place}:1: Match tagged is not supported")),
        ("Port many\n", "port \"many\" is not a port".to_owned()),
        ("Port 0\n", "port \"0\" is not a port".to_owned()),
        ("User \"half\n", format!("{place}:1: a quote is not closed")),
        ("Match\n", format!("{place}:1: Match has no criteria")),
        ("HostName %z\n", "%z in HostName \"%z\" is not supported".to_owned()),
        ("IdentityFile ${NO_SUCH_THING}/x\n", "the environment variable NO_SUCH_THING is not set".to_owned()),
        ("ProxyJump a:b\n", "invalid jump host \"a:b\"".to_owned()),
        ("StrictHostKeyChecking perhaps\n", "stricthostkeychecking \"perhaps\" is not one of".to_owned()),
        ("User\n", format!("{place}:1: user has no value")),
        (&format!("Include {place}\n"), "Include directives are nested too deeply".to_owned()),
    ] {
        fs::write(&config, text).unwrap();
        let message = message(SshSettings::of_target(&target("h", Some(config.clone()))));
        assert!(message.starts_with("cannot connect to web1: ") && message.contains(&expected), "{message}");
    }
    // A criterion after one that does not hold is not looked at.
    fs::write(&config, "Match originalhost other exec true\n User never\n").unwrap();
    SshSettings::of_target(&target("h", Some(config))).unwrap();
}

#[test]
fn jump_hosts_have_their_own_settings() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config");
    fs::write(&config, "Host bastion\n HostName 10.9.9.9\n User gate\n IdentityFile /gate\n").unwrap();
    let mut target = target("h", Some(config));
    target.user = Some("deploy".to_owned());
    target.password = Some(Secret::new("word"));
    target.private_key_file = Some("/own".into());
    target.arguments = "-J bastion:2022".to_owned();
    let settings = SshSettings::of_target(&target).unwrap();
    let jump = settings.of_jump(&settings.jumps[0], &target).unwrap();
    assert_eq!(jump.host_and_port(), "gate@10.9.9.9:2022");
    assert_eq!((jump.identity_files, jump.password), (Some(vec!["/gate".into()]), None));
    assert_eq!(jump.label, "web1's jump host bastion");
}

#[test]
fn times_are_written_as_openssh_writes_them() {
    for (text, seconds) in [
        ("90", Some(90)),
        ("1m30s", Some(90)),
        ("2H", Some(7200)),
        ("1w", Some(604_800)),
        ("1m30", Some(90)),
        ("", None),
        ("m", None),
        ("1x", None),
        ("99999999999999999999", None),
    ] {
        assert_eq!(parse::duration(text), seconds.map(Duration::from_secs), "{text}");
    }
}
