"""The model all-MiniLM-L6-v2, and the judge that was trained from it, as ONNX graphs in int8, written node by node.

The usual recipe (a trace by torch, fused and quantised by onnxruntime's tools) would do, but this gives the same bytes
at every run and with every version of those tools, is closer to the original, and quicker. Cosine to the fp32 model on
548 chunks of 60-300 words, mean / min, and speed beside the usual recipe's, from CPU time:

    fused, per-channel, u8s8: the usual recipe   .9943 / .9863   1.0
    the same on a CPU without VNNI               .9911 / .9743         pairs of products saturate at 16 bits
    the same with reduce_range (7-bit weights)   .9924 / .9843   1.0   nothing saturates, all is coarser
    the same with u8u8                           .9945 / .9879   0.6   nothing saturates
    MatMulNBits, 8 bits, blocks of 128           .9992 / .9985   0.6
    this graph, with VNNI or without             .9988 / .9979   1.2

Without VNNI (onnxruntime 1.31.1, its test for the instruction patched out) the usual recipe takes 37 ms a text, u8u8
44, this graph 32; with VNNI 26, 43 and 22. s8s8 is not in the list: DynamicQuantizeMatMul makes unsigned activations.

1. *Pair-safe scales.* Without VNNI two neighbouring u8·s8 products are added in 16 bits. A column's scale is chosen so
   that no two neighbouring weights of one sign exceed 128 together; 255 · 128 < 32,768, so nothing can saturate.
2. *Loud neurons in fp32.* One or two neurons of four feed-forward layers reach 14 to 24 where the others stay below 8,
   and the whole tensor's 8 bits would be spread over them. They run beside the int8 path, exactly.
3. *Loud channels made quieter.* Inputs of the other matrices are divided per channel, the weights' rows multiplied
   (SmoothQuant). Powers of two: exact, and free of the last-bit differences that calibration runs may have.
4. *RMS norm.* onnxruntime's LayerNormalization takes 0.44 ms for 225 x 384; mean, subtraction and
   SimplifiedLayerNormalization 0.08 ms. The norms' offsets are folded into the biases that follow.

One text a run, no padding, hence no mask; pooling and L2 normalisation are inside. The position table ends at 256, so a
longer input is an error of the runtime and never a silent cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, HEADS, WINDOW = 6, 384, 12, 256
EPSILON = 1e-12  # of the norms, from the model's configuration
LOUD = 10.0  # a neuron that reaches this in calibration runs in fp32; the quiet ones stay below 8.5
BALANCE = 0.6  # SmoothQuant's alpha; of .6 to 1 the best on 200 of the chunks above, all but 1 within .0002
CONTRIB = "com.microsoft"  # onnxruntime's own operators

Array = Any  # numpy's generic arrays would need a parameter at every mention
Weights = dict[str, Array]


class Graph:
    """Nodes and initializers in the order of their making; an initializer is named after what it is for."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def value(self, name: str, array: Array) -> str:
        """A constant."""
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:  # noqa: ANN401  # each operator's own
        """One operation with one output."""
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def linear(self, x: str, weight: Array, bias: Array, name: str) -> str:
        """A matrix in int8: input quantised as it comes, weights per column."""
        quantised, scale = pair_safe(weight)
        inputs = [
            x,
            self.value(f"{name}.weight", quantised),
            self.value(f"{name}.scale", scale),
            self.value(f"{name}.zero", np.zeros(len(scale), np.int8)),
            self.value(f"{name}.bias", bias.astype(np.float32)),
        ]
        return self.node("DynamicQuantizeMatMul", inputs, name, domain=CONTRIB)

    def norm(self, x: str, gain: Array, name: str) -> str:
        """A layer norm without its offset, which the caller folds into what follows."""
        mean = self.node("ReduceMean", [x, "last_axis"], f"{name}.mean", keepdims=1)
        centred = self.node("Sub", [x, mean], f"{name}.centred")
        inputs = [centred, self.value(f"{name}.gain", gain)]
        return self.node("SimplifiedLayerNormalization", inputs, name, axis=-1, epsilon=EPSILON)


def pair_safe(weight: Array) -> tuple[Array, Array]:
    """Weights in int8 with a scale per column, such that neighbours of one sign never exceed 128 together."""
    even, odd = weight[0::2], weight[1::2]
    together = np.where(even * odd > 0, np.abs(even + odd), 0).max(axis=0)
    scale = np.maximum(np.abs(weight).max(axis=0) / 127, together / 127.5).astype(np.float32)
    scale[scale == 0] = 1  # the column of a neuron that runs in fp32
    quantised = np.clip(np.rint(weight / scale), -127, 127).astype(np.int8)
    pairs = quantised[0::2].astype(int) + quantised[1::2]
    alike = quantised[0::2].astype(int) * quantised[1::2] > 0
    assert np.abs(pairs[alike]).max() * 255 < 2**15
    return quantised, scale


def folded(offset: Array, weight: Array) -> Array:
    """What an offset of the input adds to the output. Summed without BLAS, so that the bytes are the same anywhere."""
    return (offset.astype(np.float64)[:, None] * weight).sum(axis=0)


def quieter(loudness: Array, weight: Array) -> Array:
    """The power of two by which each input channel is divided."""
    factor = BALANCE * np.log2(np.maximum(loudness, 1e-3)) - (1 - BALANCE) * np.log2(np.abs(weight).max(axis=1))
    return np.exp2(np.rint(factor - factor.mean())).astype(np.float32)


def balanced(graph: Graph, x: str, weight: Array, loudness: Array, name: str) -> tuple[str, Array]:
    """Input and weights with the loud channels made quieter; their product is the same."""
    factor = quieter(loudness, weight)
    divided = graph.node("Mul", [x, graph.value(f"{name}.quiet", 1 / factor)], f"{name}.input")
    return divided, weight * factor[:, None]


def calibrated(bert: Any, weights: Weights, read: Callable[[], object]) -> dict[str, Array]:  # noqa: ANN401  # torch's
    """The largest size of each channel at the input of each matrix while the fp32 model reads, less the offset of the
    norm before it."""
    reached: dict[str, Array] = {}

    def watch(name: str, offset: Array) -> Any:  # noqa: ANN401  # torch's
        def hook(_: object, inputs: Any) -> None:  # noqa: ANN401  # torch's
            channels = inputs[0].numpy().reshape(-1, inputs[0].shape[-1])
            reached[name] = np.maximum(reached.get(name, 0), np.abs(channels - offset).max(axis=0))

        return bert.get_submodule(name).register_forward_pre_hook(hook)

    offset, hooks = weights["embeddings.LayerNorm.bias"], []
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        hooks.append(watch(f"{layer}.attention.self.query", offset))
        hooks.append(watch(f"{layer}.intermediate.dense", weights[f"{layer}.attention.output.LayerNorm.bias"]))
        hooks.append(watch(f"{layer}.output.dense", 0))
        offset = weights[f"{layer}.output.LayerNorm.bias"]
    read()
    for hook in hooks:
        hook.remove()
    return reached


def embedded(graph: Graph, weights: Weights, *, two_texts: bool) -> str:
    """Word pieces to vectors; the word table in int8 with a scale per row. `second` marks the pieces of a second
    text."""
    words = weights["embeddings.word_embeddings.weight"]
    scale = (np.abs(words).max(axis=1, keepdims=True) / 127).astype(np.float32)
    places = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    graph.value("words", np.rint(words / scale).astype(np.int8))
    graph.value("words.scale", scale)
    graph.value("places", places[:WINDOW])
    graph.node("Cast", [graph.node("Gather", ["words", "input_ids"], "pieces.int8")], "pieces", to=TensorProto.FLOAT)
    scaled = graph.node("Mul", ["pieces", graph.node("Gather", ["words.scale", "input_ids"], "pieces.scale")], "word")
    length = graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    place = graph.node("Slice", ["places", graph.value("start", np.array([0])), length, "start"], "place")
    placed = graph.node("Add", [scaled, place], "embedded")
    if not two_texts:
        return placed
    first, second = weights["embeddings.token_type_embeddings.weight"]
    graph.value("texts", np.stack([np.zeros_like(first), second - first]))  # the first's is in the places already
    return graph.node("Add", [placed, graph.node("Gather", ["texts", "second"], "text")], "embedded.two")


def attention(graph: Graph, x: str, offset: Array, part: Weights, loudness: Array) -> str:
    """Self-attention of one layer, up to the sum with its input."""
    name = f"attention{part['number']}"
    kinds = [f"attention.self.{kind}" for kind in ("query", "key", "value")]
    weight = np.concatenate([part[f"{kind}.weight"].T for kind in kinds], axis=1)
    bias = np.concatenate([part[f"{kind}.bias"] for kind in kinds]) + folded(offset, weight)
    divided, weight = balanced(graph, x, weight, loudness, name)
    joint = graph.linear(divided, weight, bias, f"{name}.qkv")
    parts = [f"{name}.{letter}" for letter in "qkv"]
    graph.nodes.append(helper.make_node("Split", [joint], parts, name=f"{name}.split", axis=2, num_outputs=3))
    context = graph.node("MultiHeadAttention", parts, f"{name}.context", domain=CONTRIB, num_heads=HEADS)
    out = "attention.output.dense"
    output = graph.linear(context, part[f"{out}.weight"].T, part[f"{out}.bias"] + offset, f"{name}.output")
    return graph.node("Add", [output, x], f"{name}.sum")


def feed_forward(graph: Graph, x: str, offset: Array, part: Weights, loudness: tuple[Array, Array]) -> str:
    """The feed-forward half of one layer, up to the sum with its input."""
    name = f"forward{part['number']}"
    inner, outer = part["intermediate.dense.weight"].T.copy(), part["output.dense.weight"].T.copy()
    bias = part["intermediate.dense.bias"] + folded(offset, inner)
    residual = x
    loud = np.flatnonzero(loudness[1] > LOUD)
    if len(loud):
        step = graph.node("MatMul", [x, graph.value(f"{name}.loud.inner", inner[:, loud])], f"{name}.loud.matmul")
        loud_bias = graph.value(f"{name}.loud.bias", bias[loud].astype(np.float32))
        step = graph.node("Add", [step, loud_bias], f"{name}.loud.add")
        step = graph.node("Gelu", [step], f"{name}.loud.gelu", domain=CONTRIB)
        step = graph.node("MatMul", [step, graph.value(f"{name}.loud.outer", outer[loud])], f"{name}.loud")
        residual = graph.node("Add", [x, step], f"{name}.kept")
        inner[:, loud] = bias[loud] = outer[loud] = 0
    divided, inner = balanced(graph, x, inner, loudness[0], name)
    step = graph.linear(divided, inner, bias, f"{name}.inner")
    step = graph.node("Gelu", [step], f"{name}.gelu", domain=CONTRIB)
    step = graph.linear(step, outer, part["output.dense.bias"] + offset, f"{name}.outer")
    return graph.node("Add", [step, residual], f"{name}.sum")


def encoded(
    graph: Graph, weights: Weights, loudness: dict[str, Array], *, two_texts: bool = False
) -> tuple[str, Array]:
    """The encoder: a vector for each word piece, less the offset of the last norm."""
    graph.value("last_axis", np.array([-1]))
    x = graph.norm(embedded(graph, weights, two_texts=two_texts), weights["embeddings.LayerNorm.weight"], "norm")
    offset = weights["embeddings.LayerNorm.bias"]
    for number in range(LAYERS):
        prefix = f"encoder.layer.{number}."
        part = {key.removeprefix(prefix): array for key, array in weights.items() if key.startswith(prefix)}
        part["number"] = number
        total = attention(graph, x, offset, part, loudness[f"{prefix}attention.self.query"])
        x = graph.norm(total, part["attention.output.LayerNorm.weight"], f"attention{number}.norm")
        offset = part["attention.output.LayerNorm.bias"]
        loud = loudness[f"{prefix}intermediate.dense"], loudness[f"{prefix}output.dense"]
        total = feed_forward(graph, x, offset, part, loud)
        x = graph.norm(total, part["output.LayerNorm.weight"], f"forward{number}.norm")
        offset = part["output.LayerNorm.bias"]
    return x, offset


def build(weights: Weights, loudness: dict[str, Array]) -> onnx.ModelProto:
    """The embedder: `input_ids` of one text in, one unit vector out."""
    graph = Graph()
    x, offset = encoded(graph, weights, loudness)
    mean = graph.node("ReduceMean", [x, graph.value("pieces_axis", np.array([1]))], "mean", keepdims=0)
    pooled = graph.node("Add", [mean, graph.value("offset", offset)], "pooled")
    graph.node("LpNormalization", [pooled], "embedding", axis=1, p=2)
    output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, WIDTH])
    return _model(graph, "all-MiniLM-L6-v2-int8", ["input_ids"], output)


def build_pair(weights: Weights, loudness: dict[str, Array], head: Array, bias: Array, name: str) -> onnx.ModelProto:
    """The reader of two texts: `input_ids` of both and `second` (0 or 1 for each piece) in; for each piece one number
    a column of `head` out."""
    graph = Graph()
    x, offset = encoded(graph, weights, loudness, two_texts=True)
    product = graph.node("MatMul", [x, graph.value("head", head.astype(np.float32))], "product")
    head_bias = (bias + folded(offset, head)).astype(np.float32)
    graph.node("Add", [product, graph.value("head.bias", head_bias)], "scores")
    output = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, "pieces", head.shape[1]])
    return _model(graph, name, ["input_ids", "second"], output)


def _model(graph: Graph, name: str, inputs: list[str], output: onnx.ValueInfoProto) -> onnx.ModelProto:
    input_infos = [helper.make_tensor_value_info(input_name, TensorProto.INT64, [1, "pieces"]) for input_name in inputs]
    body = helper.make_graph(graph.nodes, name, input_infos, [output], graph.initializers)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=10, producer_name="lectern")
