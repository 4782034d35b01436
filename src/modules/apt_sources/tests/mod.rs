//! Both modules, on a host whose apt looks into a directory of its own.

mod deb822;
mod repository;
