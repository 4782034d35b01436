//! Items of a loop on one host: what each costs must not grow with their number.

use std::path::Path;
use std::time::Instant;

use crate::hosts::{Run, play};
use crate::measure::{cpu, peak};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// Loops of two kinds: an item that stays on the controller, and one that is a request to the host.
const TASKS: [(&str, &str); 2] = [
    ("debug", "debug: {msg: \"item {{ item }} of {{ inventory_hostname }}\"}"),
    ("command", "command: echo {{ item }}"),
];

pub(crate) fn run(scratch: &Path) {
    for (name, task) in TASKS {
        for size in SIZES {
            let loop_task =
                format!("    - {task}\n      loop: \"{{{{ range({size}) | list }}}}\"\n      register: all\n");
            let run = Run::load(scratch, &play(&loop_task), 1);
            let (begun, before) = (Instant::now(), cpu(false));
            let results = run.go();
            let each = begun.elapsed().as_secs_f64() / size as f64;
            let cpu = (cpu(false) - before) / size as f64;
            assert_eq!(results, size + 1, "every item has a result, and the task has one");
            println!(
                "loops: {size} items of {name}: {:.1} us each, {:.1} us of CPU; {} MiB",
                each * 1e6,
                cpu * 1e6,
                peak()
            );
        }
    }
}
