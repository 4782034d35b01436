"""The reference: own_twice, beside it, is the same for windlass."""


class FilterModule:
    def filters(self):
        return {"own_twice": lambda value, times=2, **named: [value] * times + sorted(named.items())}
