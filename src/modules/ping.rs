//! `ping`: whether a host can be reached and used.
