//! The tests (`x is defined`). To add one: write `fn name(state: &mut State, args: Args) -> Result<bool, Error>` and
//! its line in [`TESTS`], which is sorted: name, what is said of it, an example, which is tested.

use std::os::unix::fs::FileTypeExt as _;

use minijinja::Error;
use minijinja::value::ValueKind;

use super::args::Args;
use super::args::Test;
use super::conversions::{fail, iterate, kind, to_list, to_text, truthy};
use super::filters::{Url, regex, subset};
use super::versions::version_test;
use super::{operations, python};
use crate::value::doc::LanguageItem;
use crate::value::{Value, vault};

/// Tests that must not get undefined values, by name.
pub(super) static TESTS: &[(LanguageItem, Test)] = &[
    (LanguageItem::new("abs", "Whether a path is absolute.").gives("'/etc' is abs", "True"), |_, args| {
        Ok(path(args)?.starts_with('/'))
    }),
    (
        LanguageItem::new("all", "Whether every item of a list is true.").gives("[true, 1] is all", "True"),
        |_, mut args| Ok(iterate(&args.req("a")?)?.iter().all(Value::is_true)),
    ),
    (
        LanguageItem::new("any", "Whether an item of a list is true.").gives("[false, 1] is any", "True"),
        |_, mut args| Ok(iterate(&args.req("a")?)?.iter().any(Value::is_true)),
    ),
    (LanguageItem::new("callable", "Whether a value can be called.").gives("1 is callable", "False"), |_, mut args| {
        Ok(python::type_name(&args.req("value")?) == "object")
    }),
    (LanguageItem::new("change", "The same as changed.").example("result is change"), |_, args| {
        result(args, "changed")
    }),
    (
        LanguageItem::new("changed", "Whether a task changed something, of its registered result.")
            .gives("{'changed': true} is changed", "True"),
        |_, args| result(args, "changed"),
    ),
    (
        LanguageItem::new(
            "contains",
            "Whether a list has an item, or a text a part. Made for selectattr, where in \
             reads the wrong way round.",
        )
        .takes("value")
        .gives("[1, 2] is contains(2)", "True"),
        |_, mut args| {
            let (seq, value) = (args.req("seq")?, args.req("value")?);
            has(&seq, &value)
        },
    ),
    (
        LanguageItem::new("directory", "Whether a path of the controller is a directory.")
            .gives("'/etc' is directory", "True"),
        |_, args| Ok(std::path::Path::new(&path(args)?).is_dir()),
    ),
    (
        LanguageItem::new("divisibleby", "Whether a number can be divided by another without a remainder.")
            .takes("number")
            .gives("6 is divisibleby(3)", "True"),
        |_, args| remainder(args, None).map(|rest| rest == 0.0),
    ),
    (LanguageItem::new("even", "Whether a whole number is even.").gives("2 is even", "True"), |_, args| {
        remainder(args, Some(2)).map(|rest| rest == 0.0)
    }),
    (
        LanguageItem::new("exists", "Whether a path of the controller exists.").gives("'/etc' is exists", "True"),
        |_, args| Ok(std::path::Path::new(&path(args)?).exists()),
    ),
    (
        LanguageItem::new("failed", "Whether a task failed, of its registered result.")
            .gives("{'failed': true} is failed", "True"),
        |_, args| result(args, "failed"),
    ),
    (LanguageItem::new("failure", "The same as failed.").example("result is failure"), |_, args| {
        result(args, "failed")
    }),
    (
        LanguageItem::new(
            "falsy",
            "Whether a value counts as false: 0, empty, none; with convert_bool also the \
             words no, off and false.",
        )
        .takes("convert_bool=false")
        .gives("'' is falsy", "True"),
        |_, args| truthiness(args).map(|truth| !truth),
    ),
    (
        LanguageItem::new("file", "Whether a path of the controller is a file.").gives("'/etc/passwd' is file", "True"),
        |_, args| Ok(std::path::Path::new(&path(args)?).is_file()),
    ),
    (
        LanguageItem::new("finished", "Whether a task with async has ended, of its registered result.")
            .gives("{'finished': 1} is finished", "True"),
        |_, args| async_result(args, "finished"),
    ),
    (
        LanguageItem::new("ge", "Whether a value is greater than another or equal to it.")
            .takes("other")
            .gives("2 is ge(1)", "True"),
        |_, args| ordered(args, ">="),
    ),
    (
        LanguageItem::new("greaterthan", "The same as gt.").takes("other").gives("2 is greaterthan(1)", "True"),
        |_, args| ordered(args, ">"),
    ),
    (
        LanguageItem::new("gt", "Whether a value is greater than another.").takes("other").gives("2 is gt(1)", "True"),
        |_, args| ordered(args, ">"),
    ),
    (
        LanguageItem::new("in", "Whether a list has a value, or a text a part.")
            .takes("container")
            .gives("1 is in([1, 2])", "True"),
        |_, mut args| {
            let (value, seq) = (args.req("value")?, args.req("seq")?);
            has(&seq, &value)
        },
    ),
    (LanguageItem::new("is_abs", "The same as abs.").gives("'/etc' is is_abs", "True"), |_, args| {
        Ok(path(args)?.starts_with('/'))
    }),
    (LanguageItem::new("is_dir", "The same as directory.").gives("'/etc' is is_dir", "True"), |_, args| {
        Ok(std::path::Path::new(&path(args)?).is_dir())
    }),
    (LanguageItem::new("is_file", "The same as file.").gives("'/etc' is is_file", "False"), |_, args| {
        Ok(std::path::Path::new(&path(args)?).is_file())
    }),
    (LanguageItem::new("is_link", "The same as link.").gives("'/etc' is is_link", "False"), |_, args| {
        Ok(std::path::Path::new(&path(args)?).is_symlink())
    }),
    (LanguageItem::new("is_mount", "The same as mount.").gives("'/proc' is is_mount", "True"), |_, args| {
        is_mount(&path(args)?)
    }),
    (
        LanguageItem::new("is_same_file", "The same as same_file.")
            .takes("other")
            .gives("'/etc' is is_same_file('/')", "False"),
        |_, args| same_file(args),
    ),
    (LanguageItem::new("isnan", "The same as nan.").gives("1.0 is isnan", "False"), |_, mut args| {
        Ok(f64::try_from(args.req("x")?).is_ok_and(f64::is_nan))
    }),
    (
        LanguageItem::new("issubset", "The same as subset.").takes("other").gives("[1] is issubset([1, 2])", "True"),
        |_, mut args| subset(&iterate(&args.req("a")?)?, &iterate(&args.req("b")?)?),
    ),
    (
        LanguageItem::new("issuperset", "The same as superset.")
            .takes("other")
            .gives("[1, 2] is issuperset([1])", "True"),
        |_, mut args| {
            let (a, b) = (iterate(&args.req("a")?)?, iterate(&args.req("b")?)?);
            subset(&b, &a)
        },
    ),
    (
        LanguageItem::new("iterable", "Whether a value has items: lists, mappings and texts have.")
            .gives("[1] is iterable", "True"),
        |_, mut args| {
            Ok(matches!(
                args.req("value")?.kind(),
                ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Iterable
            ))
        },
    ),
    (
        LanguageItem::new("le", "Whether a value is less than another or equal to it.")
            .takes("other")
            .gives("1 is le(1)", "True"),
        |_, args| ordered(args, "<="),
    ),
    (LanguageItem::new("lessthan", "The same as lt.").takes("other").gives("1 is lessthan(2)", "True"), |_, args| {
        ordered(args, "<")
    }),
    (
        LanguageItem::new("link", "Whether a path of the controller is a symbolic link.")
            .gives("'/etc' is link", "False"),
        |_, args| Ok(std::path::Path::new(&path(args)?).is_symlink()),
    ),
    (
        LanguageItem::new("link_exists", "Whether a path of the controller exists, even as a broken symbolic link.")
            .gives("'/etc' is link_exists", "True"),
        |_, mut args| Ok(std::fs::symlink_metadata(args.text_argument("path")?).is_ok()),
    ),
    (
        LanguageItem::new("lower", "Whether a value, as text, has letters and all of them are small.")
            .gives("'a' is lower", "True"),
        |_, mut args| Ok(cased(&args.text_argument("value")?, char::is_lowercase, char::is_uppercase)),
    ),
    (
        LanguageItem::new("lt", "Whether a value is less than another.").takes("other").gives("1 is lt(2)", "True"),
        |_, args| ordered(args, "<"),
    ),
    (
        LanguageItem::new("match", "Whether a regular expression matches the beginning of a text.")
            .takes("pattern, ignorecase=false, multiline=false")
            .gives("'etcd-1' is match('etcd')", "True"),
        |_, args| pattern(args, Some("match")),
    ),
    (
        LanguageItem::new("mount", "Whether a path of the controller is where a file system is mounted.")
            .gives("'/proc' is mount", "True"),
        |_, args| is_mount(&path(args)?),
    ),
    (
        LanguageItem::new("nan", "Whether a number is none, as 0/0 would be.").gives("1.0 is nan", "False"),
        |_, mut args| Ok(f64::try_from(args.req("x")?).is_ok_and(f64::is_nan)),
    ),
    (LanguageItem::new("odd", "Whether a whole number is odd.").gives("1 is odd", "True"), |_, args| {
        remainder(args, Some(2)).map(|rest| rest == 1.0)
    }),
    (
        LanguageItem::new("reachable", "Whether the host was reached, of a task's registered result.")
            .gives("{'changed': false} is reachable", "True"),
        |_, args| result(args, "unreachable").map(|unreachable| !unreachable),
    ),
    (
        LanguageItem::new("regex", "Whether a regular expression matches a text: anywhere, or as match_type says.")
            .takes("pattern, ignorecase=false, multiline=false, match_type='search'")
            .gives("'etcd-1' is regex('^etcd-[0-9]+$')", "True"),
        |_, args| pattern(args, None),
    ),
    (
        LanguageItem::new("same_file", "Whether two paths of the controller lead to the same file.")
            .takes("other")
            .gives("'/etc' is same_file('/etc/../etc')", "True"),
        |_, args| same_file(args),
    ),
    (
        LanguageItem::new("search", "Whether a regular expression matches anywhere in a text.")
            .takes("pattern, ignorecase=false, multiline=false")
            .gives("'etcd-1' is search('[0-9]')", "True"),
        |_, args| pattern(args, Some("search")),
    ),
    (
        LanguageItem::new("sequence", "Whether a value has an order and a length: lists, mappings and texts have.")
            .gives("[1] is sequence", "True"),
        |_, mut args| Ok(matches!(args.req("value")?.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String)),
    ),
    (LanguageItem::new("skip", "The same as skipped.").example("result is skip"), |_, args| result(args, "skipped")),
    (
        LanguageItem::new("skipped", "Whether a task was skipped, of its registered result.")
            .gives("{'skipped': true} is skipped", "True"),
        |_, args| result(args, "skipped"),
    ),
    (
        LanguageItem::new("socket", "Whether a path of the controller is a socket.").gives("'/etc' is socket", "False"),
        |_, mut args| Ok(std::fs::metadata(args.text_argument("path")?).is_ok_and(|meta| meta.file_type().is_socket())),
    ),
    (
        LanguageItem::new("started", "Whether a task with async has begun, of its registered result.")
            .gives("{'started': 1} is started", "True"),
        |_, args| async_result(args, "started"),
    ),
    (
        LanguageItem::new("subset", "Whether every item of a list is in another.")
            .takes("other")
            .gives("[1] is subset([1, 2])", "True"),
        |_, mut args| subset(&iterate(&args.req("a")?)?, &iterate(&args.req("b")?)?),
    ),
    (
        LanguageItem::new("succeeded", "Whether a task did not fail, of its registered result.")
            .gives("{'changed': true} is succeeded", "True"),
        |_, args| result(args, "failed").map(|failed| !failed),
    ),
    (LanguageItem::new("success", "The same as succeeded.").example("result is success"), |_, args| {
        result(args, "failed").map(|failed| !failed)
    }),
    (LanguageItem::new("successful", "The same as succeeded.").example("result is successful"), |_, args| {
        result(args, "failed").map(|failed| !failed)
    }),
    (
        LanguageItem::new("superset", "Whether a list has every item of another.")
            .takes("other")
            .gives("[1, 2] is superset([1])", "True"),
        |_, mut args| {
            let (a, b) = (iterate(&args.req("a")?)?, iterate(&args.req("b")?)?);
            subset(&b, &a)
        },
    ),
    (
        LanguageItem::new("timedout", "Whether a task took longer than its timeout, of its registered result.")
            .gives("{'timedout': true} is timedout", "True"),
        |_, args| result(args, "timedout"),
    ),
    (
        LanguageItem::new(
            "truthy",
            "Whether a value counts as true; with convert_bool also the words yes, on and true.",
        )
        .takes("convert_bool=false")
        .gives("'x' is truthy", "True"),
        |_, args| truthiness(args),
    ),
    (
        LanguageItem::new("unreachable", "Whether the host was not reached, of a task's registered result.")
            .gives("{'unreachable': true} is unreachable", "True"),
        |_, args| result(args, "unreachable"),
    ),
    (
        LanguageItem::new("upper", "Whether a value, as text, has letters and all of them are large.")
            .gives("'A' is upper", "True"),
        |_, mut args| Ok(cased(&args.text_argument("value")?, char::is_uppercase, char::is_lowercase)),
    ),
    (
        LanguageItem::new("uri", "Whether a text can be taken apart as a URI, or one of those schemes.")
            .takes("schemes=none")
            .gives("'https://h1' is uri(['http'])", "False"),
        |_, args| Ok(url(args)?.is_some()),
    ),
    (
        LanguageItem::new("url", "Whether a text is a URL with a host, or of a file.")
            .takes("schemes=none")
            .gives("'h1:2379' is url", "False"),
        |_, args| Ok(url(args)?.is_some_and(|url| !url.netloc.is_empty() || url.scheme == "file")),
    ),
    (LanguageItem::new("urn", "Whether a text is a URN.").gives("'urn:a:b' is urn", "True"), |_, args| {
        Ok(url(args)?.is_some_and(|url| url.scheme == "urn"))
    }),
    (
        LanguageItem::new(
            "vault_encrypted",
            "Whether a text is in the format of vault files; what was decrypted is a text like others.",
        )
        .gives("'plain' is vault_encrypted", "False"),
        |_, mut args| Ok(vault::is_vault(&args.text_argument("value")?)),
    ),
    (
        LanguageItem::new("vaulted_file", "Whether a file of the controller is in the format of vault files.")
            .gives("'/etc/passwd' is vaulted_file", "False"),
        |_, args| {
            let path = path(args)?;
            let file = std::fs::read(&path).map_err(|error| fail(format!("cannot read {path}: {error}")))?;
            Ok(vault::is_vault(&String::from_utf8_lossy(&file)))
        },
    ),
    (
        LanguageItem::new("version", "Compares two versions; version_type may be loose, strict, semver or pep440.")
            .takes("version, operator='eq', strict=false, version_type=none")
            .gives("'3.5.16' is version('3.5.2', '>')", "True"),
        version_test,
    ),
    (
        LanguageItem::new("version_compare", "The old name of version.")
            .takes("version, operator='eq', strict=false, version_type=none")
            .gives("'3.5.16' is version_compare('3.6', '<')", "True"),
        version_test,
    ),
];

/// The engine's own tests that mean what Ansible means.
pub(super) static ENGINE_TESTS: &[LanguageItem] = &[
    LanguageItem::new("boolean", "Whether a value is true or false itself.").gives("true is boolean", "True"),
    LanguageItem::new("eq", "Whether two values are equal, as == says.").takes("other").gives("1 is eq(1)", "True"),
    LanguageItem::new("equalto", "The same as eq.").takes("other").gives("1 is equalto(1)", "True"),
    LanguageItem::new("escaped", "Whether a text has been marked as safe.").gives("'a' is escaped", "False"),
    LanguageItem::new("false", "Whether a value is false itself.").gives("false is false", "True"),
    LanguageItem::new("filter", "Whether there is a filter of that name.").gives("'combine' is filter", "True"),
    LanguageItem::new("float", "Whether a value is a number with a fraction.").gives("1.5 is float", "True"),
    LanguageItem::new("integer", "Whether a value is a whole number.").gives("1 is integer", "True"),
    LanguageItem::new("mapping", "Whether a value is a mapping.").gives("{'a': 1} is mapping", "True"),
    LanguageItem::new("ne", "Whether two values differ.").takes("other").gives("1 is ne(2)", "True"),
    LanguageItem::new("none", "Whether a value is none.").gives("none is none", "True"),
    LanguageItem::new("number", "Whether a value is a number.").gives("1.5 is number", "True"),
    LanguageItem::new("sameas", "Whether two values are the very same.")
        .takes("other")
        .gives("true is sameas(true)", "True"),
    LanguageItem::new("string", "Whether a value is text.").gives("'a' is string", "True"),
    LanguageItem::new("test", "Whether there is a test of that name.").gives("'changed' is test", "True"),
    LanguageItem::new("true", "Whether a value is true itself.").gives("true is true", "True"),
];

/// Tests that may get undefined values.
pub(super) mod of_undefined {
    use minijinja::value::Rest;

    use crate::value::Value;
    use crate::value::doc::LanguageItem;

    type Raw = fn(Rest<Value>) -> bool;

    pub(crate) static TESTS: &[(LanguageItem, Raw)] = &[
        (
            LanguageItem::new("defined", "Whether a variable or member exists.")
                .gives("no_such_variable is defined", "False"),
            defined,
        ),
        (
            LanguageItem::new("undefined", "Whether a variable or member does not exist.")
                .gives("no_such_variable is undefined", "True"),
            |values| !defined(values),
        ),
    ];

    fn defined(values: Rest<Value>) -> bool {
        values.first().is_some_and(|value| !value.is_undefined())
    }
}

fn has(seq: &Value, value: &Value) -> Result<bool, Error> {
    operations::is_in(value, seq)
}

/// `a SIGN b`
pub(super) fn ordered(mut args: Args, sign: &str) -> Result<bool, Error> {
    let (a, b) = (args.req("a")?, args.req("b")?);
    args.no_more_arguments()?;
    operations::compare_values(&a, sign, &b)
}

/// What is left of a number divided by another.
fn remainder(mut args: Args, by: Option<i64>) -> Result<f64, Error> {
    let (value, by) = (args.req("value")?, by.map_or_else(|| args.req("num"), |by| Ok(Value::from(by)))?);
    args.no_more_arguments()?;
    let number = |value: &Value| {
        let number = f64::try_from(python::to_number(value)).ok().filter(|_| value.as_str().is_none());
        number.ok_or_else(|| fail(format!("only numbers can be divided, this is {}", kind(value))))
    };
    match number(&by)? {
        0.0 => Err(fail("division by zero")),
        by => number(&value).map(|value| value.rem_euclid(by)),
    }
}

fn same_file(mut args: Args) -> Result<bool, Error> {
    let (a, b) = (args.text_argument("path")?, args.text_argument("other")?);
    let whole =
        |path: String| std::fs::canonicalize(&path).map_err(|error| fail(format!("cannot stat {path}: {error}")));
    Ok(whole(a)? == whole(b)?)
}

/// A path must be text.
fn path(mut args: Args) -> Result<String, Error> {
    let value = args.req("path")?;
    value.as_str().map(str::to_owned).ok_or_else(|| fail(format!("a path is text, this is {}", kind(&value))))
}

/// A flag of a task's result.
fn result(mut args: Args, flag: &str) -> Result<bool, Error> {
    let value = args.req("result")?;
    if value.kind() != ValueKind::Map {
        return Err(fail(format!("the test {flag:?} needs the result of a task, as `register` keeps it")));
    }
    let set = |value: &Value, flag: &str| value.get_attr(flag).is_ok_and(|flag| flag.is_true());
    // A loop's result counts as changed or skipped as its items do.
    if flag == "changed" && value.get_attr("changed").is_ok_and(|changed| changed.is_undefined()) {
        let results = value.get_attr("results").unwrap_or(Value::UNDEFINED);
        return Ok(to_list(&results, "results").is_ok_and(|results| results.iter().any(|item| set(item, "changed"))));
    }
    Ok(set(&value, flag))
}

fn async_result(mut args: Args, flag: &str) -> Result<bool, Error> {
    let value = args.req("result")?;
    let found =
        value.get_attr(flag).map_err(|_| fail(format!("the test {flag:?} needs the result of an async task")))?;
    // What was not asynchronous is finished, and was started.
    Ok(found.is_undefined() || found.is_true())
}

fn truthiness(mut args: Args) -> Result<bool, Error> {
    let value = args.req("value")?;
    Ok(if args.flag_argument("convert_bool") { truthy(&value) } else { value.is_true() })
}

/// `match(pattern, ignorecase, multiline)`, `search(...)`, `regex(..., match_type='search')`
fn pattern(mut args: Args, how: Option<&str>) -> Result<bool, Error> {
    let (value, pattern) = (args.req("value")?, args.text_argument("pattern")?);
    let (ignorecase, multiline) = (args.flag_argument("ignorecase"), args.flag_argument("multiline"));
    let how = how.map_or_else(|| args.text_or("match_type", "search"), str::to_owned);
    args.no_more_arguments()?;
    let regex = regex(&pattern, ignorecase, multiline)?;
    let string = to_text(&value);
    let found = regex.find(&string).map_err(|error| fail(format!("the regular expression took too long: {error}")))?;
    Ok(match how.as_str() {
        "match" => found.is_some_and(|found| found.start() == 0),
        "fullmatch" => found.is_some_and(|found| found.start() == 0 && found.end() == string.len()),
        _ => found.is_some(),
    })
}

/// Whether a text has letters of one case and none of the other.
fn cased(text: &str, wanted: fn(char) -> bool, other: fn(char) -> bool) -> bool {
    text.chars().any(wanted) && !text.chars().any(other)
}

/// A URL in parts, if it is valid and has one of the requested schemes. A false value counts as an empty URL, as in Python.
fn url(mut args: Args) -> Result<Option<Url>, Error> {
    let (value, schemes) = (args.req("value")?, args.opt("schemes").filter(Value::is_true));
    args.no_more_arguments()?;
    let url = match value.as_str() {
        Some(text) => Url::split_url(text).ok(),
        None if value.is_true() => None,
        None => Url::split_url("").ok(),
    };
    Ok(match (url, schemes) {
        (Some(url), Some(schemes)) if !has(&schemes, &Value::from(&*url.scheme))? => None,
        (url, _) => url,
    })
}

fn is_mount(path: &str) -> Result<bool, Error> {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(here), Ok(above)) = (std::fs::metadata(path), std::fs::metadata(format!("{path}/.."))) else {
        return Ok(false);
    };
    Ok(here.dev() != above.dev() || here.ino() == above.ino())
}
