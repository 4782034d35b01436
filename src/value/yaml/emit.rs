//! Values as YAML, in the style of PyYAML's emitter.
