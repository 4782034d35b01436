//! Which older backups are kept.

use std::time::Duration;

use clap::Args;

use super::backups::parse_age;
use crate::cli::recording::StartedCommand;
use crate::deployment::backups::Retention;

/// Older backups that no option wants are removed, after the new one is complete.
#[derive(Debug, Args)]
pub(super) struct RetentionArgs {
    /// How many backups to keep in each place (default: all). Older ones are removed after the new one is complete, unless another --keep
    /// option wants them
    #[arg(long, requires = "places", value_name = "N")]
    keep: Option<usize>,
    /// Keep those that are at most so much older than the one before the new one, such as 90m, 26h or 7d
    #[arg(long, requires = "places", value_name = "AGE", value_parser = parse_age)]
    keep_within: Option<Duration>,
    /// Keep the newest backup of each of the last N hours that have one, in UTC
    #[arg(long, requires = "places", value_name = "N")]
    keep_hourly: Option<usize>,
    /// Keep the newest backup of each of the last N days that have one, in UTC
    #[arg(long, requires = "places", value_name = "N")]
    keep_daily: Option<usize>,
    /// Keep the newest backup of each of the last N weeks that have one, in UTC; a week begins on Monday
    #[arg(long, requires = "places", value_name = "N")]
    keep_weekly: Option<usize>,
    /// Keep the newest backup of each of the last N months that have one, in UTC
    #[arg(long, requires = "places", value_name = "N")]
    keep_monthly: Option<usize>,
    /// Keep the newest backup of each of the last N years that have one, in UTC
    #[arg(long, requires = "places", value_name = "N")]
    keep_yearly: Option<usize>,
}

impl RetentionArgs {
    pub(super) fn retention(&self) -> Retention {
        Retention {
            last: self.keep,
            within: self.keep_within,
            hourly: self.keep_hourly,
            daily: self.keep_daily,
            weekly: self.keep_weekly,
            monthly: self.keep_monthly,
            yearly: self.keep_yearly,
        }
    }

    /// The command with these options, as it is recorded.
    pub(super) fn of_command(&self, command: StartedCommand) -> StartedCommand {
        command
            .option("--keep", self.keep)
            .option("--keep-within", self.keep_within.map(|age| format!("{}s", age.as_secs())))
            .option("--keep-hourly", self.keep_hourly)
            .option("--keep-daily", self.keep_daily)
            .option("--keep-weekly", self.keep_weekly)
            .option("--keep-monthly", self.keep_monthly)
            .option("--keep-yearly", self.keep_yearly)
    }
}
