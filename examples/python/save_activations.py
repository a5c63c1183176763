"""Activations and attention weights of a transformer, in the files that `widelimit propagation measure` reads.

    python save_activations.py bert-base-uncased texts.txt activations --tokens 128
    widelimit propagation measure activations --mask activations/mask.npy

MODEL is a name or a folder of Hugging Face's `transformers`, which needs PyTorch; the texts are one a line. For a model of your
own, call record() around its forward pass and save() with what it returns.
"""

import argparse
import contextlib
import pathlib

import numpy as np


def array_of(tensor):
    """A tensor of PyTorch as an array of the same numbers: NumPy has no bfloat16, whose numbers are exact in float32."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach()
        tensor = (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).cpu().numpy()
    array = np.asarray(tensor)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def first_of(output):
    """Blocks return their tokens, or a tuple that begins with them."""
    return output[0] if isinstance(output, (tuple, list)) else output


@contextlib.contextmanager
def record(blocks):
    """Inside the context every call of the model appends to the list it gives: the input of the first of these modules, and the
    output of each, as arrays [sequences, tokens, width]."""
    runs = []

    def before(module, args, kwargs):
        runs.append([array_of(args[0] if args else kwargs["hidden_states"])])

    def after(module, args, output):
        runs[-1].append(array_of(first_of(output)))

    handles = [blocks[0].register_forward_pre_hook(before, with_kwargs=True)]
    handles += [block.register_forward_hook(after) for block in blocks]
    try:
        yield runs
    finally:
        for handle in handles:
            handle.remove()


def save(folder, layers, attention=(), mask=None):
    """Writes layer_K.npy of activations [sequences, tokens, width], attention_K.npy of weights [sequences, heads, tokens, tokens],
    and mask.npy [sequences, tokens], false for padding. Files of another run in the folder are removed."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("layer_*.npy", "attention_*.npy", "mask.npy"):
        for old in folder.glob(pattern):
            old.unlink()
    for k, layer in enumerate(layers):
        np.save(folder / f"layer_{k}.npy", array_of(layer))
    for k, weights in enumerate(attention):
        np.save(folder / f"attention_{k}.npy", array_of(weights))
    if mask is not None:
        np.save(folder / "mask.npy", array_of(mask).astype(bool))


def joined(batches):
    """Batches of one list of arrays each as one list."""
    return [np.concatenate(parts) for parts in zip(*batches)]


def blocks_of(model):
    """The blocks of a model of `transformers`: its list of as many modules as its configuration says."""
    depth = model.config.num_hidden_layers
    for module in model.modules():
        if type(module).__name__ == "ModuleList" and len(module) == depth:
            return module
    raise SystemExit(f"expected a ModuleList of {depth} blocks in {type(model).__name__}, found none: call record() with its blocks")


def run_hugging_face(name, texts, tokens, batch, with_attention, dtype):
    """(layers, attention, mask) of the model's blocks on padded texts."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(name)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    # Only this implementation makes weights that can be looked at.
    options = {"attn_implementation": "eager"} if with_attention else {}
    model = transformers.AutoModel.from_pretrained(name, torch_dtype=getattr(torch, dtype), **options).eval()
    attention, masks = [], []
    with record(blocks_of(model)) as runs, torch.no_grad():
        for start in range(0, len(texts), batch):
            given = tokenizer(texts[start:start + batch], padding="max_length", truncation=True, max_length=tokens,
                              return_tensors="pt")
            found = model(**given, output_attentions=with_attention)
            masks.append([array_of(given["attention_mask"])])
            if with_attention:
                attention.append([array_of(weights) for weights in found.attentions])
    return joined(runs), joined(attention), joined(masks)[0]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="name or folder of a model of transformers")
    parser.add_argument("texts", type=pathlib.Path, help="file of texts, one a line")
    parser.add_argument("folder", type=pathlib.Path, help="where layer_0.npy, ... go")
    parser.add_argument("--tokens", type=int, default=128, help="longer texts are cut, shorter ones padded [128]")
    parser.add_argument("--batch", type=int, default=8, help="texts at a time [8]")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"), help="of the model [float32]")
    parser.add_argument("--no-attention", action="store_true", help="leave out attention_0.npy, ...")
    given = parser.parse_args(arguments)
    texts = [line for line in given.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    layers, attention, mask = run_hugging_face(given.model, texts, given.tokens, given.batch, not given.no_attention, given.dtype)
    # A text of one token has no angle.
    long = mask.sum(axis=1) > 1
    save(given.folder, [layer[long] for layer in layers], [weights[long] for weights in attention], mask[long])
    print(f"{given.folder}: {len(layers)} layers {layers[0][long].shape}, {len(attention)} arrays of attention weights")


if __name__ == "__main__":
    main()
