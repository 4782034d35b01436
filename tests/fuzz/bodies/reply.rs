//! An input as what a host answers to a session.
//!
//! The first byte is the verb that is asked, by its place in the alphabet. A `!` after it stands for a right answer to the
//! first request, which asks who we are. What follows is one answer after the other, with `%%` between them; in them `@` is
//! the session's nonce, `#` the number of the request under way and `^` what begins a section of facts. Then the host hangs
//! up.

use std::sync::Arc;
use std::time::Duration;

use windlass::remote::lock::Record;
use windlass::remote::{Attributes, Command, Digest, Error, ExpectedDigest, Links, Remote, Sessions};

use super::Scratch;
use super::host::Host;

/// The right answer to the first request.
const GREETING: &[u8] = b"\n@\nroot\0/root\0/dev/shm/.windlass.x\0\n@.#|\n\n@.#=0\n";

pub(super) fn run(input: &[u8]) {
    let Some((verb, rest)) = input.split_first() else { return };
    let mut answers = Vec::new();
    let rest = match rest.strip_prefix(b"!") {
        Some(rest) => {
            answers.push(GREETING.to_vec());
            rest
        }
        None => rest,
    };
    let mut from = 0;
    while let Some(at) = rest[from..].windows(2).position(|two| two == b"%%") {
        answers.push(rest[from..from + at].to_vec());
        from += at + 2;
    }
    answers.push(rest[from..].to_vec());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime can be had");
    runtime.block_on(async {
        let sessions = Sessions::new(Arc::new(Host::new(answers)));
        let limit = Duration::from_secs(20);
        tokio::time::timeout(limit, asked(&sessions, *verb)).await.expect("an answer or the end of it is waited for");
    });
}

async fn asked(sessions: &Arc<Sessions>, verb: u8) {
    let verb = verb.wrapping_sub(b'a');
    let Ok(remote) = Remote::open(sessions, None, &Default::default()).await else { return };
    // Twice: what is left over of one answer must not end the program at the next.
    for _ in 0..2 {
        one(&remote, verb).await.ok();
    }
}

async fn one(remote: &Remote, verb: u8) -> Result<(), Error> {
    let (any, record) = (Attributes::default(), Record { token: 3, run: Some("r1".into()), ..Record::default() });
    let command = Command::shell("echo");
    match verb {
        0 => drop(remote.stat("/x", Links::Keep).await?),
        1 => drop(remote.stat_and_digest("/x", Links::Keep, Digest::Sha256).await?),
        2 => drop(remote.digest("/x", Digest::Md5).await?),
        3 => drop(remote.read_file("/x").await?),
        4 => remote.download("/x", &Scratch::new().0.path().join("x")).await?,
        5 => drop(remote.list_directory("/x").await?),
        6 => drop(remote.query(&command).await?),
        7 => drop(remote.which("x").await?),
        8 => drop(remote.expand_on_host("~x/y").await?),
        9 => drop(remote.facts(&[]).await?),
        10 => drop(remote.job("/x").await?),
        11 => drop(remote.lock("/x").await?),
        12 => drop(remote.claim_lock("/x", &record, None).await?),
        13 => drop(remote.run(&command).await?),
        14 => drop(remote.run(&Command { stdin: Some(vec![0; 20_000]), ..command }).await?),
        15 => drop(remote.write_and_stat("/x", b"some\n", &any).await?),
        16 => drop(remote.write_and_stat("/x", &[b'x'; 40_000], &any).await?),
        17 => {
            let scratch = Scratch::new();
            let file = scratch.file("x", &[b'x'; 40_000]);
            drop(remote.upload(&file, ExpectedDigest::Sha1("da39"), "/x", &any, &|_, _| ()).await?);
        }
        18 => drop(remote.back_up("/x").await?),
        19 => drop(remote.temporary_directory().await?),
        20 => remote.make_directory("/x/y", &any).await?,
        _ => remote.remove("/x").await?,
    }
    Ok(())
}
