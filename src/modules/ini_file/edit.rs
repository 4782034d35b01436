//! The text of an INI file with an option as it is to be.

use crate::modules::file_edit::{bare, split_lines};

/// What is wanted, in the characters of the file.
pub(super) struct DesiredOption {
    /// None: what is before the first section.
    pub section: Option<String>,
    pub conditions: Vec<Condition>,
    pub option: Option<String>,
    pub values: Vec<String>,
    pub present: bool,
    pub exclusive: bool,
    pub style: IniStyle,
}

/// What the section has that is meant.
pub(super) struct Condition {
    pub option: String,
    pub values: Vec<String>,
}

#[derive(Clone, Copy)]
pub(super) struct IniStyle {
    pub no_extra_spaces: bool,
    pub ignore_spaces: bool,
    pub allow_no_value: bool,
    pub modify_inactive_option: bool,
}

impl Condition {
    pub(super) fn adapt(&self, adapt: impl Fn(&str) -> String) -> Condition {
        Condition { option: adapt(&self.option), values: self.values.iter().map(|value| adapt(value)).collect() }
    }

    fn holds(&self, lines: &[String]) -> bool {
        let found: Vec<&str> =
            lines.iter().filter_map(|line| find_option(&self.option, line, false)).map(|found| found.value).collect();
        match self.values.is_empty() {
            true => !found.is_empty(),
            false => self.values.iter().all(|value| found.contains(&value.as_str())),
        }
    }
}

impl DesiredOption {
    /// The text as it is to be, None if it stays; and Ansible's word for what was done.
    pub(super) fn applied(&self, text: &str) -> (Option<String>, &'static str) {
        // A mark of the encoding is no part of the first line; in a text that is not UTF-8 it is three characters.
        let mark = ["\u{feff}", "\u{ef}\u{bb}\u{bf}"].into_iter().find(|mark| text.starts_with(mark)).unwrap_or("");
        let (edited, message) = self.edited(&text[mark.len()..]);
        (edited.map(|edited| format!("{mark}{edited}")), message)
    }

    fn edited(&self, text: &str) -> (Option<String>, &'static str) {
        let mut all = split_lines(text);
        let ending = line_end(text);
        if all.is_empty() {
            all.push(ending.to_owned());
        }
        let mut changed = false;
        if let Some(last) = all.last_mut().filter(|last| !last.ends_with('\n')) {
            last.push_str(ending);
            changed = true;
        }
        let before = all.clone();
        let message = match (self.section(&all), self.present) {
            (Some((start, end)), true) => {
                let mut body: Vec<Line> = all.drain(start..end).map(Line::of).collect();
                let message = self.put(&mut body, ending);
                all.splice(start..start, body.into_iter().map(|line| line.text));
                message
            }
            (Some((start, end)), false) => {
                let kept = self.kept(&all[start..end]);
                let whole = self.option.is_none();
                let start = if whole && self.section.is_some() { start - 1 } else { start };
                all.splice(start..end, kept);
                if whole { "section removed" } else { "option changed" }
            }
            (None, true) => self.add(&mut all, ending),
            (None, false) => "OK",
        };
        if all == before {
            return (changed.then(|| all.concat()), "OK");
        }
        (Some(all.concat()), message)
    }

    /// The lines of the section that is meant, without its header.
    fn section(&self, all: &[String]) -> Option<(usize, usize)> {
        let is_header = |line: &String| line.starts_with('[');
        let end = |start: usize| all[start..].iter().position(is_header).map_or(all.len(), |length| start + length);
        let Some(name) = &self.section else { return Some((0, end(0))) };
        let named = all.iter().enumerate().filter(|(_, line)| is_named(line, name.trim()));
        let bodies = named.map(|(at, _)| (at + 1, end(at + 1)));
        let mut meant = bodies.filter(|(start, end)| self.conditions.iter().all(|it| it.holds(&all[*start..*end])));
        meant.next()
    }

    /// What is left of a section when the option is not to be there.
    fn kept(&self, body: &[String]) -> Vec<String> {
        let Some(option) = &self.option else { return Vec::new() };
        let goes = |line: &&String| {
            find_option(option, line, false)
                .is_some_and(|found| self.exclusive || self.values.iter().any(|it| it == found.value))
        };
        body.iter().filter(|line| !goes(line)).cloned().collect()
    }

    /// Puts the option into a section that is there.
    fn put(&self, body: &mut Vec<Line>, end: &str) -> &'static str {
        let Some(option) = &self.option else { return "OK" };
        let read =
            |line: &str| find_option(option, line, self.style.modify_inactive_option).map(|it| it.value.to_owned());
        let bare_option = format!("{option}{end}");
        let mut message = "OK";
        let mut values = self.values.clone();
        let mut stands_bare = false;
        // Lines that have a value that is wanted.
        for line in body.iter_mut() {
            let Some(found) = read(&line.text) else { continue };
            let new = match values.iter().position(|value| *value == found) {
                Some(at) => {
                    values.remove(at);
                    if found.is_empty() && self.style.allow_no_value {
                        None
                    } else {
                        Some(self.line(option, &found, end))
                    }
                }
                None if self.values.is_empty() && self.style.allow_no_value => None,
                None => continue,
            };
            stands_bare |= new.is_none();
            self.replace(line, new.unwrap_or_else(|| bare_option.clone()), option, &mut message);
            if self.values.is_empty() {
                break;
            }
        }
        // All others take the values that are left, or go.
        if self.exclusive && !self.style.allow_no_value {
            for line in body.iter_mut().filter(|line| !line.seen && read(&line.text).is_some()) {
                if values.is_empty() {
                    break;
                }
                let new = self.line(option, &values.remove(0), end);
                self.replace(line, new, option, &mut message);
            }
            let before = body.len();
            body.retain(|line| line.seen || find_option(option, &line.text, false).is_none());
            if body.len() < before {
                message = "option changed";
            }
        }
        let bare_is_missing = self.values.is_empty() && self.style.allow_no_value && !stands_bare;
        let mut new: Vec<String> = values.iter().map(|value| self.line(option, value, end)).collect();
        new.extend(bare_is_missing.then_some(bare_option));
        if !new.is_empty() {
            // Behind the last line that says something.
            let at = body.iter().rposition(|line| !is_idle(&line.text)).map_or(0, |at| at + 1);
            body.splice(at..at, new.into_iter().map(Line::of));
            message = "option added";
        }
        message
    }

    /// Adds the section at the end.
    fn add(&self, all: &mut Vec<String>, end: &str) -> &'static str {
        all.extend(self.section.iter().map(|name| format!("[{name}]{end}")));
        let mut values = self.values.clone();
        for condition in &self.conditions {
            if Some(&condition.option) == self.option.as_ref() {
                let more = condition.values.iter().filter(|value| !self.exclusive && !self.values.contains(value));
                values.extend(more.cloned());
            } else if condition.values.is_empty() {
                all.extend(self.style.allow_no_value.then(|| format!("{}{end}", condition.option)));
            } else {
                all.extend(condition.values.iter().map(|value| self.line(&condition.option, value, end)));
            }
        }
        let Some(option) = &self.option else { return "only section added" };
        match values.is_empty() {
            true => all.push(format!("{option}{end}")),
            false => all.extend(values.iter().map(|value| self.line(option, value, end))),
        }
        "section and option added"
    }

    fn line(&self, option: &str, value: &str, end: &str) -> String {
        let sign = if self.style.no_extra_spaces { "=" } else { " = " };
        format!("{option}{sign}{value}{end}")
    }

    fn replace(&self, line: &mut Line, new: String, option: &str, message: &mut &'static str) {
        line.seen = true;
        let same = match find_option(option, &line.text, false) {
            Some(active) if self.style.ignore_spaces => {
                find_option(option, &new, false).is_some_and(|new| new.value == active.value)
            }
            _ => bare(&line.text) == bare(&new),
        };
        if !same {
            line.text = new;
            *message = "option changed";
        }
    }
}

struct Line {
    text: String,
    /// It is as it should be.
    seen: bool,
}

impl Line {
    fn of(text: String) -> Line {
        Line { text, seen: false }
    }
}

const BLANKS: [char; 2] = [' ', '\t'];

struct Found<'a> {
    value: &'a str,
}

/// The value that a line gives an option, empty if it has none; with `inactive` also in a comment.
fn find_option<'a>(option: &str, line: &'a str, inactive: bool) -> Option<Found<'a>> {
    let option = option.trim_start_matches(BLANKS);
    let line = bare(line).trim_start_matches(BLANKS);
    let given = |line: &'a str| {
        let rest = line.strip_prefix(option)?.trim_start_matches(BLANKS);
        match rest.is_empty() {
            true => Some(Found { value: "" }),
            false => Some(Found { value: rest.strip_prefix('=')?.trim_start_matches(BLANKS) }),
        }
    };
    // First unchanged: the option itself may begin with a comment character.
    given(line).or_else(|| given(line.strip_prefix(['#', ';']).filter(|_| inactive)?.trim_start_matches(BLANKS)))
}

/// What ends most lines of a text.
fn line_end(text: &str) -> &'static str {
    let (all, with_return) = (text.matches('\n').count(), text.matches("\r\n").count());
    if with_return * 2 > all { "\r\n" } else { "\n" }
}

fn is_named(line: &str, name: &str) -> bool {
    let rest = line.strip_prefix('[').and_then(|rest| rest.trim_start().strip_prefix(name));
    rest.is_some_and(|rest| rest.trim_start().starts_with(']'))
}

/// Whether a line is blank or a comment.
fn is_idle(line: &str) -> bool {
    let text = bare(line).trim_start_matches([' ', '\t']);
    text.is_empty() || text.starts_with(['#', ';'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired(option: &str, values: &[&str]) -> DesiredOption {
        DesiredOption {
            section: Some("s".into()),
            conditions: Vec::new(),
            option: Some(option.into()).filter(|option: &String| !option.is_empty()),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            present: true,
            exclusive: true,
            style: IniStyle {
                no_extra_spaces: false,
                ignore_spaces: false,
                allow_no_value: false,
                modify_inactive_option: true,
            },
        }
    }

    /// The text afterwards, and the word for it; nothing may be left to do.
    fn edited(desired: &DesiredOption, text: &str) -> (String, &'static str) {
        let (edited, message) = desired.applied(text);
        let edited = edited.unwrap_or_else(|| text.to_owned());
        assert_eq!(desired.applied(&edited), (None, "OK"), "again: {edited:?}");
        (edited, message)
    }

    #[test]
    fn an_option_goes_behind_the_last_line_that_says_something() {
        let text = "a=1\n[s]\nx = 1\n\n# end\n\n[t]\nk = 5\n";
        let (with, message) = edited(&desired("k", &["2"]), text);
        assert_eq!((with.as_str(), message), ("a=1\n[s]\nx = 1\nk = 2\n\n# end\n\n[t]\nk = 5\n", "option added"));
        assert_eq!(edited(&desired("k", &["2"]), "[ s ]").0, "[ s ]\nk = 2\n");
        assert_eq!(edited(&desired("k", &["2"]), ""), ("\n[s]\nk = 2\n".into(), "section and option added"));
        assert_eq!(
            edited(&DesiredOption { section: None, ..desired("k", &["2"]) }, "a=1\n[s]\n").0,
            "a=1\nk = 2\n[s]\n"
        );
    }

    #[test]
    fn a_mark_of_the_encoding_stays_before_the_first_line() {
        for mark in ["\u{feff}", "\u{ef}\u{bb}\u{bf}"] {
            let (text, message) = edited(&desired("k", &["2"]), &format!("{mark}[s]\nk = 1\n"));
            assert_eq!((text, message), (format!("{mark}[s]\nk = 2\n"), "option changed"));
            let first = DesiredOption { section: None, ..desired("k", &["2"]) };
            assert_eq!(edited(&first, &format!("{mark}k = 1\n")).0, format!("{mark}k = 2\n"));
        }
    }

    #[test]
    fn lines_end_as_those_of_the_file() {
        let text = "[s]\r\nx = 1\r\nk = 1\r\n";
        assert_eq!(edited(&desired("k", &["2"]), text).0, "[s]\r\nx = 1\r\nk = 2\r\n");
        assert_eq!(edited(&desired("k", &["1", "3"]), text).0, format!("{text}k = 3\r\n"));
        let other = DesiredOption { section: Some("t".into()), ..desired("k", &["2"]) };
        assert_eq!(edited(&other, text.trim_end()).0, format!("{text}[t]\r\nk = 2\r\n"));
        assert_eq!(edited(&desired("k", &["2"]), "[s]\nx = 1\r\n").0, "[s]\nx = 1\r\nk = 2\n");
        let mut bare = desired("b", &[]);
        bare.style.allow_no_value = true;
        assert_eq!(edited(&bare, text).0, format!("{text}b\r\n"));
    }

    #[test]
    fn an_option_is_found_again_whatever_it_begins_with() {
        for option in [" k", "\tk", "#k", ";k", "# k"] {
            for exclusive in [true, false] {
                let desired = DesiredOption { exclusive, ..desired(option, &["2"]) };
                assert_eq!(edited(&desired, "[s]\nx = 1\n").0, format!("[s]\nx = 1\n{option} = 2\n"));
            }
            let gone = DesiredOption { present: false, ..desired(option, &[]) };
            assert_eq!(edited(&gone, &format!("[s]\n{option} = 2\nx = 1\n")).0, "[s]\nx = 1\n");
        }
    }

    #[test]
    fn what_was_a_comment_is_replaced_unless_the_option_forbids_it() {
        let text = "[s]\n;k = 1\n k=3\n";
        assert_eq!(edited(&desired("k", &["2"]), text), ("[s]\nk = 2\n".into(), "option changed"));
        let mut active = desired("k", &["2"]);
        active.style.modify_inactive_option = false;
        assert_eq!(edited(&active, text).0, "[s]\n;k = 1\nk = 2\n");
    }

    #[test]
    fn several_values_are_several_lines() {
        let text = "[s]\nk = 1\nk = 2\nk = 3\n";
        assert_eq!(edited(&desired("k", &["2", "4"]), text).0, "[s]\nk = 4\nk = 2\n");
        let more = DesiredOption { exclusive: false, ..desired("k", &["2", "4"]) };
        assert_eq!(edited(&more, text).0, "[s]\nk = 1\nk = 2\nk = 3\nk = 4\n");
        let fewer = DesiredOption { exclusive: false, present: false, ..desired("k", &["2"]) };
        assert_eq!(edited(&fewer, text), ("[s]\nk = 1\nk = 3\n".into(), "option changed"));
    }

    #[test]
    fn blanks_may_not_matter() {
        let mut desired = desired("k", &["2"]);
        assert_eq!(edited(&desired, "[s]\nk=2\n").0, "[s]\nk = 2\n");
        desired.style.ignore_spaces = true;
        assert_eq!(desired.applied("[s]\nk=2\n"), (None, "OK"));
        desired.style.no_extra_spaces = true;
        assert_eq!(edited(&desired, "[s]\nk=1\n").0, "[s]\nk=2\n");
    }

    #[test]
    fn an_option_may_have_no_value() {
        let mut desired = desired("k", &[]);
        desired.style.allow_no_value = true;
        assert_eq!(edited(&desired, "[s]\nx\n").0, "[s]\nx\nk\n");
        assert_eq!(edited(&desired, "[s]\nk = 1\n").0, "[s]\nk\n");
        desired.option = None;
        assert_eq!(edited(&desired, "x\n"), ("x\n[s]\n".into(), "only section added"));
    }

    #[test]
    fn a_section_goes_with_all_that_is_in_it() {
        let gone = DesiredOption { present: false, ..desired("", &[]) };
        assert_eq!(edited(&gone, "a\n[s]\nk\n[t]\n"), ("a\n[t]\n".into(), "section removed"));
        assert_eq!(gone.applied("[t]\n"), (None, "OK"));
        let option = DesiredOption { present: false, ..desired("k", &[]) };
        assert_eq!(edited(&option, "[s]\n#k = 1\nk = 1\nkk = 1\n").0, "[s]\n#k = 1\nkk = 1\n");
    }

    #[test]
    fn one_of_several_sections_is_known_by_what_it_has() {
        let text = "[s]\nn = 1\nk = 1\n[s]\nn = 2\nk = 1\n";
        let condition = |value: &str| vec![Condition { option: "n".into(), values: vec![value.into()] }];
        let second = DesiredOption { conditions: condition("2"), ..desired("k", &["5"]) };
        assert_eq!(edited(&second, text).0, "[s]\nn = 1\nk = 1\n[s]\nn = 2\nk = 5\n");
        let third = DesiredOption { conditions: condition("3"), ..desired("k", &["5"]) };
        assert_eq!(edited(&third, text).0, format!("{text}[s]\nn = 3\nk = 5\n"));
    }
}
