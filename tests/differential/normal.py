"""What is left out when variables are compared, and why."""
import re

# What comes of Python on the hosts, or says which of both it is (to modules of one's own, too: told_*); `diff` is told, and
# no result; words of warnings differ.
OURS_ALONE = re.compile(r"ansible_playbook_python|(ansible_)?python(_.*)?$|discovered_interpreter_python|(ansible_)?facter.*|omit$|_ansible_.*|(failed_when_suppressed_)?exception$|invocation$|diff$|warnings$|deprecations$|frame$|told_.*")
# Values of results that tell when, how long or under which number.
PASSING = {"start", "end", "stop", "delta", "atime", "mtime", "ctime", "inode", "ino", "elapsed", "ansible_job_id", "results_file", "uuid", "erased"}
# Numbers within texts that come of time or chance: a pause, a port that was free.
CHANCE = re.compile(r"(Paused for |http://127\.0\.0\.1:)[0-9.]+")
# Sets in the reference.
UNORDERED = {"ansible_run_tags", "ansible_skip_tags"}
# Files that the reference brings to a host on its way, which windlass does not have.
TEMPORARY = re.compile(r"/\.ansible/tmp/|/ansible-(tmp|moduletmp|local)-")


def normal(value, name=""):
    """A variable without what may differ."""
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if not OURS_ALONE.match(key)
                 and not (isinstance(item, str) and TEMPORARY.search(item))}
        if "ansible_job_id" in value:
            # How often a job was looked after depends on the machine.
            value.pop("attempts", None)
        return {key: normal(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(value) if name in UNORDERED else [normal(item, name) for item in value]
    if name in PASSING:
        return type(value).__name__
    return CHANCE.sub(r"\1N", value) if isinstance(value, str) else value


def pair(host, ours, theirs):
    """The variables of a host as both have them, normalised."""
    ours, theirs = normal(ours), normal(theirs)
    # Facts are compared by tests/differential/facts.
    if "system" in theirs.get("ansible_facts", {}):
        for name in theirs["ansible_facts"]:
            for variables in (ours, theirs):
                variables.pop(f"ansible_{name}", None)
        ours.pop("ansible_facts", None), theirs.pop("ansible_facts", None)
    # As they are when the host's last play ends; a later play may change them.
    ours.pop("groups", None), theirs.pop("groups", None)
    # The implicit localhost of windlass knows where the inventory is (docs/reference/compatibility.md).
    if host == "localhost" and "inventory_dir" not in theirs:
        ours.pop("inventory_dir", None), ours.pop("inventory_file", None)
    align(ours, theirs)
    return ours, theirs


# What a failure says.
WORDS = {"msg", "argument_errors", "cmd", "stderr", "stderr_lines", "failed_when_result", "changed_when_result"}
# Words of the engine in a result: these are the same to the last.
ENGINE = {"changed", "failed", "skipped", "unreachable", "attempts", "results", "rc", "failed_when_result", "skip_reason",
          "false_condition", "skipped_reason", "ansible_loop_var", "ansible_index_var", "item"}


# The kinds of failures, by the words of both. The first that fits counts; a failure of no kind is "other".
KINDS = [
    ("arguments", r"unsupported parameters|missing (required )?(argument|parameter)|mutually exclusive|arguments? .*(required|must be|is of type)|(is|are) required|following are missing"
                  r"|at least one of|has neither"
                  r"|validation of arguments|must be one of|unable to convert|cannot be converted|cannot (be combined|combine)"),
    ("undefined", r"is undefined|undefined variable|no variable named|not defined|has no attribute|has no element"),
    ("variable name", r"variable name"),
    ("recursion", r"recursi"),
    ("syntax", r"syntax error|unexpected (char|token|end)|expected token|template syntax"),
    ("unknown name", r"(no|unknown|could not load|invalid) (such )?(\w+ )?(filter|test|lookup|plugin|module|host|group|setting|config definition)\b"),
    ("request", r"request failed|http error|status code|server responded"),
    ("no such program", r"error executing command|\[errno 2\]"),
    ("validation", r"validate"),
    ("timeout", r"time(d )?[- ]?out|within the requested time"),
    ("output", r"no json object|deserialization"),
    ("exit code", r"non-zero return code|exit(ed with)? (code|status)|\) returned \d"),
    ("permission", r"permission denied|not permitted|access denied|sudo|password"),
    ("type", r"could not be converted|must be a number|(needs|must resolve to) a '?list"),
    ("mismatch", r"does not match"),
    ("missing", r"no such|not found|not exist|cannot find|could not (find|locate)|unable to (find|locate)|there is no|missing|is absent|no file was found|none of these files"),
    ("condition", r"condition|assert|true or false|boolean"),
]
# The reference says that something failed, and not what.
SAYS_NOTHING = {"", "Task failed: Action failed: Unknown error."}


def words(result):
    """The message of a failure on one line, without the place in a file that windlass adds."""
    message = result.get("msg", "")
    message = message if isinstance(message, list) else str(message).split("\n  at ")[0].splitlines()
    return " ".join(" ".join(map(str, message)).split())


def kind(result):
    """What kind of failure a result reports, whatever its wording."""
    if "failed_when_result" in result:
        return "failed_when"
    if result.get("unreachable") is True:
        return "unreachable"
    return next((name for name, pattern in KINDS if re.search(pattern, words(result).lower())), "other")


def compare_failures(ours, theirs):
    """Marks two failures of different kinds. The words themselves may differ."""
    kinds = kind(ours), kind(theirs)
    if kinds[0] != kinds[1] and words(ours) != words(theirs) and words(theirs) not in SAYS_NOTHING:
        for result, which in zip((ours, theirs), kinds):
            result["kind of failure"] = f"{which}: {words(result)}"


def align(ours, theirs):
    """Takes out of two values, deep inside, what need not be the same in results of modules."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if "changed" in ours and ("changed" in theirs or theirs.get("failed") is True):
            if "changed" not in theirs:
                # A template that cannot be rendered.
                ours.pop("changed")
            # A module may tell more than the reference's does; of a failure it need not tell all, and its words are ours.
            for key in ours.keys() - theirs.keys() - ENGINE:
                ours.pop(key)
            if any(ours.get(word) is True is theirs.get(word) for word in ("failed", "unreachable")):
                compare_failures(ours, theirs)
                for key in (theirs.keys() - ours.keys() - ENGINE) | WORDS:
                    ours.pop(key, None), theirs.pop(key, None)
        if "async_val" in theirs and ours.keys() >= {"name", "action"}:
            # ansible_failed_task: of its many attributes those that windlass knows. The text of a free form has a name.
            for key in theirs.keys() - ours.keys():
                theirs.pop(key)
            if "_raw_params" in (theirs.get("args") or {}):
                theirs["args"]["cmd"] = theirs["args"].pop("_raw_params")
        if theirs.get("ansible_failed_task") == "UNDEFINED":
            # Of a loop: the reference cannot show it, as it has templates with the loop's item in it.
            ours.pop("ansible_failed_task"), theirs.pop("ansible_failed_task")
        for key in ours.keys() & theirs.keys():
            align(ours[key], theirs[key])
    elif isinstance(ours, list) and isinstance(theirs, list):
        for one, other in zip(ours, theirs):
            align(one, other)
