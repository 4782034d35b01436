//! Seconds, seconds of CPU and memory, of this process and of the program. On a busy machine the CPU's are the steadier.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The middle one.
pub(crate) fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Seconds of CPU that this process (`children`: those that it started and that ended) has taken so far.
pub(crate) fn cpu(children: bool) -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("there is /proc");
    let fields = stat.rsplit_once(')').expect("a name stands in brackets").1;
    let ticks = fields.split_whitespace().skip(if children { 13 } else { 11 }).take(2);
    // A tick is 1/100 s on every Linux that this runs on.
    ticks.map(|ticks| ticks.parse::<f64>().expect("ticks are a number") / 100.0).sum()
}

/// The most memory that this process has held so far, MiB.
pub(crate) fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel tells the peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number of KiB") / 1024
}

/// The seconds from the program's start to its end; what it says goes nowhere. It must succeed.
pub(crate) fn seconds_of_program(arguments: &[OsString]) -> f64 {
    let begun = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    let status = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let seconds = begun.elapsed().as_secs_f64();
    assert!(status.as_ref().is_ok_and(|status| status.success()), "windlass {arguments:?}: {status:?}");
    seconds
}
