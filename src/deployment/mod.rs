//! A deployment as a whole: its stages, what each would change, the lock that keeps two runs from it, and the journal of
//! what a run has done. Prints nothing and reads no command line.

pub mod changes;
pub mod contract;
pub mod held;
pub mod holder;
pub mod journal;
pub mod lock;
pub mod observation;
pub mod plan;
pub mod stage;
