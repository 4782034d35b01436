//! `debug`: prints a message or a variable.
