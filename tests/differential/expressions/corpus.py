"""What expressions are made of: every value goes through every filter, test, operator and method that is listed here."""

VARS = {
    "zero": 0, "one": 1, "seven": 7, "minus": -3, "large": 12345678901234, "half": 0.5, "pi": 3.14159, "whole": 2.0,
    "yes_": True, "no_": False, "none_": None, "empty": "", "word": "Karmada", "words": "the quick  brown fox\tjumps",
    "lines": "first\nsecond\r\n\nlast", "padded": "  padded\n", "number": "42", "float_text": "4.5e2", "hex_text": "0x1f",
    "unicode": "Grüße, 東京 ß", "path": "/etc/windlass/karmada.yaml", "relative": "../a/./b.tar.gz", "json_text": '{"a": [1, 2.5, null, "x"], "b": true}',
    "yaml_text": "a: [1, yes, 0o17]\nb: ~\n", "html": "<a href='x'>&amp; \"q\"</a>", "csv": "a,b,,c", "version_text": "1.19.0-rc.0",
    "base": "S2FybWFkYQ==", "url": "https://user:pw@example.com:8443/a/b?x=1&y=%20#top", "duration": "1h", "size_text": "1.5 GB",
    "nothing": [], "numbers": [3, 1, 2, 3, -1], "floats": [1.5, 2, 0.25], "mixed": [1, "a", None, True, 2.5, [1], {"k": 1}],
    "names": ["web", "db", "Cache", "db"], "nested": [[1, 2], [3, [4, [5]]], 6], "pairs": [["a", 1], ["b", 2]], "bools": [True, False, True],
    "void": {}, "mapping": {"b": 2, "a": 1, "C": 3}, "deep": {"x": {"y": [1, {"z": "end"}]}, "n": None},
    "users": [{"name": "ann", "age": 30, "groups": ["a", "b"], "os": {"family": "Debian"}}, {"name": "Bob", "age": 25, "groups": [], "os": {"family": "RedHat"}},
              {"name": "cy", "age": 30, "groups": ["b"], "os": {"family": "Debian"}}],
}

NUMBERS = ["zero", "one", "seven", "minus", "large", "half", "pi", "whole", "yes_", "no_"]
TEXTS = ["empty", "word", "words", "lines", "padded", "number", "float_text", "hex_text", "unicode", "path", "relative", "json_text",
         "html", "csv", "version_text", "url", "base", "size_text"]
LISTS = ["nothing", "numbers", "floats", "mixed", "names", "nested", "pairs", "bools"]
MAPS = ["void", "mapping", "deep"]
ALL = [*VARS]

# Filters by what they are given.
ANY = ["default('d')", "default('d', true)", "string", "list", "to_json", "to_nice_json", "to_nice_json(indent=2)", "to_yaml", "to_nice_yaml", "type_debug",
       "bool", "int", "int(9)", "float", "length", "count", "first", "last", "ternary('y', 'n')", "ternary('y', 'n', 'nil')", "mandatory", "hash('sha256')", "sort",
       "unique", "reverse", "join(',')", "upper", "title", "capitalize", "lower", "trim", "abs", "round", "sum", "min", "max", "e", "escape", "urlencode",
       "items", "dictsort", "flatten", "tojson", "pprint", "quote", "comment", "to_uuid", "map('string')", "select", "reject", "b64encode", "safe", "center(12)", "wordcount"]
OF_TEXTS = ["replace('a', 'o')", "replace('a', 'o', 1)", "regex_replace('[aeiou]', '<\\\\g<0>>')", "regex_replace('(.)(.)', '\\\\2\\\\1')", "regex_replace('^')",
            "regex_search('[a-z]+')", "regex_search('(.)(a)', '\\\\1', '\\\\2')", "regex_findall('[a-z]+')", "regex_findall('([a-z])([a-z])')", "regex_escape",
            "regex_escape('posix_basic')", "split", "split(',')", "split(',', 1)", "basename", "dirname", "splitext", "normpath", "win_basename", "expanduser",
            "from_json", "from_yaml", "from_yaml_all | list", "b64decode", "urldecode", "urlsplit", "urlsplit('hostname')", "urlsplit('port')", "urlsplit('query')",
            "truncate(9)", "truncate(9, true)", "truncate(9, true, '…', 0)", "wordwrap(7)", "wordwrap(7, false)", "indent", "indent(2, true)", "indent(2, blank=true)",
            "center(20)", "list", "reverse", "batch(2) | list", "slice(3) | list", "human_to_bytes", "human_to_bytes(isbits=true)",
            "checksum", "md5", "sha1", "hash('md5')", "striptags", "xmlattr", "format('x')", "first", "last", "length",
            "map('upper') | list", "map('upper') | join", "select('in', 'aeiou') | list", "comment('c')", "comment('xml')", "comment(prefix='p', postfix='q')",
            "relpath('/etc')", "realpath", "path_join", "to_datetime('%Y')", "filesizeformat", "forceescape", "unique", "sort", "zip([1, 2]) | list", "urlize"]
OF_NUMBERS = ["round(1)", "round(2, 'floor')", "round(0, 'ceil')", "round(-1)", "log", "log(2)", "log(10)", "pow(2)", "pow(0.5)", "root", "root(3)", "human_readable",
              "human_readable(true)", "human_readable(unit='K')", "filesizeformat", "filesizeformat(true)", "abs", "int", "float", "string", "format",
              "strftime", "int(default=1, base=2)"]
OF_LISTS = ["first", "last", "length", "sort", "sort(reverse=true)", "sort(case_sensitive=true)", "unique", "unique(case_sensitive=true)", "min", "max", "sum", "sum(start=10)",
            "reverse | list", "join", "join('-')", "batch(2) | list", "batch(2, 'f') | list", "slice(2) | list", "slice(2, 'f') | list", "flatten", "flatten(1)", "flatten(levels=1, skip_nulls=false)",
            "map('string') | list", "map('int') | list", "map('default', 'd') | list", "map('first') | list", "map('length') | list", "select('number') | list", "reject('string') | list",
            "select | list", "reject | list", "select('equalto', 1) | list", "select('>', 1) | list", "reject('none') | list", "union([1, 'z'])", "intersect([1, 'db'])", "difference([1, 'db'])",
            "symmetric_difference([1, 'z'])", "zip([7, 8]) | list", "zip([7, 8], 'ab') | list", "zip_longest([7], fillvalue='f') | list", "product([1, 2]) | list", "permutations(2) | list",
            "combinations(2) | list", "shuffle(seed='s') | length", "to_json", "to_nice_yaml", "dict2items", "items2dict", "list | tojson", "contains(1)",
            "dict", "groupby(0)", "extract([1])", "subelements('x')", "combine({})", "rekey_on_member('x')", "string", "wordcount", "indent", "map('bool') | list",
            "map('regex_replace', 'a', 'o') | list", "map('type_debug') | list", "batch(0) | list", "path_join", "items | list", "ansible.builtin.flatten"]
OF_MAPS = ["dict2items", "dict2items(key_name='k', value_name='v')", "dictsort", "dictsort(true)", "dictsort(by='value')", "dictsort(reverse=true)", "items | list", "list", "length", "first",
           "combine({'a': 9})", "combine({'x': {'w': 1}}, recursive=true)", "combine({'x': {'y': [2]}}, recursive=true, list_merge='append')", "combine({'x': {'y': [2]}}, recursive=true, list_merge='append_rp')",
           "combine({'a': 9}, {'z': 0})", "to_json(sort_keys=true)", "to_nice_json", "to_yaml", "to_nice_yaml(indent=4)", "join(',')", "sort", "min", "max", "tojson", "string", "xmlattr",
           "map('upper') | list", "urlencode", "unique", "reverse | list", "hash", "subelements('x')", "groupby('x')"]
OF_USERS = ["map(attribute='name') | list", "map(attribute='os.family') | list", "map(attribute='groups.0', default='none') | list", "map(attribute='missing', default=0) | list", "selectattr('age', 'gt', 26) | list",
            "selectattr('age', 'equalto', 30) | map(attribute='name') | list", "rejectattr('groups') | list", "selectattr('os.family', 'in', ['Debian']) | list | length", "selectattr('missing', 'defined') | list",
            "selectattr('missing', 'undefined') | list | length", "sort(attribute='age') | map(attribute='name') | list", "sort(attribute='age,name') | map(attribute='name') | list",
            "sort(attribute='name', case_sensitive=true) | map(attribute='name') | list", "groupby('age') | list", "groupby('os.family') | map('first') | list", "groupby('missing', default='m') | list", "sum(attribute='age')", "min(attribute='age')",
            "max(attribute='name')", "unique(attribute='age') | list", "subelements('groups')", "subelements('groups') | length", "rekey_on_member('name')", "items2dict(key_name='name', value_name='age')",
            "map('dict2items') | list | length", "map('combine', {'x': 1}) | list", "map('extract', {'ann': 1}) | list", "to_nice_yaml", "to_json", "map(attribute=0) | list",
            "map('to_json') | list", "zip(names) | list | length", "first | items | list", "selectattr('name', 'match', '^[a-z]') | map(attribute='name') | join(' ')",
            "selectattr('name', 'search', 'B') | list | length", "selectattr('groups', 'contains', 'a') | list | length", "rejectattr('age', '==', 30) | map(attribute='name') | first"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence", "iterable", "callable", "sameas(true)", "odd", "even",
         "divisibleby(2)", "lower", "upper", "escaped", "eq(1)", "ne(1)", "lt(2)", "le(2)", "gt(2)", "ge(2)", "equalto('x')", "in([1, 2])", "in('Karmada')", "contains('a')", "match('[a-z]')",
         "search('a')", "regex('^K')", "fullmatch('.*')", "subset([1, 2, 3])", "superset([1])", "truthy", "truthy(convert_bool=true)", "falsy", "all", "any", "version('1.2', '>')",
         "version('1.19.0', '<', strict=true)", "version('1.19.0-rc.0', 'ge', version_type='semver')", "nan", "abs", "exists", "file", "directory", "link", "mount", "uri", "url", "urn", "filter", "test",
         "vault_encrypted", "succeeded", "failed", "changed", "skipped", "timedout"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
OPERANDS = ["zero", "seven", "minus", "half", "whole", "yes_", "none_", "empty", "word", "number", "numbers", "names", "nothing", "mapping", "void", "missing_"]
OF_TEXT_METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "lstrip()", "rstrip()", "strip('Ka')", "split()", "split('a')", "split(',', 1)", "split(maxsplit=1)", "rsplit('a', 1)", "rsplit(None, 1)",
                   "splitlines()", "splitlines(true)", "partition('a')", "rpartition('a')", "replace('a', 'b')", "replace('a', 'b', 1)", "startswith('K')", "startswith(('K', 't'))", "endswith('a')", "endswith(('x', 'a'))",
                   "find('a')", "rfind('a')", "index('a')", "rindex('a')", "count('a')", "join(['x', 'y'])", "isdigit()", "isalpha()", "isalnum()", "isspace()", "isupper()", "islower()", "istitle()", "isnumeric()", "isdecimal()",
                   "isidentifier()", "isascii()", "isprintable()", "zfill(10)", "ljust(12)", "ljust(12, '.')", "rjust(12)", "center(12, '*')", "expandtabs(4)", "encode('utf-8') | type_debug", "casefold()", "removeprefix('Kar')",
                   "removesuffix('ada')", "format()", "translate({97: 'b'})", "__len__()", "nosuchmethod()"]
OF_LIST_METHODS = ["index(1)", "count(3)", "copy()", "append(1)", "extend([1])", "pop()", "insert(0, 'x')", "reverse()", "sort()", "remove(1)", "clear()"]
OF_MAP_METHODS = ["keys() | list", "values() | list", "items() | list", "get('a')", "get('zz')", "get('zz', 'd')", "copy()", "pop('a')", "update({'q': 1})", "setdefault('q', 1)", "popitem()", "fromkeys(['a'])", "has_key('a')"]
INDEXES = ["[0]", "[::-1]", "[-1]", "[1:]", "[:2]", "[::2]", "[1:-1]", "[-2:]", "['a']", "['x']['y'][0]", ".a", ".x.y[1].z", ".0", "[99]", "['zz'] | default('d')", ".zz.yy | default('d')", "[half]"]
FORMATS = ["'%s' % {0}", "'%d' % {0}", "'%5.2f|' % {0}", "'%-8s|' % {0}", "'%05d' % {0}", "'%x' % {0}", "'%s and %s' % ({0}, 1)", "'%(a)s' % mapping ~ {0}", "'{{}}'.format({0})", "'{{:>6}}'.format({0})", "'{{0!r}}'.format({0})", "'%r' % {0}"]


def expressions():
    for name in ALL:
        for filter_ in ANY:
            yield f"{{{{ {name} | {filter_} }}}}"
        for test in TESTS:
            yield f"{{{{ {name} is {test} }}}}"
        for index in INDEXES:
            yield f"{{{{ {name}{index} }}}}"
        for form in FORMATS:
            yield "{{ " + form.format(name) + " }}"
        yield f"{{{{ {name} }}}}"
        yield f"a {{{{ {name} }}}} b"
        yield f"{{% if {name} %}}t{{% else %}}f{{% endif %}}"
        yield f"{{% for x in {name} %}}{{{{ loop.index }}}}{{{{ x }}}}{{{{ ',' if not loop.last }}}}{{% else %}}none{{% endfor %}}"
        yield f"{{{{ not {name} }}}}"
        yield f"{{{{ {name} is not defined }}}}"
        yield f"{{{{ [{name}, {name}] }}}}"
        yield f"{{{{ {{'k': {name}}} }}}}"
        yield f"{{{{ ({name},) }}}}"
        yield f"{{{{ -{name} }}}}"
        yield f"{{{{ +{name} }}}}"
    for names, filters in [(TEXTS, OF_TEXTS), (NUMBERS, OF_NUMBERS), (LISTS, OF_LISTS), (MAPS, OF_MAPS), (["users"], OF_USERS)]:
        for name in names:
            for filter_ in filters:
                yield f"{{{{ {name} | {filter_} }}}}"
    for names, methods in [(TEXTS, OF_TEXT_METHODS), (LISTS, OF_LIST_METHODS), (MAPS, OF_MAP_METHODS)]:
        for name in names:
            for method in methods:
                yield f"{{{{ {name}.{method} }}}}"
    for one in OPERANDS:
        for operator in OPERATORS:
            for other in OPERANDS:
                # A power of these is a number that fills the machine.
                if operator != "**" or {one, other} <= {"zero", "seven", "minus", "half", "whole", "yes_"}:
                    yield f"{{{{ {one} {operator} {other} }}}}"
