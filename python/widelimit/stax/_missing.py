"""Names of neural_tangents.stax that have another way here: each says which."""


def _missing(name, instead):
    def missing(*args, **kwargs):
        raise NotImplementedError(f"stax.{name}: {instead}")

    missing.__name__ = name
    missing.__doc__ = f"Not here: {instead}."
    return missing


layer = _missing("layer", "write a layer with widelimit.layers.elementwise() or elementwise_dual()")
requires = _missing("requires", "requirements are found from the layers")
supports_masking = _missing("supports_masking", "all layers know masks")
unmask_fn = _missing("unmask_fn", "outputs have no masks; index them with the inputs' masks")
