//! Bundles from what projects publish: downloads, registries, images and archives, each checked against a digest.

mod blobs;
mod create;
mod credentials;
mod fetch;
mod image;
mod layout;
mod members;
mod oci;
mod own_image;
mod reference;
mod registry;

pub use create::{Created, KnownDigests, Order, SourceRow, create};
pub use fetch::{Client, Progress};
pub use own_image::OwnImage;
