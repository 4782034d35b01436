//! Archives: what is taken from them, and what is refused.

use std::io::Write;

use super::*;

/// An archive with these members: their kind, their path, their content or target.
fn archive(members: &[(tar::EntryType, &str, &str)]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(file.reopen().unwrap(), Default::default()));
    for (kind, path, text) in members {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o755);
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        let content = if *kind == tar::EntryType::Regular { *text } else { "" };
        if content.is_empty() {
            header.as_old_mut().linkname[..text.len()].copy_from_slice(text.as_bytes());
        }
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap();
    file
}

fn taken(members: &[(tar::EntryType, &str, &str)], wanted: &[&str]) -> Result<Vec<String>, String> {
    let file = archive(members);
    let to = tempfile::tempdir().unwrap();
    let wanted: Vec<String> = wanted.iter().map(|wanted| (*wanted).to_owned()).collect();
    let taken = extract_members(file.path(), &wanted, to.path(), "x.tgz").map_err(|error| error.message)?;
    let described =
        |taken: &ExtractedMember| format!("{}={}", taken.name, std::fs::read_to_string(&taken.path).unwrap());
    Ok(taken.iter().map(described).collect())
}

use tar::EntryType::{Block, Char, Directory, Fifo, Link, Regular, Symlink};

#[test]
fn members_are_taken_by_the_end_of_their_path() {
    let members =
        [(Directory, "d/", ""), (Regular, "d/etcd", "1"), (Regular, "d/x-etcd", "2"), (Regular, "./top", "3")];
    assert_eq!(taken(&members, &["etcd", "top"]).unwrap(), ["etcd=1", "top=3"]);
    assert_eq!(taken(&members, &["etcdctl"]).unwrap_err(), "x.tgz has no etcdctl");
    let definitions =
        [(Regular, "k/crds/b/a.yaml", "1"), (Regular, "k/crds/README", "2"), (Regular, "other.yaml", "3")];
    assert_eq!(taken(&definitions, &["crds/"]).unwrap(), ["crds/b/a.yaml=1"]);
}

#[test]
fn hostile_members_are_refused() {
    let refused = |member| taken(&[member, (Regular, "etcd", "1")], &["etcd"]).unwrap_err();
    assert_eq!(refused((Regular, "../up", "x")), "x.tgz: \"../up\" points outside the archive");
    assert_eq!(refused((Regular, "a/../../up", "x")), "x.tgz: \"a/../../up\" points outside the archive");
    assert_eq!(refused((Regular, "/etc/up", "x")), "x.tgz: \"/etc/up\" points outside the archive");
    assert_eq!(refused((Symlink, "l", "/etc")), "x.tgz: the link l points outside the archive: /etc");
    assert_eq!(refused((Symlink, "d/l", "../../x")), "x.tgz: the link d/l points outside the archive: ../../x");
    assert_eq!(refused((Link, "l", "../x")), "x.tgz: the link l points outside the archive: ../x");
    for kind in [Char, Block, Fifo] {
        assert_eq!(refused((kind, "dev", "")), "x.tgz: dev is a device or another special file");
    }
    assert_eq!(refused((Regular, "d/etcd", "2")), "x.tgz has etcd more than once");
    assert_eq!(
        taken(&[(Symlink, "etcd", "real")], &["etcd"]).unwrap_err(),
        "x.tgz: etcd is a link to real, not a file"
    );
}

#[test]
fn a_bomb_is_refused_before_it_unpacks() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(file.reopen().unwrap(), Default::default()));
    let mut header = tar::Header::new_gnu();
    let size = 200 << 20;
    header.set_size(size);
    builder.append_data(&mut header, "etcd", std::io::repeat(0).take(size)).unwrap();
    builder.into_inner().unwrap().finish().unwrap();
    let to = tempfile::tempdir().unwrap();
    let message = extract_members(file.path(), &["etcd".to_owned()], to.path(), "x.tgz").err().unwrap().message;
    assert!(message.contains("unpacks to more than windlass accepts"), "{message}");
    // A name that is as long as the whole archive is a bomb, too.
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file.reopen().unwrap(), Default::default());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(60 << 20);
    header.set_cksum();
    encoder.write_all(header.as_bytes()).unwrap();
    encoder.write_all(&vec![b'a'; 60 << 20]).unwrap();
    encoder.finish().unwrap();
    let message = extract_members(file.path(), &["etcd".to_owned()], to.path(), "x.tgz").err().unwrap().message;
    assert!(message.contains("unpacks to more than windlass accepts"), "{message}");
}

#[test]
fn an_archive_that_ends_too_early_is_refused_wherever_it_ends() {
    let file = archive(&[(Regular, "etcd", &"x".repeat(3000)), (Regular, "other", "y")]);
    let whole = std::fs::read(file.path()).unwrap();
    let cut = tempfile::NamedTempFile::new().unwrap();
    for length in 0..whole.len() {
        std::fs::write(cut.path(), &whole[..length]).unwrap();
        let to = tempfile::tempdir().unwrap();
        assert!(extract_members(cut.path(), &["etcd".to_owned()], to.path(), "x.tgz").is_err(), "{length}");
    }
}
