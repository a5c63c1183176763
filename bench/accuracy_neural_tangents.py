"""accuracy_neural_tangents.py CASES.npz RESULTS.npz: kernels of neural-tangents for bench/accuracy.py, which calls this file
with a Python that has neural-tangents. CASES holds a list of cases in JSON and the batches that they name; of each case, RESULTS
holds the kernels after its layer, and the covariances before it where it asks for them, or what neural-tangents says."""
import json
import sys

import numpy as np


def activation(stax, kind, f):
    """The layer of a kind with all fields, null for one that neural-tangents has not."""
    makers = {
        "relu": lambda: stax.Relu(),
        "leaky_relu": lambda: stax.LeakyRelu(f["slope"]),
        "abs": lambda: stax.Abs(),
        "identity": lambda: stax.Identity(),
        "sign": lambda: stax.Sign(),
        "erf": lambda: stax.Erf(f["a"], f["b"], f["d"]),
        "gelu": lambda: stax.Gelu(),
        "sin": lambda: stax.Sin(f["a"], f["b"], f["c"]),
        "cos": lambda: stax.Cos(f["a"], f["b"], f["c"]),
        "exp": lambda: stax.Exp(f["a"], f["b"]),
        "gaussian": lambda: stax.Gaussian(f["a"], f["b"]),
        "rbf": lambda: stax.Rbf(f["gamma"]),
        "polynomial": lambda: stax.Polynomial(f["coefficients"]),
        "hermite": lambda: stax.Hermite(f["degree"]),
        "sigmoid_like": lambda: stax.Sigmoid_like(),
        "gabor": lambda: stax.Gabor(),
        "ab_relu": lambda: stax.ABRelu(f["a"], f["b"]),
        "monomial": lambda: stax.Monomial(f["degree"]),
        "rectified_monomial": lambda: stax.RectifiedMonomial(f["degree"]),
        "exp_normalized": lambda: stax.ExpNormalized(f["gamma"], f["shift"]),
        "layer_norm": lambda: stax.LayerNorm(axis=tuple(f.get("axis", [-1])), eps=f["epsilon"]),
    }
    return makers[kind]() if kind in makers else None


def attention(stax, f):
    """Of the fields of an attention layer; null for options that neural-tangents has not."""
    known = {"scaling", "weights", "query_key_std", "output_value_variance", "bias_variance", "positions"}
    mechanisms = {"softmax": "SOFTMAX", "identity": "IDENTITY", "relu": "RELU", "abs": "ABS"}
    if not set(f) <= known or f["weights"] not in mechanisms:
        return None
    encodings = {}
    if "positions" in f:
        if f["positions"]["kind"] != "identity":
            return None
        encodings = {"pos_emb_type": "SUM", "W_pos_emb_std": f["positions"]["position_weight"]**0.5}
    return stax.GlobalSelfAttention(1, 1, 1, 1, linear_scaling=f["scaling"] == "inverse_width", W_key_std=1, W_query_std=f["query_key_std"],
                                    W_value_std=f["output_value_variance"]**0.5, W_out_std=1, b_std=f["bias_variance"]**0.5,
                                    attention_mechanism=mechanisms[f["weights"]], **encodings)


def results_of(case, batches):
    from neural_tangents import stax

    kind, fields = case["kind"], case["fields"]
    layer = attention(stax, fields) if kind == "attention" else activation(stax, kind, fields)
    if layer is None:
        return {}
    x, y = batches[case["x"]], batches[case["y"]]
    more = {"mask_constant": case["mask_constant"]} if "mask_constant" in case else {}
    found = stax.serial(stax.Dense(1), layer)[2](x, y, ("nngp", "ntk"), **more)
    results = {"nngp": found.nngp, "ntk": found.ntk}
    if case["covariances"]:
        before = stax.Dense(1)[2](x, y, ("nngp", "cov1", "cov2"))
        results.update(c=before.nngp, p=before.cov1, q=before.cov2)
    return {name: np.asarray(value) for name, value in results.items()}


def main():
    import jax

    given = np.load(sys.argv[1])
    cases = json.loads(str(given["cases"]))
    jax.config.update("jax_enable_x64", any(given[case["x"]].dtype == np.float64 for case in cases))
    results = {}
    for number, case in enumerate(cases):
        try:
            for name, value in results_of(case, given).items():
                results[f"{number}/{name}"] = value
        except (NotImplementedError, ValueError) as error:
            results[f"{number}/refusal"] = np.array(" ".join(str(error).split()))
    np.savez(sys.argv[2], **results)


if __name__ == "__main__":
    main()
