"""Networks of finite width, whose parameters, inputs and outputs parameters.npz has as neural-tangents gave them (0.6.5, in
double precision): `python parameter_cases.py` makes it, in an environment as make_cases.py wants it, in a minute.

For every network: NAME/form, the nesting of its parameters with their shapes as JSON; NAME/0, 1, ...: the arrays in order;
NAME/x and NAME/outputs.
"""

import json
import pathlib

import numpy as np

# (expression of stax, shape of the inputs)
NETWORKS = {
    "dense": ("serial(Dense(7, 1.3, .2), Relu(), Dense(5, parameterization='standard', b_std=.3), Erf(), Dense(2))", (3, 4)),
    "one_layer": ("Dense(4, 1.1, .5)", (3, 4)),
    "biases_of_deviation_0": ("serial(Dense(4, 1.1, 0.), Relu(), Dense(2))", (3, 4)),
    "no_parameters": ("Erf()", (3, 4, 5)),
    "positions": ("serial(Dense(4, b_std=.3), Relu(), Dense(3))", (3, 4, 5)),
    "conv": ("serial(Conv(6, (3, 2), padding='SAME', b_std=.2, W_std=1.5), Relu(), Conv(4, (2, 3), strides=(2, 1)), Flatten(), "
             "Dense(2))", (2, 5, 6, 3)),
    "channels_first": ("serial(Conv(6, (3, 2), padding='CIRCULAR', b_std=.2, dimension_numbers=('NCHW', 'OIHW', 'NCHW')), "
                       "Relu(), GlobalAvgPool(channel_axis=1), Dense(2))", (2, 3, 5, 6)),
    "other_layout_behind": ("serial(Conv(6, (3, 2), padding='SAME', b_std=.2, dimension_numbers=('NHWC', 'HWIO', 'NCHW')), "
                            "Relu(), Conv(3, (2, 2), dimension_numbers=('NCHW', 'WHIO', 'NHWC')), Flatten(), "
                            "Dense(2, b_std=.1))", (2, 5, 6, 3)),
    "conv_local": ("serial(ConvLocal(6, (3, 2), padding='SAME', b_std=.2, W_std=1.5), Relu(), ConvLocal(4, (2, 3), "
                   "strides=(2, 1)), Flatten(), Dense(2))", (2, 5, 6, 3)),
    "conv_transpose": ("serial(ConvTranspose(6, (3, 2), strides=(2, 1), padding='SAME', b_std=.2, W_std=1.5), Relu(), "
                       "ConvTranspose(4, (2, 3), strides=(1, 2)), Flatten(), Dense(2))", (2, 3, 4, 3)),
    "branches": ("serial(Dense(6), FanOut(2), parallel(serial(Dense(8), Relu(), Dense(6)), Identity()), FanInSum(), Relu(), "
                 "Dense(2))", (3, 4)),
    "concat": ("serial(Dense(6), FanOut(2), parallel(serial(Relu(), Dense(8)), Dense(4)), FanInConcat(-1), Dense(2))", (3, 4)),
    "repeat": ("serial(Dense(6), repeat(serial(Relu(), Dense(6, b_std=.2)), 3), Dense(2))", (3, 4)),
    "attention": ("serial(GlobalSelfAttention(6, 4, 4, 3, b_std=.2), GlobalAvgPool(), Dense(2))", (2, 5, 3)),
    "attention_relu": ("serial(GlobalSelfAttention(6, 4, 4, 3, linear_scaling=False, attention_mechanism='RELU', W_out_std=1.3), "
                       "GlobalAvgPool(), Dense(2))", (2, 5, 3)),
    "attention_positions": ("serial(GlobalSelfAttention(6, 4, 4, 3, pos_emb_type='SUM', W_pos_emb_std=.7, val_pos_emb=True), "
                            "GlobalAvgPool(), Dense(2))", (2, 5, 3)),
}


def form(tree):
    if isinstance(tree, (list, tuple)):
        return [type(tree).__name__, *map(form, tree)]
    return None if tree is None else list(tree.shape)


def main():
    import jax
    from neural_tangents import stax

    jax.config.update("jax_enable_x64", True)
    found = {}
    for name, (source, shape) in NETWORKS.items():
        init_fn, apply_fn, _ = eval(source, vars(stax))
        params = init_fn(jax.random.PRNGKey(1), shape)[1]
        x = np.random.default_rng(0).normal(size=shape)
        found.update({f"{name}/{k}": np.asarray(leaf) for k, leaf in enumerate(jax.tree_util.tree_leaves(params))})
        found.update({f"{name}/form": np.asarray(json.dumps(form(params))), f"{name}/x": x,
                      f"{name}/outputs": np.asarray(apply_fn(params, x))})
    np.savez_compressed(pathlib.Path(__file__).parent / "parameters.npz", **found)


if __name__ == "__main__":
    main()
