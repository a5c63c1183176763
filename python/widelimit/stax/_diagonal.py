"""Which positions of a kernel a network needs, as neural-tangents decides it: all pairs, or each with itself."""

from dataclasses import dataclass

NO, MAYBE, YES = range(3)


@dataclass(frozen=True)
class Diagonal:
    """The demands of a layer, or of several: may the kernel before it hold only variances of positions (`before`), and may the
    one after it (`behind`)? MAYBE: if all others are 0."""

    before: int = YES
    behind: int = NO

    def then(self, other):
        """The demands of this layer followed by another one."""
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
        """The demands of two branches together."""
        return Diagonal(min(self.before, other.before), min(self.behind, other.behind))

    def __bool__(self):
        return self.before == YES and self.behind > NO


def folded(modules, join):
    """The demands of several modules, joined by Diagonal.then or Diagonal.beside; None if none of them has any."""
    result = None
    for module in modules:
        if module.diagonal is not None:
            result = module.diagonal if result is None else join(result, module.diagonal)
    return result
