"""The numbers of neural-tangents for the cases of cases.json, in double:

    pip install "jax==0.4.23" "jaxlib==0.4.23" "numpy<2" "scipy<1.13" "neural-tangents==0.6.5"
    python make_cases.py        writes numbers.npz beside this file; takes ten minutes

A case has a `source`, an expression of stax that gives (init_fn, apply_fn, kernel_fn), with the shape and the numbers of
its inputs, and kernels are computed of inputs drawn with its seed; or `statements` that leave a list of arrays in
`result`. `check` in tests/python/test_neural_tangents.py runs the same with widelimit.
"""

import json
import pathlib
import warnings

import numpy as np

FIELDS = ("nngp", "ntk", "cov1", "cov2")
HERE = pathlib.Path(__file__).parent


def inputs_of(case):
    """x1 [n1, shape..., 3] and x2 or None; with a mask_constant the last positions of some inputs are masked."""
    random = np.random.default_rng(case["seed"])
    batches = [None if n is None else random.normal(size=(n, *case["shape"], 3)) for n in (case["n1"], case["n2"])]
    for x in batches:
        if x is not None and "mask_constant" in case:
            for one in x:
                one[len(one) - int(random.integers(0, max(1, len(one) // 2))):] = case["mask_constant"]
    return batches


def results_of(case, nt, stax, predict):
    """What a case gives, by name."""
    scope = {"np": np, "nt": nt, "stax": stax, "predict": predict}
    if "statements" in case:
        exec(case["statements"], scope)
        return {str(k): np.asarray(array, float) for k, array in enumerate(scope["result"]) if array is not None}
    x1, x2 = inputs_of(case)
    scope.update(x1=x1, x2=x2, r=np.random.default_rng(case["seed"] + 1))
    options = eval(case["more"], scope) if "more" in case else {}
    if "mask_constant" in case:
        options["mask_constant"] = case["mask_constant"]
    if "pre" in case:
        x1, x2 = eval(case["pre"], scope)
    found = eval(case["source"], scope)[2](x1, x2, FIELDS, **options)
    return {name: np.asarray(value) for name, value in zip(FIELDS, found) if value is not None}


def main():
    import jax
    import neural_tangents
    from neural_tangents import predict, stax

    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    numbers = {}
    for case in json.loads((HERE / "cases.json").read_text()):
        for name, array in results_of(case, neural_tangents, stax, predict).items():
            if name not in case.get("without", ()):
                numbers[f"{case['name']}/{name}"] = array
    np.savez_compressed(HERE / "numbers.npz", **numbers)


if __name__ == "__main__":
    main()
