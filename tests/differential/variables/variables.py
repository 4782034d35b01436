"""A callback plugin for the reference: when a playbook has ended, writes the variables of every host to a file of its name."""
import json, os

from ansible.plugins.callback import CallbackBase
from ansible.vars.hostvars import HostVars

DOCUMENTATION = """
name: variables
type: aggregate
short_description: what hosts' variables are in the end
"""


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value if value is None else str(value)


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "variables"
    play = None

    def v2_playbook_on_play_start(self, play):
        self.play = play

    def v2_playbook_on_stats(self, stats):
        if not self.play:
            return
        manager = self.play.get_variable_manager()
        hosts = HostVars(manager._inventory, manager, manager._loader)
        for name in stats.processed:
            variables, found = hosts[name], {}
            for key in variables:
                try:
                    found[key] = plain(variables[key])
                except Exception:
                    found[key] = "UNDEFINED"
            with open(os.path.join(os.environ["DIFFERENTIAL_VARIABLES"], name), "w") as file:
                json.dump(found, file)
