"""Questions that neural-tangents' tests ask, as a table: name -> (inputs, expression). The expression gives arrays, or lists and tuples of
them, of the names nt, stax, predict, jax, jnp, np and those of the inputs; questions.npz has what neural-tangents answered:

    pip install "jax==0.4.30" "jaxlib==0.4.30" "numpy<2" "neural-tangents==0.6.5"
    python questions.py         writes questions.npz beside this file; takes some minutes
"""

import pathlib
from itertools import product

import numpy as np

HERE = pathlib.Path(__file__).parent


def inputs():
    """Arrays by their names, the same everywhere."""
    random = np.random.default_rng(5)
    x, y, u, v = (random.normal(size=shape) for shape in ((3, 4), (2, 4), (3, 2), (2, 2)))
    s, t, i, j = (random.normal(size=shape) for shape in ((3, 5, 4), (2, 5, 4), (2, 4, 5, 3), (2, 4, 5, 3)))
    p, q = (random.uniform(size=(n, 5, 5)) for n in (3, 2))
    m, n = s.copy(), t.copy()
    m[0, 3:] = m[2, 4:] = n[1, 2:] = 10.0
    return {"x": x, "y": y, "u": u, "v": v, "s": s, "t": t, "i": i, "j": j, "p": p, "q": q, "m": m, "n": n,
            "targets": random.normal(size=(3, 2))}


def _parameters(network, shapes):
    """Parameters of a network that no generator of random numbers has to agree on."""
    return (f"jax.tree_util.tree_map(lambda a: jnp.asarray(np.cos(np.arange(a.size)).reshape(a.shape)), jax.eval_shape(lambda key: "
            f"{network}[0](key, {shapes})[1], jax.random.PRNGKey(0)))")


def _questions():
    found = {}

    def ask(name, expression):
        found[name] = expression

    both = "('nngp', 'ntk')"
    # Layers without spatial axes.
    for kind, bias, get in product(("Conv", "ConvLocal", "ConvTranspose"), (None, 0.0, 0.1), ("'nngp'", "'ntk'", "'cov1'")):
        ask(f"no axes/{kind}/{bias}/{get}", f"stax.serial(stax.{kind}(8, (), W_std=1.3, b_std={bias}), stax.Relu(), stax.Dense(1))[2](x, y, {get})")
    for layer in ("AvgPool(())", "SumPool(())", "GlobalAvgPool()", "GlobalSumPool()", "Flatten()", "LayerNorm()", "Identity()"):
        ask(f"no axes/{layer}", f"stax.serial(stax.Dense(8), stax.{layer}, stax.Dense(3), stax.Relu(), stax.Dense(1))[2](x, y, {both})")
        ask(f"no axes/{layer}/apply", f"stax.{layer}[1]((), x)")
    for mechanism, where, biases in product(("SOFTMAX", "IDENTITY", "RELU", "ABS"), ("x", "y"), (None, 0.2)):
        ask(f"no axes/attention/{mechanism}/{where}/{biases}", f"stax.serial(stax.GlobalSelfAttention(8, 4, 4, 2, W_key_std=1.2, "
            f"W_value_std=0.8, attention_mechanism='{mechanism}', b_std={biases}), stax.Relu(), stax.Dense(1))[2](x, {where}, {both})")
    for kind, values in product(("SUM", "CONCAT"), (False, True)):
        ask(f"no axes/encodings/{kind}/{values}", f"stax.serial(stax.GlobalSelfAttention(8, 4, 4, 2, pos_emb_type='{kind}', n_chan_pos_emb={3 if kind == 'CONCAT' else None}, "
            f"W_pos_emb_std=0.7, val_pos_emb={values}, attention_mechanism='IDENTITY'), stax.Dense(1))[2](x, y, {both})")
    # Functions of finite width on arrays of any shape.
    for layer, shape in product(("Relu()", "Erf()", "Gelu()", "ABRelu(0.3, 2.0)", "Polynomial([1.0, 2.0])", "Polynomial([])", "Sin(2.0, 1.5)", "Rbf(0.7)",
                                 "Exp(0.3)", "Gaussian()", "Sigmoid_like()", "Abs()", "Sign()", "Cos()", "LeakyRelu(0.2)", "Hermite(3)",
                                 "Monomial(3)", "RectifiedMonomial(2)"), ("x", "x[0]", "jnp.asarray(x[0, 0])", "s")):
        ask(f"elementwise/{layer}/{shape}", f"stax.{layer}[1]((), {shape})")
    for bias in (None, 0.0, 0.3):
        params = "[(w1, {0}), (), (w2, {1})]".format(*("None", "None") if bias is None else ("b1", "b2"))
        of_net = (f"(lambda w1, b1, w2, b2: (lambda z: stax.serial(stax.Dense(5, 1.2, {bias}), stax.Erf(), stax.Dense(2, 1.0, {bias}))[1]({params}, z)))"
                  "(jnp.asarray(q[0, :4]), jnp.asarray(p[:1, 0]), jnp.asarray(p[0, :, :2]), jnp.asarray(q[:1, 0, :2]))")
        ask(f"points/{bias}", f"jax.jit({of_net})(x[0])")
        ask(f"points/{bias}/vmap", f"jax.jit(jax.vmap({of_net}))(x)")
        ask(f"points/{bias}/slopes", f"jax.jit(jax.vmap(jax.jacfwd({of_net})))(x)")
        ask(f"points/{bias}/positions", f"jax.jit({of_net})(s)")
    # Several inputs and outputs.
    two = "stax.serial(stax.Dense(8), stax.Relu(), stax.FanOut(2), stax.parallel(stax.Dense(1), stax.serial(stax.Dense(4), stax.Erf(), stax.Dense(2))))"
    of_two = "stax.serial(stax.parallel(stax.Dense(8, 1.2, 0.1), stax.Dense(8)), stax.FanIn{}(), stax.{}(), stax.Dense(1))"
    around = ("stax.serial(stax.parallel(stax.Dense(8), stax.Dense(8)), stax.serial(stax.FanInSum(), stax.Dense(5), stax.FanOut(3)), "
              "stax.parallel(stax.Dense(1), stax.Relu(), stax.serial(stax.Dense(2), stax.Relu())))")
    nested = ("stax.parallel(stax.Dense(3), stax.parallel(stax.Dense(2), stax.serial(stax.Dense(4), stax.FanOut(2), stax.parallel(stax.Relu(), "
              "stax.Dense(2)), stax.FanInConcat(-1), stax.Dense(3))))")
    for get in ("'nngp'", "'ntk'", "'cov1'", both):
        ask(f"outputs/{get}", f"{two}[2](x, y, {get})")
        ask(f"outputs/{get}/one", f"{two}[2](x, None, {get})")
        ask(f"around/{get}", f"{around}[2]((x, u), (y, v), {get})")
        ask(f"nested/{get}", f"{nested}[2]((x, (u, x)), (y, (v, y)), {get})")
        for join, after in product(("Sum", "Prod", "Concat"), ("Identity", "Dense2")):
            source = of_two.format(join, "Identity" if after == "Identity" else "serial")
            source = source.replace("stax.serial()", "stax.Dense(3)")
            ask(f"inputs/{join}/{after}/{get}", f"{source}[2]((x, u), (y, v), {get})")
            ask(f"inputs/{join}/{after}/{get}/one", f"{source}[2]([x, u], None, {get})")
        if "ntk" not in get:  # Of no weights neural-tangents gives the number 0.
            ask(f"fan out/{get}", f"stax.FanOut(3)[2](x, y, {get})")
        ask(f"batch/{get}", f"stax.serial(stax.parallel(stax.Dense(3), stax.Dense(3)), stax.FanInConcat(0), stax.Dense(2), stax.Relu(), stax.Dense(1))[2]((x, x[:1]), (y, y), {get})")
        ask(f"branches in batch/{get}", f"stax.serial(stax.Dense(4), stax.FanOut(2), stax.parallel(stax.Dense(3), stax.serial(stax.Relu(), stax.Dense(3))), stax.FanInConcat(0), stax.Dense(1))[2](x, y, {get})")
        ask(f"kernels in/{get}", f"stax.serial(stax.FanInSum(), stax.Dense(1))[2]([stax.Dense(2)[2](x, y), stax.Dense(2)[2](u, v)], None, {get})")
    ask("inputs/jit", f"jax.jit({of_two.format('Sum', 'Identity')}[2], static_argnums=2)((x, u), (y, v), 'ntk')")
    ask("inputs/grad", f"jax.jit(jax.grad(lambda a: ({of_two.format('Sum', 'Dense').replace('Dense()', 'Dense(3)')}[2]((a, u), (y, v), 'ntk') ** 2).sum()))(jnp.asarray(x))")
    ask("outputs/grad", f"jax.jit(jax.grad(lambda a: sum((k ** 2).sum() for k in {two}[2](a, y, 'ntk'))))(jnp.asarray(x))")
    for name, network, shapes, data in (("outputs", two, "(3, 4)", "x"), ("around", around, "((3, 4), (3, 2))", "(x, u)"),
                                        ("nested", nested, "((3, 4), ((3, 2), (3, 4)))", "(x, (u, x))")):
        drawn = f"(lambda f: jax.jit(lambda params: {{}})({_parameters('f', shapes)}))({network})"
        ask(f"{name}/shapes", f"np.concatenate([np.array(a.shape) for a in jax.tree_util.tree_leaves(jax.eval_shape(lambda key: {network}[0](key, "
            f"{shapes})[1], jax.random.PRNGKey(0)))])")
        ask(f"{name}/apply", drawn.format(f"f[1](params, {data})"))
        for get in ("'nngp'", "'ntk'", "None"):
            ask(f"{name}/empirical/{get}", drawn.format(f"nt.empirical_kernel_fn(f[1])({data}, None, {get}, params)"))
        ask(f"{name}/linearize", drawn.format(f"nt.linearize(f[1], params)(jax.tree_util.tree_map(lambda a: 1.1 * a, params), {data})"))
        ask(f"{name}/taylor", drawn.format(f"nt.taylor_expand(f[1], params, 2)(jax.tree_util.tree_map(lambda a: 1.1 * a, params), {data})"))
    # Keywords that jit traces, axes, graphs.
    for shape, name in (("m", "conv"), ("m", "flat")):
        end = "stax.GlobalAvgPool(), stax.Dense(1)" if name == "conv" else "stax.Flatten(), stax.Dense(2)"
        source = f"stax.serial(stax.Conv(4, (3,), padding='SAME', b_std=0.1), stax.Relu(), {end})[2]"
        for get in ("'nngp'", "'ntk'", "'cov1'", both):
            ask(f"traced mask/{name}/{get}", f"jax.jit({source}, static_argnames='get')(m, n, get={get}, mask_constant=10.0)")
    for get, pool in product(("'nngp'", "'ntk'", both), ("GlobalAvgPool", "GlobalSumPool", "Flatten")):
        ask(f"traced pattern/{pool}/{get}", f"jax.jit(stax.serial(stax.Dense(4), stax.Relu(), stax.Aggregate(), stax.{pool}(), stax.Dense(1))[2], "
            f"static_argnames='get')(s, t, get={get}, pattern=(jnp.asarray(p), jnp.asarray(q)))")
    # Attention of finite width.
    for values, linear, kind, in_values in product((4, 6), (True, False), ("NONE", "SUM", "CONCAT"), (False, True)):
        layer = (f"stax.GlobalSelfAttention(5, 4, {values}, 2, linear_scaling={linear}, b_std=0.2, pos_emb_type='{kind}', n_chan_pos_emb={3 if kind == 'CONCAT' else None}, "
                 f"val_pos_emb={in_values}, W_pos_emb_std=0.7)")
        ask(f"attention/{values}/{linear}/{kind}/{in_values}", f"(lambda f: jax.jit(f[1])({_parameters('f', 's.shape')}, s))({layer})")
    # Empirical kernels with axes.
    for trace, diagonal, get in product(("()", "(-1,)", "(1,)"), ("()", "(-1,)", "(1,)"), ("'nngp'", "'ntk'")):
        if trace == diagonal or {trace, diagonal} == {"(-1,)", "(1,)"}:
            if trace != "()":
                continue
        ask(f"axes/{trace}/{diagonal}/{get}", "(lambda f: jax.jit(lambda params: nt.empirical_kernel_fn(f[1], trace_axes={0}, diagonal_axes={1})(x, y, {2}, params))({3}))"
            "(stax.serial(stax.Dense(5, 1.2, 0.1), stax.Erf(), stax.Dense(3)))".format(trace, diagonal, get, _parameters("f", "x.shape")))
    for rules in ("_j_rules=True", "_s_rules=False", "_fwd=True", "vmap_axes=0", "implementation=1", "implementation=2"):
        ask(f"implementations/{rules}", f"(lambda f: jax.jit(lambda params: nt.empirical_ntk_fn(f[1], {rules})(x, y, params))({_parameters('f', 'x.shape')}))"
            "(stax.serial(stax.Dense(5, 1.2, 0.1), stax.Relu(), stax.Dense(3)))")
    # Gradient descent over time.
    kernel = "stax.serial(stax.Dense(8, 1.2, 0.1), stax.Relu(), stax.Dense(1, 1.2, 0.1))[2]"
    for time, get in product(("None", "0.0", "1.0", "20.0"), ("'nngp'", "'ntk'")):
        ask(f"ensembles/{time}/{get}", f"predict.gradient_descent_mse_ensemble({kernel}, x, targets, diag_reg=1e-3)({time}, x_test=y, get={get}, compute_cov=True)")
    for time, rate in product(("0.5", "10.0", "None"), (1.0, 0.3)):
        ask(f"flows/{time}/{rate}", f"predict.gradient_descent_mse({kernel}(x, None, 'ntk'), targets, learning_rate={rate}, diag_reg=1e-4)"
            f"({time}, jnp.zeros((3, 2)), jnp.ones((2, 2)), {kernel}(y, x, 'ntk'))")
    return found


QUESTIONS = _questions()


def answer(expression, nt, stax, predict):
    """The arrays of an answer, in their order."""
    import jax
    import jax.numpy as jnp

    scope = {"nt": nt, "stax": stax, "predict": predict, "jax": jax, "jnp": jnp, "np": np, **inputs()}
    return [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(eval(expression, scope))]


def main():
    import warnings

    import jax
    import neural_tangents
    from neural_tangents import predict, stax

    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    numbers = {}
    for name, expression in QUESTIONS.items():
        try:
            for k, array in enumerate(answer(expression, neural_tangents, stax, predict)):
                numbers[f"{name}/{k}"] = array
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}")
    np.savez_compressed(HERE / "questions.npz", **numbers)


if __name__ == "__main__":
    main()
