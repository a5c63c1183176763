"""Names of neural_tangents.stax that have another way here: each says which."""


def missing(name, instead):
    def absent(*args, **kwargs):
        raise NotImplementedError(f"{name}: {instead}")

    absent.__name__ = name
    absent.__doc__ = f"Not here: {instead}."
    return absent


layer = missing("stax.layer", "write a layer with widelimit.layers.elementwise() or elementwise_dual()")
requires = missing("stax.requires", "requirements are found from the layers")
supports_masking = missing("stax.supports_masking", "all layers know masks")
Bool = missing("stax.Bool", "requirements are found from the layers")
Diagonal = missing("stax.Diagonal", "requirements are found from the layers; kernel_fn takes diagonal_spatial")
MaskedArray = missing("stax.MaskedArray", "give inputs with a mask_constant")


def unmask_fn(fn):
    """The function itself: outputs of apply_fn are arrays without masks."""
    return fn
