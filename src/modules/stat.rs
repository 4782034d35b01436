//! `stat`: everything about a path of the host.

use serde::Deserialize;

use super::stat_fields::{self, set_field};
use super::{Controller, Error, Inspect, Outcome};
use crate::remote::{self, Command, Digest, FileKind, Links, Probe};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stat {
    path: String,
    follow: bool,
    get_checksum: bool,
    get_mime: bool,
    get_attributes: bool,
    checksum_algorithm: Algorithm,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Algorithm {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl From<Algorithm> for Digest {
    fn from(algorithm: Algorithm) -> Digest {
        match algorithm {
            Algorithm::Md5 => Digest::Md5,
            Algorithm::Sha1 => Digest::Sha1,
            Algorithm::Sha224 => Digest::Sha224,
            Algorithm::Sha256 => Digest::Sha256,
            Algorithm::Sha384 => Digest::Sha384,
            Algorithm::Sha512 => Digest::Sha512,
        }
    }
}

impl Inspect for Stat {
    const DOC: Doc = Doc {
        name: "stat",
        collection: "ansible.builtin",
        summary: "Return the status of a file or directory on the host",
        arguments: &[
            Argument::new("path", ArgumentKind::Path, "The path on the host").required().alias(&["dest", "name"]),
            Argument::new("follow", ArgumentKind::Bool, "Whether to follow symbolic links").default("false"),
            Argument::new("get_checksum", ArgumentKind::Bool, "Whether to return the checksum of a file")
                .default("true"),
            Argument::new("get_mime", ArgumentKind::Bool, "Whether to return the output of the file command")
                .default("true")
                .alias(&["mime", "mime_type", "mime-type"]),
            Argument::new("get_attributes", ArgumentKind::Bool, "Whether to return the output of the lsattr command")
                .default("true")
                .alias(&["attr", "attributes"]),
            Argument::new("checksum_algorithm", ArgumentKind::Str, "Which checksum")
                .default("sha1")
                .choices(&["md5", "sha1", "sha224", "sha256", "sha384", "sha512"])
                .alias(&["checksum", "checksum_algo"]),
        ],
        free_form: None,
        example: r#"
- name: Check whether etcd is installed
  stat:
    path: /usr/local/bin/etcd
    checksum_algorithm: sha256
  register: etcd

- name: Report a missing etcd
  debug:
    msg: etcd is missing
  when: not etcd.stat.exists
"#,
        returns: &[Return::new(
            "stat",
            "exists, and if true: path, mode, isdir, isreg, islnk, size, checksum, owner and more",
        )],
    };
    async fn inspect(&self, probe: &Probe, _: &Controller<'_>) -> Result<Outcome, Error> {
        let path = probe.expand_on_host(&self.path).await?;
        let links = if self.follow { Links::Follow } else { Links::Keep };
        let found = match self.get_checksum {
            true => probe.stat_and_digest(&path, links, self.checksum_algorithm.into()).await?,
            false => probe.stat(&path, links).await?.map(|stat| (stat, None)),
        };
        let Some((stat, checksum)) = found else {
            let missing = Value::from_pairs([("exists", false)]);
            return Ok(Outcome::default().with("stat", missing));
        };
        let mut fields = stat_fields::stat_values(&path, &stat);
        set_field(&mut fields, "exists", true);
        if let Some(checksum) = checksum {
            set_field(&mut fields, "checksum", checksum);
        }
        self.look_further(probe, &path, &stat, &mut fields).await?;
        Ok(Outcome::default().with("stat", Value::from_pairs(fields)))
    }
}

/// What one `stat` does not tell, a line each: what this user may do; blocks and device; `file`; `lsattr`; the path
/// without links. 1 path, 2 option for stat, 3 whether to ask file, 4 whether to ask lsattr.
const FURTHER: &str = r#"
for may in r w x; do if [ -$may "$1" ]; then printf '1 '; else printf '0 '; fi; done; echo
stat $2 -c '%b %o %t %T' -- "$1" 2>/dev/null || echo
if [ "$3" = 1 ]; then file -b --mime-type --mime-encoding -- "$1" 2>/dev/null | head -n 1 | grep . || echo; else echo; fi
if [ "$4" = 1 ]; then lsattr -vd -- "$1" 2>/dev/null | head -n 1 | grep . || echo; else echo; fi
readlink -f -- "$1"
"#;

impl Stat {
    async fn look_further(
        &self,
        probe: &Probe,
        path: &str,
        stat: &remote::Stat,
        fields: &mut Vars,
    ) -> Result<(), Error> {
        let follow = if self.follow { "-L" } else { "" };
        let ask = |whether: bool| if whether { "1" } else { "0" };
        let argv = ["sh", "-c", FURTHER, "sh", path, follow, ask(self.get_mime), ask(self.get_attributes)];
        let output = probe.query(&Command::program(argv)).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.splitn(5, '\n');
        let mut next = || lines.next().unwrap_or_default();
        let mut may = next().split(' ').map(|flag| flag == "1");
        for name in ["readable", "writeable", "executable"] {
            set_field(fields, name, may.next().unwrap_or(false));
        }
        blocks(next(), fields);
        let mime = next();
        if self.get_mime {
            let (kind, charset) = mime.split_once("; charset=").unwrap_or(("unknown", "unknown"));
            set_field(fields, "mimetype", kind);
            set_field(fields, "charset", charset);
        }
        let attributes = next();
        if self.get_attributes {
            extended(attributes, fields);
        }
        if stat.kind == FileKind::Link {
            let source = next();
            set_field(fields, "lnk_source", source.strip_suffix('\n').unwrap_or(source));
            set_field(fields, "lnk_target", stat.link_target.as_deref().unwrap_or_default());
        }
        Ok(())
    }
}

/// `8 4096 0 0`: blocks, size of one, device (major and minor in hexadecimal).
fn blocks(line: &str, fields: &mut Vars) {
    let numbers: Vec<u64> = line
        .split(' ')
        .enumerate()
        .filter_map(|(at, text)| if at < 2 { text.parse().ok() } else { u64::from_str_radix(text, 16).ok() })
        .collect();
    if let [blocks, size, major, minor] = numbers[..] {
        set_field(fields, "blocks", blocks);
        set_field(fields, "block_size", size);
        // As glibc's makedev combines them.
        let device = (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12 | (major & !0xfff) << 32;
        set_field(fields, "device_type", device);
    }
}

/// `3048 --------------e------- /path`: version, flags, path.
fn extended(line: &str, fields: &mut Vars) {
    let mut words = line.split_ascii_whitespace();
    let version = words.next();
    let flags: String = words.next().unwrap_or_default().chars().filter(|flag| *flag != '-').collect();
    let names: Vec<Value> = flags.chars().filter_map(attribute).map(Value::from).collect();
    set_field(fields, "version", version);
    set_field(fields, "attributes", Value::from_iter(names));
    set_field(fields, "attr_flags", flags);
}

/// The name of a flag of `lsattr`.
fn attribute(flag: char) -> Option<&'static str> {
    Some(match flag {
        'A' => "noatime",
        'a' => "append",
        'c' => "compressed",
        'C' => "nocow",
        'd' => "nodump",
        'D' => "dirsync",
        'e' => "extents",
        'E' => "encrypted",
        'h' => "blocksize",
        'i' => "immutable",
        'I' => "indexed",
        'j' => "journalled",
        'N' => "inline",
        's' => "zero",
        'S' => "synchronous",
        't' => "notail",
        'T' => "blockroot",
        'u' => "undelete",
        'X' => "compressedraw",
        'Z' => "compresseddirty",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_say_is_read() {
        let mut fields = Vars::new();
        blocks("8 4096 8 1", &mut fields);
        assert_eq!(fields["device_type"].as_i64(), Some(0x801));
        extended("3048 --------------e---i-- /x", &mut fields);
        assert_eq!(fields["attr_flags"].as_str(), Some("ei"));
        assert_eq!(fields["attributes"].to_string(), "['extents', 'immutable']");
        assert_eq!(fields["version"].as_str(), Some("3048"));
        extended("", &mut fields);
        assert!(fields["version"].is_none());
        assert_eq!(fields["attributes"].len(), Some(0));
    }

    use super::super::testing::Bench;

    async fn stat(bench: &Bench, task: &str) -> Value {
        bench.check(task).await.unwrap().outcome.values["stat"].clone()
    }

    fn field(stat: &Value, name: &str) -> String {
        stat.get_attr(name).unwrap().to_string()
    }

    #[tokio::test]
    async fn a_file_is_described_under_ansibles_names() {
        let bench = Bench::new().await;
        bench.on_host("a b\nc", "abc");
        let stat = stat(&bench, r#"stat: {path: "HOST/a b\nc", checksum_algorithm: md5}"#).await;
        assert_eq!(field(&stat, "checksum"), "900150983cd24fb0d6963f7d28e17f72");
        for name in ["exists", "isreg", "readable", "writeable", "rusr"] {
            assert_eq!(field(&stat, name), "True", "{name}");
        }
        for name in ["isdir", "islnk", "executable", "isuid"] {
            assert_eq!(field(&stat, name), "False", "{name}");
        }
        assert_eq!((field(&stat, "size"), field(&stat, "nlink")), ("3".into(), "1".into()));
        for name in ["mimetype", "charset", "attributes", "blocks", "block_size", "device_type", "mtime", "pw_name"] {
            assert!(!stat.get_attr(name).unwrap().is_undefined(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_link_is_described_itself_or_what_it_leads_to() {
        let bench = Bench::new().await;
        let real = bench.on_host("real", "abc");
        std::os::unix::fs::symlink("real", bench.host("link")).unwrap();
        let kept = stat(&bench, "stat: {path: HOST/link}").await;
        assert_eq!((field(&kept, "islnk"), field(&kept, "lnk_target")), ("True".into(), "real".into()));
        assert_eq!(field(&kept, "lnk_source"), real.canonicalize().unwrap().to_str().unwrap());
        let followed = stat(&bench, "stat: {path: HOST/link, follow: true}").await;
        assert_eq!((field(&followed, "isreg"), field(&followed, "size")), ("True".into(), "3".into()));
    }

    #[tokio::test]
    async fn what_is_not_there_does_not_exist() {
        let bench = Bench::new().await;
        let stat = stat(&bench, "stat: {path: HOST/none/at/all}").await;
        assert_eq!((field(&stat, "exists"), stat.len()), ("False".into(), Some(1)));
    }
}
