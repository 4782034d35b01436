//! Rendering the texts of `texts/` beside Python's Jinja2 and ansible-core, which must give the same text.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use windlass::template::{Options, Scope, Templar};
use windlass::value::{Value, Vars};

use crate::measure::cpu;

const TEXTS: [&str; 3] = ["config", "proxy", "table"];
/// Seconds of CPU that each text is rendered for.
const LONG: f64 = 1.0;

/// What Python said of a text: what it rendered, and renderings a second of CPU.
#[derive(serde::Deserialize)]
struct Said {
    text: String,
    /// Of a template that was compiled before.
    kept: f64,
    /// Compiled each time, as ansible-core does.
    compiled: f64,
    ansible: Option<f64>,
}

pub(crate) fn run(_: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/engine");
    for name in TEXTS {
        let path = here.join("texts").join(name);
        let (text, rate) = ours(&path);
        let Some(said) = python(&here.join("jinja.py"), &path) else {
            println!("templates: {name}: {rate:.0}/s; there is no python3 with jinja2 to compare with");
            continue;
        };
        assert!(text == said.text, "Jinja2 renders {name} differently");
        let ansible = said.ansible.map_or_else(String::new, |theirs| {
            format!(", ansible-core's Templar {theirs:.0}/s ({:.0} times)", rate / theirs)
        });
        println!(
            "templates: {name}: {rate:.0}/s; Jinja2 {:.0}/s when compiled once ({:.1} times), {:.0}/s when compiled each \
             time ({:.0} times){ansible} (aim: 5 times)",
            said.kept,
            rate / said.kept,
            said.compiled,
            rate / said.compiled,
        );
    }
}

/// What we render, and renderings a second of CPU.
fn ours(path: &Path) -> (String, f64) {
    let text = std::fs::read_to_string(path.with_extension("j2")).expect("the text is there");
    let json = std::fs::read(path.with_extension("json")).expect("its variables are there");
    let values: Vec<(String, Value)> = serde_json::from_slice::<indexmap::IndexMap<String, Value>>(&json)
        .expect("they are JSON")
        .into_iter()
        .collect();
    let vars: Vars = values.into_iter().map(|(name, value)| (Arc::from(name), value)).collect();
    let mut scope = Scope::default();
    scope.push(Arc::new(vars));
    let (templar, path, options) = (Templar::new(), path.with_extension("j2"), Options::default());
    let render = || templar.render_file(&text, &path, &options, &scope).expect("the text renders");
    let rendered = render();
    let (mut done, before) = (0u32, cpu(false));
    while cpu(false) - before < LONG {
        (0..20).for_each(|_| drop(std::hint::black_box(render())));
        done += 20;
    }
    (rendered, f64::from(done) / (cpu(false) - before))
}

/// `PYTHON` names an interpreter that has jinja2.
fn python(program: &Path, path: &Path) -> Option<Said> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(python).arg(program).arg(path).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}
