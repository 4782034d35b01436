//! Filters and lookups that a person writes: programs in `filter_plugins/` and `lookup_plugins/`, run on the controller.
//! One gets a JSON object on its standard input and prints JSON: `{"value": …, "args": […], "kwargs": {…}}` for what a
//! filter gives, `{"terms": […], "kwargs": {…}}` for the list that a lookup gives.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use minijinja::State;
use minijinja::value::{Serde, ValueKind};

use super::args::Args;
use super::conversions::{fail, iterate};
pub use super::programs::ProgramKind;
use super::{Error, Scope, lazy};
use crate::value::Value;
use crate::value::{mapping, read};

/// Why a program did not run where playbooks are only checked.
pub(super) const NOT_STARTED: &str = "and no program is started for a check";

/// `value | _own('name', args...)`
pub(super) fn filter(state: &mut State<'_, '_>, mut args: Args) -> Result<Value, minijinja::Error> {
    let (value, name) = (args.req("value")?, args.text_argument("name")?);
    call_filter(state, &name, value, args.rest(), args.rest_named())
}

/// What a filter's program makes of a value.
pub(super) fn call_filter(
    state: &State<'_, '_>,
    name: &str,
    value: Value,
    args: Vec<Value>,
    kwargs: Vec<(String, Value)>,
) -> Result<Value, minijinja::Error> {
    let scope = lazy::scope_of(state);
    let program = scope.engine.programs().find_program_path(ProgramKind::Filter, name);
    let program = program.ok_or_else(|| fail(format!("there is no filter {name:?}")))?;
    let asked = mapping([("value", value), ("args", Value::from(args)), ("kwargs", mapping(kwargs))]);
    run(program, &asked, &scope).map_err(|why| fail(format!("the filter {name:?} {why}")))
}

/// What a lookup's program gives; anything but a list is a list of one.
pub(super) fn lookup(
    name: &str,
    program: &Path,
    terms: Vec<Value>,
    kwargs: Vec<(String, Value)>,
    scope: &Scope,
) -> Result<Vec<Value>, Error> {
    let asked = mapping([("terms", Value::from(terms)), ("kwargs", mapping(kwargs))]);
    let wrong = |why: String| Error::other(format!("the lookup {name:?} {why}"), None);
    let found = run(program, &asked, scope).map_err(wrong)?;
    match found.kind() {
        ValueKind::Seq => iterate(&found).map_err(|error| wrong(super::engine_error_text(&error))),
        _ => Ok(vec![found]),
    }
}

/// Runs a program in the playbook's directory. If it fails, the error shows its standard error.
fn run(program: &Path, asked: &Value, scope: &Scope) -> Result<Value, String> {
    if scope.starts_nothing {
        return Err(format!("is a program, {NOT_STARTED}: {}", program.display()));
    }
    super::waiting(|| run_here(program, asked, scope))
}

fn run_here(program: &Path, asked: &Value, scope: &Scope) -> Result<Value, String> {
    let place = program.display();
    let asked = serde_json::to_vec(asked).map_err(|error| format!("cannot receive its arguments: {error}"))?;
    let mut command = scope.surroundings.command(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if scope.base.is_dir() {
        command.current_dir(&*scope.base);
    }
    let mut child = command.spawn().map_err(|error| format!("cannot be run: {place}: {error}"))?;
    let (input, errors) = (child.stdin.take(), child.stderr.take());
    // It may write before it has read all.
    let writer = std::thread::spawn(move || input.map_or(Ok(()), |mut input| input.write_all(&asked)));
    let listener = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = errors.map(|errors| std::io::Read::read_to_end(&mut std::io::Read::take(errors, 1 << 20), &mut said));
        said
    });
    let ended = read::printed(child);
    #[expect(clippy::let_underscore_must_use, reason = "a program that does not read its input has not failed")]
    let _ = writer.join();
    let said = listener.join().unwrap_or_default();
    let (status, printed) = ended.map_err(|error| format!("failed: {place}: {error}"))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&said);
        return Err(format!("failed: {place}: {status}: {}", said.trim()));
    }
    let printed: serde_json::Value = serde_json::from_slice(&printed)
        .map_err(|error| format!("printed invalid JSON: {place}: {error}: {:?}", excerpt(&printed)))?;
    Ok(Value::from(Serde(printed)))
}

fn excerpt(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).trim().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{Scope, Templar};
    use super::*;
    use crate::value::Template;

    fn program(directory: &Path, name: &str, text: &str) {
        crate::value::testing::write_program(directory.join(name), text);
    }

    #[test]
    fn programs_are_filters_and_lookups_and_what_goes_wrong_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        program(at, "own_echo.sh", "#!/bin/sh\ncat\n");
        program(at, "own_bad", "#!/bin/sh\necho no reason >&2; exit 3\n");
        program(at, "own_text", "#!/bin/sh\necho hello\n");
        fs::write(at.join("own_plain"), "no program").unwrap();
        let templar = Templar::new();
        templar.add_own(ProgramKind::Filter, at);
        templar.add_own(ProgramKind::Lookup, at);
        let render = |text: &str| {
            let value = Template::template_value(text, None);
            templar.check_template(&value)?;
            templar.render_string(&value, &Scope::default())
        };
        let given = render("{{ [1, 'ä'] | own_echo('b', c=2) | to_json }}").unwrap();
        assert_eq!(given, r#"{"value": [1, "\u00e4"], "args": ["b"], "kwargs": {"c": 2}}"#);
        assert_eq!(render("{{ (1 | own_echo).value + 1 }}").unwrap(), "2");
        assert_eq!(render("{{ [1, 2] | map('own_echo') | map(attribute='value') | list }}").unwrap(), "[1, 2]");
        assert_eq!(render("{{ 3 | own_echo() | length < 4 }}").unwrap(), "True");
        assert_eq!(render("{{ query('own_echo', 5, x=6)[0].terms }}").unwrap(), "[5]");
        let failed = render("{{ 1 | own_bad }}").unwrap_err().to_string();
        assert!(failed.contains("the filter \"own_bad\" failed") && failed.contains("no reason"), "{failed}");
        let failed = render("{{ lookup('own_text', 1) }}").unwrap_err().to_string();
        assert!(failed.contains("the lookup \"own_text\" printed invalid JSON"), "{failed}");
        assert!(render("{{ 1 | own_plain }}").is_err());
    }

    #[test]
    fn two_runs_side_by_side_have_their_own_programs() {
        let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let templars = [(); 3].map(|()| Templar::new());
        for (number, (directory, templar)) in directories.iter().zip(&templars).enumerate() {
            program(directory.path(), "own_number", &format!("#!/bin/sh\necho {number}\n"));
            templar.add_own(ProgramKind::Filter, directory.path());
            templar.add_own(ProgramKind::Lookup, directory.path());
        }
        let same = [
            "{{ 5 | own_number }}",
            "{{ lookup('own_number') }}",
            "{% if true %}{{ [5] | map('own_number') | first }}{% endif %}",
        ];
        for text in same.map(|text| Template::template_value(text, None)) {
            for round in 0..2 {
                let [one, two, none] = templars.each_ref().map(|templar| {
                    templar.check_template(&text)?;
                    templar.render_string(&text, &Scope::default())
                });
                assert_eq!((one.unwrap().as_str(), two.unwrap().as_str()), ("0", "1"), "{text:?} {round}");
                assert!(none.is_err(), "{text:?}");
            }
        }
    }

    #[test]
    fn a_view_of_a_scope_has_the_programs_of_its_run() {
        let directory = tempfile::tempdir().unwrap();
        program(directory.path(), "own_seven", "#!/bin/sh\necho 7\n");
        let templar = Templar::new();
        templar.add_own(ProgramKind::Filter, directory.path());
        let mut of_host = templar.scope();
        of_host.push(std::sync::Arc::new([("x".into(), Template::template_value("{{ 1 | own_seven }}", None))].into()));
        let mut scope = templar.scope();
        scope.push(std::sync::Arc::new([("other".into(), Templar::view(&of_host))].into()));
        let value = templar.render_string(&Template::template_value("{{ other.x }}", None), &scope);
        assert_eq!(value.unwrap(), "7");
    }
}
