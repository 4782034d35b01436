//! Ranges in host names: `web[01:20]`, `db[a:f]`, `n[1:10:2]`, several in one name.

/// The largest number of names of one range; more is a typing error.
const MOST: usize = 100_000;
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// All names that a name with ranges expands to, in order; a name without a range expands to itself.
///
/// The error is a message for a person, without the place.
pub(super) fn expand_range(name: &str) -> Result<Vec<String>, String> {
    let Some(open) = name.find('[') else {
        return Ok(vec![name.to_owned()]);
    };
    let close = name[open..].find(']').map(|length| open + length);
    let close = close.ok_or_else(|| format!("the range in {name:?} has no closing bracket"))?;
    let (head, tail) = (&name[..open], &name[close + 1..]);
    let tails = expand_range(tail)?;
    let items = items(&name[open + 1..close], name)?;
    if items.len().saturating_mul(tails.len()) > MOST {
        return Err(format!("{name:?} expands to more than {MOST} names"));
    }
    let mut names = Vec::new();
    for item in items {
        names.extend(tails.iter().map(|tail| format!("{head}{item}{tail}")));
    }
    Ok(names)
}

/// What is between the brackets, spelled out.
fn items(range: &str, name: &str) -> Result<Vec<String>, String> {
    let bad = |why: &str| format!("invalid range [{range}] in {name:?}: {why}");
    let bounds: Vec<&str> = range.split(':').collect();
    let (begin, end, step) = match bounds[..] {
        [begin, end] => (begin, end, 1),
        [begin, end, step] => match step.parse::<usize>() {
            Ok(step) if step > 0 => (begin, end, step),
            _ => return Err(bad("the step must be a whole number above 0")),
        },
        _ => return Err(bad("write START:END or START:END:STEP")),
    };
    if end.is_empty() {
        return Err(bad("it has no end"));
    }
    if let (Some(first), Some(last)) = (letter(begin), letter(end)) {
        if first > last {
            return Err(bad("its start is after its end"));
        }
        return Ok(LETTERS[first..=last].chars().step_by(step).map(String::from).collect());
    }
    let begin = if begin.is_empty() { "0" } else { begin };
    let (Some(first), Some(last)) = (number(begin), number(end)) else {
        return Err(bad("both ends must be numbers, or both one letter"));
    };
    // A leading zero asks for numbers of equal width, so the end must show the same width.
    let width = if begin.len() > 1 && begin.starts_with('0') { begin.len() } else { 0 };
    if width > 0 && width != end.len() {
        return Err(bad("with leading zeros, start and end must have the same number of digits"));
    }
    if first > last {
        return Err(bad("its start is after its end"));
    }
    if (last - first) / step as u64 >= MOST as u64 {
        return Err(bad(&format!("it has more than {MOST} names")));
    }
    // Not by the width of a format, which has a bound.
    let padded = |n: u64| {
        let digits = n.to_string();
        format!("{}{digits}", "0".repeat(width.saturating_sub(digits.len())))
    };
    Ok((first..=last).step_by(step).map(padded).collect())
}

/// The position of a lone letter in the order a-z, A-Z.
fn letter(text: &str) -> Option<usize> {
    if text.len() == 1 { LETTERS.find(text) } else { None }
}

fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::expand_range;

    #[test]
    fn a_slip_in_a_number_does_not_make_a_host_of_every_number() {
        assert_eq!(expand_range("h[1:100000]").unwrap().len(), 100_000);
        assert!(expand_range("h[0:99999999999]").unwrap_err().contains("more than 100000 names"));
        assert!(expand_range("h[1:1000]x[1:1000]").unwrap_err().contains("expands to more than 100000 names"));
    }

    #[test]
    fn leading_zeros_keep_their_width() {
        assert_eq!(expand_range("web[08:11].lan").unwrap(), ["web08.lan", "web09.lan", "web10.lan", "web11.lan"]);
        assert_eq!(expand_range("web[8:11]").unwrap(), ["web8", "web9", "web10", "web11"]);
    }

    #[test]
    fn letters_and_steps_and_an_open_begin() {
        assert_eq!(expand_range("db-[a:e:2]").unwrap(), ["db-a", "db-c", "db-e"]);
        assert_eq!(expand_range("n[1:10:4]").unwrap(), ["n1", "n5", "n9"]);
        assert_eq!(expand_range("n[:2]").unwrap(), ["n0", "n1", "n2"]);
        assert_eq!(expand_range("x[y:B]").unwrap(), ["xy", "xz", "xA", "xB"]);
    }

    #[test]
    fn the_first_of_two_ranges_turns_slowest() {
        assert_eq!(expand_range("r[1:2]n[a:b]").unwrap(), ["r1na", "r1nb", "r2na", "r2nb"]);
    }

    #[test]
    fn a_bad_range_says_what_is_wrong() {
        let message = |name: &str| expand_range(name).unwrap_err();
        assert!(message("w[1]").contains("START:END"), "{}", message("w[1]"));
        assert!(message("w[1:]").contains("no end"));
        assert!(message("w[01:100]").contains("the same number of digits"));
        assert!(message("w[5:1]").contains("after its end"));
        assert!(message("w[c:a]").contains("after its end"));
        assert!(message("w[a:5]").contains("both ends"));
        assert!(message("w[1:5:0]").contains("step"));
        assert!(message("w[1:5").contains("closing bracket"));
    }
}
