"""Which positions of a kernel a network needs, as neural-tangents decides it: all pairs, or each with itself."""

from dataclasses import dataclass

NO, MAYBE, YES = range(3)


@dataclass(frozen=True)
class Diagonal:
    """What a layer, or layers, ask for: may the kernel in front hold variances of positions only (`before`), and may the
    one behind (`behind`)? MAYBE: where all others are 0."""

    before: int = YES
    behind: int = NO

    def then(self, other):
        """Of this and another one after it."""
        if self.behind == YES:
            return self
        if self.behind > NO and other.before > NO:
            before = self.before
        elif self.behind == NO and other.before < YES:
            before = NO
        else:
            before = min(self.before, other.before)
        return Diagonal(before, other.behind)

    def beside(self, other):
        """Of both of two branches."""
        return Diagonal(min(self.before, other.before), min(self.behind, other.behind))

    def __bool__(self):
        return self.before == YES and self.behind > NO


def folded(modules, join):
    """Of several modules by Diagonal.then or Diagonal.beside; None where none of them cares."""
    result = None
    for module in modules:
        if module.diagonal is not None:
            result = module.diagonal if result is None else join(result, module.diagonal)
    return result
