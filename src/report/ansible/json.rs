//! Results as the JSON that Python writes: keys sorted, a blank behind every comma and colon or a line for each entry.

use std::io;

use serde::Serialize;
use serde_json::Value as Plain;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use crate::report::paint::plain_json;

/// The value on one line, or with four blanks for each step inwards. A terminal obeys nothing in it.
pub(super) fn dumped(value: &Plain, indented: bool) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    let mut out = Vec::new();
    let written = match indented {
        true => value.serialize(&mut Serializer::with_formatter(
            &mut out,
            AnsiblePrettyFormatter(PrettyFormatter::with_indent(b"    ")),
        )),
        false => value.serialize(&mut Serializer::with_formatter(&mut out, AnsibleFormatter { comma: b", " })),
    };
    match written {
        Ok(()) => plain_json(&String::from_utf8_lossy(&out)).into_owned(),
        Err(_) => value.to_string(),
    }
}

/// As Python writes it with an indentation of 0 whose line ends were taken away: no blank behind commas.
pub(super) fn on_one_line(value: &Plain) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    let mut out = Vec::new();
    match value.serialize(&mut Serializer::with_formatter(&mut out, AnsibleFormatter { comma: b"," })) {
        Ok(()) => plain_json(&String::from_utf8_lossy(&out)).into_owned(),
        Err(_) => value.to_string(),
    }
}

/// As Python writes it with an indentation of 1, without the line ends.
pub(super) fn without_line_ends(value: &Plain) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    let mut out = Vec::new();
    let formatter = AnsiblePrettyFormatter(PrettyFormatter::with_indent(b" "));
    match value.serialize(&mut Serializer::with_formatter(&mut out, formatter)) {
        Ok(()) => plain_json(&String::from_utf8_lossy(&out)).replace('\n', ""),
        Err(_) => value.to_string(),
    }
}

/// `{"a": 1, "b": [1, 2]}`
struct AnsibleFormatter {
    comma: &'static [u8],
}

impl Formatter for AnsibleFormatter {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(self.comma) }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(self.comma) }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, number: f64) -> io::Result<()> {
        out.write_all(float(number).as_bytes())
    }
}

struct AnsiblePrettyFormatter<'a>(PrettyFormatter<'a>);

impl Formatter for AnsiblePrettyFormatter<'_> {
    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, number: f64) -> io::Result<()> {
        out.write_all(float(number).as_bytes())
    }
}

/// As Python's `repr`: exponents have a sign and two digits, and begin at 16.
fn float(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 || (1e-4..1e16).contains(&size) {
        return format!("{number:?}");
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_at_every_level_and_separated_as_python_does() {
        let value = json!({"b": [1, {"z": null, "a": true}], "a": "ü\n", "c": {}, "d": []});
        assert_eq!(dumped(&value, false), r#"{"a": "ü\n", "b": [1, {"a": true, "z": null}], "c": {}, "d": []}"#);
        let value = json!({"b": [1], "a": {}, "c": []});
        assert_eq!(dumped(&value, true), "{\n    \"a\": {},\n    \"b\": [\n        1\n    ],\n    \"c\": []\n}");
    }

    #[test]
    fn floats_look_as_in_python() {
        let shown: Vec<String> = [1.0, 0.1, 1e16, 1.5e-5, -2.5e20, 0.0, 1e15].map(float).into();
        assert_eq!(shown, ["1.0", "0.1", "1e+16", "1.5e-05", "-2.5e+20", "0.0", "1000000000000000.0"]);
    }
}
