"""The reference: own_letters, beside it, is the same for windlass."""

from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    def run(self, terms, variables=None, **named):
        return [letter + named.get("end", "") for term in terms for letter in term]
