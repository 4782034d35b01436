//! What a Go program was built from, as its linker recorded it: the layout is that of Go's package `debug/buildinfo`, from Go 1.18 on.

use std::path::Path;

use object::read::{Object, ObjectSection, ReadCache};

use super::Error;

/// What the linker recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BuildInfo {
    /// The version of Go, without `go`. None: it was built by one without a version.
    pub go: Option<String>,
    /// The package of the program's `main`. Empty: it was not recorded.
    pub package: String,
    /// The module with that package. None: it was built without modules.
    pub main: Option<GoModule>,
    pub dependencies: Vec<GoModule>,
}

/// A module of Go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GoModule {
    pub path: String,
    /// With a `v`. None: it was built from a directory.
    pub version: Option<String>,
}

const SECTION: &str = ".go.buildinfo";
const MAGIC: &[u8] = b"\xff Go buildinf:";
/// The flag of texts that follow the header.
const INLINE: u8 = 2;
/// In bytes.
const HEADER: usize = 32;
/// Frames the list of modules on both sides, in bytes.
const FRAME: usize = 16;
/// Linkers write a few dozen.
const MOST_SECTIONS: usize = 4096;
/// In bytes; that of kubectl is 17,000.
const LARGEST: u64 = 16 << 20;

impl BuildInfo {
    /// Reads it from a program. None: it is no Go program, or one of an earlier Go.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn of_program(path: &Path) -> Result<Option<BuildInfo>, Error> {
        let file = std::fs::File::open(path).map_err(|error| Error::io("read", path, &error))?;
        let cache = ReadCache::new(file);
        let Ok(program) = object::File::parse(&cache) else { return Ok(None) };
        // Names are read one by one: a file made for it could have millions.
        if program.sections().nth(MOST_SECTIONS).is_some() {
            return Ok(None);
        }
        let section = program.section_by_name(SECTION).filter(|section| section.size() <= LARGEST);
        Ok(section.and_then(|section| BuildInfo::parse_section(section.data().ok()?)))
    }

    fn parse_section(section: &[u8]) -> Option<BuildInfo> {
        let header = section.get(..HEADER)?;
        if !header.starts_with(MAGIC) || header[MAGIC.len() + 1] & INLINE == 0 {
            return None;
        }
        let mut rest = &section[HEADER..];
        let go = next_text(&mut rest)?;
        let list = next_text(&mut rest).unwrap_or_default();
        let list = list.get(FRAME..list.len().saturating_sub(FRAME)).unwrap_or_default();
        let mut info = BuildInfo {
            go: go_version(&String::from_utf8_lossy(go)),
            package: String::new(),
            main: None,
            dependencies: Vec::new(),
        };
        let list = String::from_utf8_lossy(list);
        let mut last_is_main = false;
        for line in list.lines() {
            let mut fields = line.split('\t');
            let (kind, path) = (fields.next()?, fields.next().unwrap_or_default());
            let version = fields.next().filter(|version| is_version(version)).map(str::to_owned);
            // A path that no module can have is of a file that was made by hand.
            if matches!(kind, "mod" | "dep") && !is_module_path(path) {
                continue;
            }
            let module = GoModule { path: path.to_owned(), version };
            match kind {
                "path" => info.package = path.to_owned(),
                "mod" => (info.main, last_is_main) = (Some(module), true),
                "dep" => {
                    info.dependencies.push(module);
                    last_is_main = false;
                }
                "=>" => {
                    let replaced = if last_is_main { info.main.as_mut() } else { info.dependencies.last_mut() };
                    // A directory in the place of a module is some version of the module.
                    match (replaced, module.version.is_some()) {
                        (Some(replaced), true) => *replaced = module,
                        (Some(replaced), false) => replaced.version = None,
                        (None, _) => {}
                    }
                }
                _ => {}
            }
        }
        info.dependencies.sort();
        info.dependencies.dedup();
        Some(info)
    }
}

/// The version in `go1.26.8`, or `go1.26.8 X:boringcrypto`.
fn go_version(text: &str) -> Option<String> {
    let version = text.split(' ').next()?.strip_prefix("go")?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

fn is_version(text: &str) -> bool {
    text.starts_with('v') && text.chars().all(|c| c.is_ascii_alphanumeric() || "-.+".contains(c))
}

fn is_module_path(path: &str) -> bool {
    let is_name = |name: &str| !["", ".", ".."].contains(&name) && name.chars().all(|c| c.is_ascii_graphic());
    path.split('/').all(is_name)
}

/// A text after its length, which is a varint as in Go's package `encoding/binary`.
fn next_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut length: usize = 0;
    for shift in (0..).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        length |= usize::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 35)?;
        if byte & 0x80 == 0 {
            break;
        }
    }
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(flags: u8, texts: &[&[u8]]) -> Vec<u8> {
        let mut section = MAGIC.to_vec();
        section.extend([8, flags]);
        section.resize(HEADER, 0);
        for text in texts {
            let mut length = text.len();
            while length > 0x7f {
                section.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
                length >>= 7;
            }
            section.push(u8::try_from(length).unwrap());
            section.extend(*text);
        }
        section
    }

    fn module(path: &str, version: Option<&str>) -> GoModule {
        GoModule { path: path.to_owned(), version: version.map(str::to_owned) }
    }

    #[test]
    fn modules_and_those_that_replace_them_are_read() {
        let list = "path\texample.com/one/cmd/one\nmod\texample.com/one\tv1.2.3\th1:x=\ndep\tk8s.io/api\tv0.0.0\n=>\t./staging/api\t(devel)\t\n\
            dep\texample.com/fork\tv1.0.0\th1:y=\n=>\texample.com/own\tv1.0.1\th1:z=\ndep\texample.com/b\tv2.0.0+incompatible\th1:q=\n\
            build\t-trimpath=true\n";
        let framed = [&[7; FRAME][..], list.as_bytes(), &[8; FRAME]].concat();
        let info = BuildInfo::parse_section(&section(INLINE, &[b"go1.26.8", &framed])).unwrap();
        assert_eq!((info.go.as_deref(), info.package.as_str()), (Some("1.26.8"), "example.com/one/cmd/one"));
        assert_eq!(info.main, Some(module("example.com/one", Some("v1.2.3"))));
        let expected = [
            module("example.com/b", Some("v2.0.0+incompatible")),
            module("example.com/own", Some("v1.0.1")),
            module("k8s.io/api", None),
        ];
        assert_eq!(info.dependencies, expected);
    }

    #[test]
    fn a_development_version_of_go_is_none() {
        for (text, expected) in [
            ("go1.26.8", Some("1.26.8")),
            ("go1.26.8 X:boringcrypto", Some("1.26.8")),
            ("go1.27rc1", Some("1.27rc1")),
            ("devel go1.27-abcdef Fri Nov 27 10:00:00 2026 +0000", None),
            ("", None),
        ] {
            assert_eq!(go_version(text).as_deref(), expected);
        }
        assert!(!["", "a//b", "/a", "../a", "a b", "a\u{7}"].into_iter().any(is_module_path));
        assert!(!["v1 2", "v1#2", "1.0.0", "(devel)"].into_iter().any(is_version));
    }

    #[test]
    fn what_is_damaged_or_of_an_earlier_go_is_nothing() {
        let whole = section(INLINE, &[b"go1.26.8", b"short"]);
        assert!(BuildInfo::parse_section(&whole).is_some_and(|info| info.main.is_none() && info.package.is_empty()));
        assert_eq!(BuildInfo::parse_section(&section(0, &[b"go1.17"])), None);
        for end in 0..whole.len() {
            let part = BuildInfo::parse_section(&whole[..end]);
            assert!(part.is_none_or(|info| info.dependencies.is_empty()), "{end}");
        }
        let mut endless = section(INLINE, &[]);
        endless.extend([0xff; 40]);
        assert_eq!(BuildInfo::parse_section(&endless), None);
    }

    #[test]
    fn a_program_of_rust_is_none_of_go() {
        assert_eq!(BuildInfo::of_program(&std::env::current_exe().unwrap()).unwrap(), None);
        assert_eq!(BuildInfo::of_program(Path::new("Cargo.toml")).unwrap(), None);
    }
}
