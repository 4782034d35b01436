//! Template files: their own syntax settings, `#jinja2:` headers, and `include`, `import`, `extends`.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;

use super::programs::Programs;
use super::rewrite::{SourceMode, rewrite};
use super::{Error, Options, Scope, engine, engine_error_text, guard, naming, render};
use crate::value::origin::{Origin, Source};

/// Renders the text of a template file. Places in errors are of the file.
pub(super) fn render_file(text: &str, path: &Path, options: &Options, scope: &Arc<Scope>) -> Result<String, Error> {
    let origin = Origin { source: Arc::new(Source::new(path, text)), line: 1, column: 1 };
    guard::located(Some(&origin), || rendered(text, path, options, scope))
}

fn rendered(text: &str, path: &Path, options: &Options, scope: &Arc<Scope>) -> Result<String, Error> {
    let _session = render::Session::enter();
    let origin = |line| Origin { source: Arc::new(Source::new(path, text)), line, column: 1 };
    let at = |message: String| Error::other(message, Some(&origin(1)));
    let mut options = options.clone();
    let (body, headers) = header(text, &mut options).map_err(at)?;
    let rendered = match stands_alone(body) && has_usual_syntax(&options) {
        true => engine::file_template(scope.engine, body).and_then(|template| template.render(render::root(scope))),
        false => in_a_copy(body, path, &options, scope),
    };
    let rendered = rendered.map_err(|error| {
        let origin = origin(error.line().map_or(1, |line| line + headers));
        match error.name().filter(|name| !engine::is_file(name) && *name != path.to_string_lossy()) {
            Some(name) if Error::inside(&error).is_none() => {
                let message = format!("in {name}, line {}: {}", error.line().unwrap_or(1), engine_error_text(&error));
                Error::other(message, Some(&origin))
            }
            _ => match syntax(&options) {
                Ok(syntax) => naming::explain_file(&error, body, &syntax, &origin, scope),
                Err(error) => Error::other(engine_error_text(&error), Some(&origin)),
            },
        }
    })?;
    // As in Ansible: an included text ends without its last line break, and the whole with as many as the file has.
    let breaks = |text: &str| text.len() - text.trim_end_matches('\n').len();
    let missing = breaks(body).saturating_sub(breaks(&rendered));
    let rendered = match options.keep_trailing_newline {
        true => rendered + &"\n".repeat(missing),
        false => rendered,
    };
    Ok(match &options.newline {
        Some(newline) if newline != "\n" => rendered.replace('\n', newline),
        _ => rendered,
    })
}

/// Whether a text certainly names no other file, which may have changed when it is rendered again.
fn stands_alone(body: &str) -> bool {
    !["include", "import", "extends"].iter().any(|word| body.contains(word))
}

/// Whether [`engine::syntax`] is the syntax.
fn has_usual_syntax(options: &Options) -> bool {
    let Options { trim_blocks, lstrip_blocks, keep_trailing_newline, variable, block, comment, .. } = options;
    *trim_blocks
        && !lstrip_blocks
        && *keep_trailing_newline
        && variable.is_none()
        && block.is_none()
        && comment.is_none()
}

/// Renders in a separate engine, which finds the files that the text names.
fn in_a_copy(body: &str, path: &Path, options: &Options, scope: &Arc<Scope>) -> Result<String, minijinja::Error> {
    let syntax = syntax(options)?;
    let mut engine = engine::copy_of(scope.engine);
    engine.set_syntax(syntax.clone());
    engine.set_path_join_callback(|name, _| name.into());
    let (search, included) = (search(path, options, scope), syntax.clone());
    let programs = scope.engine.programs();
    engine.set_loader(move |name| read_template(name, &search, &included, programs));
    let text = rewrite(body, SourceMode::Template, &syntax, false, programs)?;
    engine.template_from_named_str(&path.to_string_lossy(), &text)?.render(render::root(scope))
}

fn search(path: &Path, options: &Options, scope: &Scope) -> Vec<PathBuf> {
    let beside = path.parent().map(Path::to_path_buf);
    let more = scope.search.iter().flat_map(|dir| [dir.join("templates"), dir.clone()]);
    beside.into_iter().chain(options.search.iter().cloned()).chain(more).collect()
}

/// Finds and reads an included file. The name may come from a host, and the file is sent there: as in Jinja, it
/// is only searched in the directories of the search path.
fn read_template(
    name: &str,
    search: &[PathBuf],
    syntax: &SyntaxConfig,
    programs: &Programs,
) -> Result<Option<String>, minijinja::Error> {
    let within = Path::new(name).strip_prefix("/").unwrap_or(Path::new(name));
    if within.components().any(|part| part == Component::ParentDir) {
        return Ok(None);
    }
    let Some(path) = search.iter().map(|dir| dir.join(within)).find(|path| path.is_file()) else { return Ok(None) };
    let text = crate::value::read::read_text(&path)
        .map_err(|error| super::conversions::fail(format!("cannot read {}: {error}", path.display())))?;
    rewrite(text.strip_suffix('\n').unwrap_or(&text), SourceMode::Template, syntax, false, programs).map(Some)
}

fn syntax(options: &Options) -> Result<SyntaxConfig, minijinja::Error> {
    let mut builder = SyntaxConfig::builder();
    builder.trim_blocks(options.trim_blocks);
    builder.lstrip_blocks(options.lstrip_blocks);
    builder.keep_trailing_newline(options.keep_trailing_newline);
    if let Some((start, end)) = options.variable.clone() {
        builder.variable_delimiters(start, end);
    }
    if let Some((start, end)) = options.block.clone() {
        builder.block_delimiters(start, end);
    }
    if let Some((start, end)) = options.comment.clone() {
        builder.comment_delimiters(start, end);
    }
    builder.build()
}

/// Takes a `#jinja2: trim_blocks: False, ...` line off the top; the rest, and how many lines were taken.
fn header<'a>(text: &'a str, options: &mut Options) -> Result<(&'a str, usize), String> {
    let Some(rest) = text.strip_prefix("#jinja2:") else { return Ok((text, 0)) };
    let (line, body) = rest.split_once('\n').unwrap_or((rest, ""));
    for setting in line.split(',').filter(|setting| !setting.trim().is_empty()) {
        let (key, value) = setting.split_once(':').ok_or_else(|| format!("not a setting: {:?}", setting.trim()))?;
        let (key, value) = (key.trim(), value.trim());
        let flag = || match value.to_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("{key} must be True or False, not {value}")),
        };
        let text = value.trim_matches(['\'', '"']).to_owned();
        let default = |pair: &Option<(String, String)>, start: &str, end: &str| {
            pair.clone().unwrap_or_else(|| (start.to_owned(), end.to_owned()))
        };
        match key {
            "trim_blocks" => options.trim_blocks = flag()?,
            "lstrip_blocks" => options.lstrip_blocks = flag()?,
            "keep_trailing_newline" => options.keep_trailing_newline = flag()?,
            "newline_sequence" => options.newline = Some(text.replace("\\r", "\r").replace("\\n", "\n")),
            "variable_start_string" => options.variable = Some((text, default(&options.variable, "{{", "}}").1)),
            "variable_end_string" => options.variable = Some((default(&options.variable, "{{", "}}").0, text)),
            "block_start_string" => options.block = Some((text, default(&options.block, "{%", "%}").1)),
            "block_end_string" => options.block = Some((default(&options.block, "{%", "%}").0, text)),
            "comment_start_string" => options.comment = Some((text, default(&options.comment, "{#", "#}").1)),
            "comment_end_string" => options.comment = Some((default(&options.comment, "{#", "#}").0, text)),
            _ => return Err(format!("unknown setting {key} in the #jinja2 line")),
        }
    }
    Ok((body, 1))
}
