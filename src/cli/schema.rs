//! `windlass schema`: JSON Schema of what people write, for editors.

use clap::{Args, ValueEnum};

use super::{CliError, ExitCode};
use crate::schema;

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// What to describe
    #[arg(value_enum, value_name = "KIND")]
    kind: Kind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// Playbooks
    Playbook,
    /// Files of tasks or handlers
    Tasks,
    /// meta/argument_specs.yml of a role
    ArgumentSpecs,
    /// meta/main.yml of a role
    Meta,
    /// Inventories in YAML
    Inventory,
    /// Files of variables: group_vars, host_vars, defaults, vars
    Vars,
}

/// Prints the schema.
pub(super) fn print_schema(args: &SchemaArgs) -> Result<ExitCode, CliError> {
    let schema = match args.kind {
        Kind::Playbook => schema::playbook_schema(),
        Kind::Tasks => schema::tasks(),
        Kind::ArgumentSpecs => schema::argument_specs(),
        Kind::Meta => schema::meta(),
        Kind::Inventory => schema::inventory(),
        Kind::Vars => schema::vars(),
    };
    super::print(format!("{schema:#}\n"))?;
    Ok(ExitCode::Ok)
}
