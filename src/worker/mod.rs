//! One piece of work of the operator in a process of its own: a look at the hosts, or a Run. The process may end at any moment, and
//! another one resumes it. Knows neither what else the operator does, nor a command line.

mod backup;
mod look;
mod record;
mod run;

pub use look::look_at_hosts;
pub use record::{HEARTBEAT, INTERRUPTED, RunRecord, SILENCE};
pub use run::{LOCKED_BY_ITSELF, RunResult, RunWork, carry_out_run};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A time as the API has it, in whole seconds.
pub fn time_text(time: OffsetDateTime) -> String {
    let whole = time.replace_nanosecond(0).unwrap_or(time);
    whole.format(&Rfc3339).expect("the years 0 to 9999 have a text")
}
