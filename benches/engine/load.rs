//! Loading and checking a large project, by the program itself: from its start to its end.

use std::path::Path;

use crate::measure::{cpu, median, seconds_of_program};
use crate::project::{ALL_FILES, ALL_TASKS, write};

const RUNS: usize = 15;

pub(crate) fn run(scratch: &Path) {
    let (playbook, inventory) = write(scratch).expect("the scratch directory takes a project");
    let arguments = ["playbook".into(), "--syntax-check".into(), "-i".into(), inventory.into(), playbook.into()];
    let before = cpu(true);
    let seconds = median((0..RUNS).map(|_| seconds_of_program(&arguments)).collect());
    let cpu = (cpu(true) - before) / RUNS as f64;
    println!(
        "load: {ALL_FILES} files, {ALL_TASKS} tasks: {:.0} ms, {:.0} ms of CPU (aim: 150)",
        seconds * 1e3,
        cpu * 1e3
    );
}
