//! What processor a program is for, read from its ELF header.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::Error;

/// `e_machine` and what systems call it (as Debian and Go do).
const MACHINES: &[(u16, &str)] = &[
    (62, "amd64"),
    (183, "arm64"),
    (40, "arm"),
    (3, "386"),
    (22, "s390x"),
    (21, "ppc64le"),
    (243, "riscv64"),
    (258, "loong64"),
];

/// The architecture of an ELF program; None: it is no ELF file.
pub(crate) fn architecture(path: &Path) -> Result<Option<String>, Error> {
    let mut header = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| Error::io("read", path, &error))?;
    file.take(20).read_to_end(&mut header).map_err(|error| Error::io("read", path, &error))?;
    let [0x7f, b'E', b'L', b'F', _, order, .., low, high] = header.as_slice() else { return Ok(None) };
    let machine = match order {
        2 => u16::from_be_bytes([*low, *high]),
        _ => u16::from_le_bytes([*low, *high]),
    };
    let known = MACHINES.iter().find(|(number, _)| *number == machine);
    Ok(Some(known.map_or_else(|| format!("machine {machine}"), |(_, name)| (*name).to_owned())))
}

/// Whether a program needs neither an interpreter nor libraries. A program that is not for 64 bits, least significant byte first, is
/// taken for one that does.
pub(crate) fn is_static(path: &Path) -> Result<bool, Error> {
    const INTERPRETER: u32 = 3;
    let cannot = |error: std::io::Error| Error::io("read", path, &error);
    let mut file = std::fs::File::open(path).map_err(cannot)?;
    let mut header = [0; 64];
    file.read_exact(&mut header).map_err(cannot)?;
    let [0x7f, b'E', b'L', b'F', 2, 1, ..] = header else { return Ok(false) };
    // Where the program's headers are, the size of one, and how many there are.
    let place = header[32..40].iter().rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    let size = u16::from_le_bytes([header[54], header[55]]);
    let count = u16::from_le_bytes([header[56], header[57]]);
    file.seek(SeekFrom::Start(place)).map_err(cannot)?;
    let mut one = vec![0; usize::from(size.max(4))];
    for _ in 0..count {
        file.read_exact(&mut one).map_err(cannot)?;
        if u32::from_le_bytes([one[0], one[1], one[2], one[3]]) == INTERPRETER {
            return Ok(false);
        }
    }
    Ok(count > 0)
}

/// The architecture that this program itself runs on.
pub(super) fn own() -> &'static str {
    architecture_name(std::env::consts::ARCH)
}

/// An architecture as bundles call it, from what `uname -m` says: `x86_64` is `amd64`.
pub fn architecture_name(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" | "i386" | "i686" => "386",
        "loongarch64" => "loong64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_is_for_this_very_machine() {
        let own_program = std::env::current_exe().unwrap();
        assert_eq!(architecture(&own_program).unwrap().as_deref(), Some(own()));
    }

    #[test]
    fn a_text_is_for_no_machine() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "#!/bin/sh\necho a long enough text\n").unwrap();
        assert_eq!(architecture(file.path()).unwrap(), None);
    }
}
