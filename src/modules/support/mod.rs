//! What modules share: no module is here.

pub(in crate::modules) mod accounts;
pub mod arguments;
pub mod async_job;
pub(in crate::modules) mod execution;
pub(in crate::modules) mod file_arguments;
pub(in crate::modules) mod file_attributes;
pub(in crate::modules) mod file_diff;
pub(in crate::modules) mod file_digest;
pub(in crate::modules) mod file_edit;
pub(in crate::modules) mod file_labels;
pub(in crate::modules) mod file_mode;
pub(in crate::modules) mod file_write;
pub(in crate::modules) mod host_copy;
pub(in crate::modules) mod host_links;
pub(in crate::modules) mod host_path;
pub(in crate::modules) mod host_tree;
pub(in crate::modules) mod name_pattern;
pub mod own;
pub(in crate::modules) mod python_regex;
pub mod question;
pub(in crate::modules) mod stat_fields;
#[cfg(test)]
pub(in crate::modules) mod testing;
pub(in crate::modules) mod vault_file;
pub(in crate::modules) mod web;
pub(in crate::modules) mod x509;
