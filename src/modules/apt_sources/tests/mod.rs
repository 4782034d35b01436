//! Both modules, on a host whose apt uses a separate directory.

mod deb822;
mod repository;
