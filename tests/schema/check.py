"""Validates this project's files against the schemas of `windlass schema`, and typical mistakes: those have to fail.

check.py WINDLASS, run at the root of the project with PyYAML and jsonschema at hand.
"""

import json
import subprocess
import sys
from glob import glob

import yaml
from jsonschema import Draft7Validator

# What is right about these is their form: files that are missing, templates, and what two keys mean together.
NOT_OF_FORM = (
    "argument_expression", "argument_misspelt_in_short_form", "argument_quote", "argument_text_without_key",
    "handler_block", "import_", "include_apply", "include_tasks_become", "play_hosts_empty", "play_vars_file",
    "role_cycle", "role_missing", "role_mistake", "role_of", "role_tasks_from", "task_args_wrong",
    "task_async_refused", "task_template", "task_two", "task_until", "task_when_syntax",
    "task_when_unknown", "yaml_unknown_tag",
)


class Loader(yaml.SafeLoader):
    """Reads what has a tag, such as `!vault` and `!unsafe`, as if it had none."""


def untagged(loader, _, node):
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


Loader.add_multi_constructor("!", untagged)


def validator(kind):
    schema = json.loads(subprocess.check_output([sys.argv[1], "schema", kind]))
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def problems(kind, files, least):
    """What is wrong with files that are right, one line each."""
    if len(files) < least:
        yield f"only {len(files)} files of {kind} were found"
    check = validator(kind)
    for path in sorted(files):
        with open(path, encoding="utf-8") as file:
            for error in check.iter_errors(yaml.load(file, Loader)):
                yield f"{path}: {list(error.absolute_path)}: {error.message[:300]}"


def unseen():
    """Mistakes of form that the schema lets pass."""
    check = validator("playbook")
    seen = 0
    for path in sorted(glob("tests/mistakes/*.yml")):
        name = path.removeprefix("tests/mistakes/")
        try:
            with open(path, encoding="utf-8") as file:
                wrong = any(True for _ in check.iter_errors(yaml.load(file, Loader)))
        except yaml.YAMLError:
            continue
        seen += wrong
        if not wrong and not name.startswith(NOT_OF_FORM):
            yield f"{path}: the schema finds nothing wrong"
    if seen < 40:
        yield f"the schema sees only {seen} mistakes"


def main():
    playbooks = glob("playbooks/*.yml") + glob("tests/golden/*/playbook.yml") + glob("tests/differential/playbooks/*.yml")
    # Modules of one's own are in no schema of ours.
    playbooks = [path for path in playbooks if not str(path).endswith("/own_modules.yml")]
    found = [
        *problems("playbook", playbooks, 50),
        *problems("tasks", glob("roles/*/tasks/**/*.yml", recursive=True) + glob("roles/*/handlers/*.yml"), 10),
        *problems("argument-specs", glob("roles/*/meta/argument_specs.yml"), 2),
        *problems("meta", glob("roles/*/meta/main.yml"), 2),
        *problems("vars", glob("roles/*/defaults/*.yml") + glob("roles/*/vars/*.yml"), 3),
        *problems("inventory", glob("tests/inventory/cases/**/*hosts.yml", recursive=True), 1),
        *unseen(),
    ]
    print("\n".join(found) or "the schemas fit")
    sys.exit(bool(found))


main()
