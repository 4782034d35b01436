//! The rules, one file each. To add one: its file with a `RULE`, its `mod` line, its line in [`RULES`].

mod command_not_module;
mod failed_when_false;
mod file_mode_missing;
mod file_mode_number;
mod file_mode_open;
mod handler_unused;
mod ignore_errors;
mod load;
mod load_warning;
mod no_log_missing;
mod notify_unknown;
mod register_unused;
mod state_latest;
mod task_unnamed;
mod variable_unused;

use super::Rule;

/// The rule for the errors of loading; it cannot be allowed.
pub const LOAD: &str = load::RULE.id;

/// Every rule, sorted by id.
pub static RULES: &[Rule] = &[
    command_not_module::RULE,
    failed_when_false::RULE,
    file_mode_missing::RULE,
    file_mode_number::RULE,
    file_mode_open::RULE,
    handler_unused::RULE,
    ignore_errors::RULE,
    load::RULE,
    load_warning::RULE,
    no_log_missing::RULE,
    notify_unknown::RULE,
    register_unused::RULE,
    state_latest::RULE,
    task_unnamed::RULE,
    variable_unused::RULE,
];

#[cfg(test)]
mod tests {
    use super::RULES;

    #[test]
    fn the_list_is_sorted_and_every_rule_is_explained() {
        assert!(RULES.windows(2).all(|pair| pair[0].id < pair[1].id));
        for rule in RULES {
            assert!(rule.about.ends_with('.') && rule.about.len() > 20, "{}", rule.id);
            assert!(rule.id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", rule.id);
        }
    }
}
