"""The rates of Python's Jinja2, and of ansible-core's Templar, on the texts beside this file: lines of JSON.

    jinja.py TEXT...        SECONDS of the environment: how many of CPU each is rendered
"""

import json
import os
import sys
import time

import jinja2

SECONDS = float(os.environ.get("SECONDS", "1"))


def rate(render):
    """Renderings a second of CPU."""
    render()
    done, begun = 0, time.process_time()
    while (took := time.process_time() - begun) < SECONDS:
        for _ in range(10):
            render()
        done += 10
    return done / took


def ansible(text, variables):
    """As ansible-playbook renders a template file; None: there is no ansible-core."""
    try:
        from ansible.parsing.dataloader import DataLoader
        from ansible.template import Templar, trust_as_template
    except ImportError:
        return None
    templar, trusted = Templar(loader=DataLoader(), variables=variables), trust_as_template(text)
    return rate(lambda: templar.template(trusted, preserve_trailing_newlines=True))


def main():
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True)
    for path in sys.argv[1:]:
        with open(f"{path}.j2") as file:
            text = file.read()
        with open(f"{path}.json") as file:
            variables = json.load(file)
        kept = environment.from_string(text)
        print(
            json.dumps(
                {
                    "text": kept.render(variables),
                    "kept": rate(lambda: kept.render(variables)),
                    "compiled": rate(lambda: environment.from_string(text).render(variables)),
                    "ansible": ansible(text, variables),
                }
            ),
            flush=True,
        )


main()
