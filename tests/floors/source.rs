//! Which part of a Rust file is the program.

/// A Rust file without the tests at its foot. `mod tests;` ends nothing: it stands near the top, and its tests have a file of their own.
pub(crate) fn without_tests(text: &str) -> &str {
    let starts = ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\npub(crate) mod tests {"];
    let end = starts.iter().filter_map(|start| text.find(start)).min().unwrap_or(text.len());
    &text[..end]
}

#[test]
fn only_tests_at_the_foot_are_cut_off() {
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {\n    b\n}\n"), "a\n");
    let near_the_top = "#[cfg(test)]\nmod tests;\n\nfn a() {}\n";
    assert_eq!(without_tests(near_the_top), near_the_top);
}
