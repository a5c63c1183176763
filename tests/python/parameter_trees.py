"""Parameters as init_fn nests them: lists and tuples of arrays and None."""


def leaves(tree):
    if tree is None:
        return []
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, (list, tuple)) else [tree]


def mapped(function, tree, *others):
    """The same nesting of function(array, ...)."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(function, *parts) for parts in zip(tree, *others))
    return None if tree is None else function(tree, *others)


def form(tree):
    """Kinds and shapes."""
    if isinstance(tree, (list, tuple)):
        return [type(tree).__name__, *map(form, tree)]
    return None if tree is None else list(tree.shape)
