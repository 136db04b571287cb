"""The two networks: the judge (MiniLM, 22 million weights), and its teacher (MPNet, 110 million), which is not shipped.
Both give log-odds for the whole statement, and for each of its word pieces how wrong it is."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from judge.encoding import TEACHER_PADS
from pair_network import embedder, head
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention

LAYERS, WIDTH, HEADS, EPSILON, DROPOUT = 12, 768, 12, 1e-5, 0.1  # the teacher's
BUCKETS, NEAR, FAR = 32, 8, 128  # of distances between word pieces: how many, exact up to, all alike from
VOCABULARY, PLACES = 30_527, 514
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Scores = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class PairNetwork(nn.Module):
    """Log-odds of the whole, less the soft maximum over the statement's pieces of how wrong each is."""

    def states(self, ids: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """A vector for each word piece."""
        raise NotImplementedError

    def forward(self, ids: torch.Tensor, second: torch.Tensor) -> Scores:
        """Log-odds; for each piece how wrong it is, and whether it is the statement's."""
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        states = self.drop(self.states(ids, second))
        wrong, own = self.token(states)[..., 0].float(), (places > 0) & (places < second[:, None] - 1)
        worst = torch.logsumexp(wrong.masked_fill(~own, -30.0), 1)
        return self.head(states[:, 0])[:, 0].float() - worst, wrong, own


class Judge(PairNetwork):
    """The network that is shipped; it begins as the embedder."""

    def __init__(self) -> None:
        super().__init__()
        self.bert, self.head, self.token = embedder(), head(0.0), head(-2.0)
        self.drop = nn.Dropout(DROPOUT)

    def states(self, ids: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """MiniLM's."""
        mask = ids != 0
        types = ((torch.arange(ids.shape[1], device=ids.device)[None] >= second[:, None]) & mask).long()
        result: torch.Tensor
        result = self.bert(input_ids=ids, token_type_ids=types, attention_mask=mask.long()).last_hidden_state
        return result


class Layer(nn.Module):
    """One of the teacher's."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.inner, self.outer = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.first, self.last = (nn.LayerNorm(WIDTH, eps=EPSILON) for _ in range(2))
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Attention, then the two linear maps."""
        parts = (each(x).unflatten(2, (HEADS, -1)).transpose(1, 2) for each in (self.q, self.k, self.v))
        read = scaled_dot_product_attention(*parts, attn_mask=bias, dropout_p=DROPOUT if self.training else 0.0)
        x = self.first(x + self.drop(self.o(read.transpose(1, 2).flatten(2))))
        result: torch.Tensor = self.last(x + self.drop(self.outer(gelu(self.inner(x)))))
        return result


NAMES = {
    "q": "attention.attn.q", "k": "attention.attn.k", "v": "attention.attn.v", "o": "attention.attn.o",
    "first": "attention.LayerNorm", "inner": "intermediate.dense", "outer": "output.dense",
    "last": "output.LayerNorm",
}  # fmt: skip


class Teacher(PairNetwork):
    """all-mpnet-base-v2. Its own code in place of the library's, since fused attention is twice as quick."""

    def __init__(self, origin: Path | None = None) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(PLACES, WIDTH)
        self.norm, self.distance = nn.LayerNorm(WIDTH, eps=EPSILON), nn.Embedding(BUCKETS, HEADS)
        self.layers, self.drop = nn.ModuleList(Layer() for _ in range(LAYERS)), nn.Dropout(DROPOUT)
        self.head, self.token = head(0.0, WIDTH), head(-2.0, WIDTH)
        self.distance.weight.requires_grad_(requires_grad=False)
        if origin:
            self.load_state_dict({**self.state_dict(), **_renamed(load_file(origin))})

    def states(self, ids: torch.Tensor, second: torch.Tensor) -> torch.Tensor:  # it knows no segments
        """MPNet's."""
        mask = ids != TEACHER_PADS
        x = self.drop(self.norm(self.word(ids) + self.place(torch.cumsum(mask, 1) * mask + TEACHER_PADS)))
        bias = self.distance(_buckets(ids.shape[1], ids.device)).permute(2, 0, 1)[None]
        bias = bias.masked_fill(~mask[:, None, None], -1e4)
        bias = bias.to(torch.bfloat16) if ids.is_cuda else bias
        for layer in self.layers:
            x = layer(x, bias)
        return x


def _buckets(length: int, device: torch.device) -> torch.Tensor:
    places = torch.arange(length, device=device)
    back = places[:, None] - places[None]
    size, half = back.abs(), BUCKETS // 2
    far = torch.log(size.float().clamp(min=1) / NEAR) / math.log(FAR / NEAR) * (half - NEAR)
    return (back < 0).long() * half + torch.where(size < NEAR, size, (NEAR + far.long()).clamp(max=half - 1))


def _renamed(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    names = {
        "word.weight": "embeddings.word_embeddings.weight",
        "place.weight": "embeddings.position_embeddings.weight",
        "distance.weight": "encoder.relative_attention_bias.weight",
        **{f"norm.{part}": f"embeddings.LayerNorm.{part}" for part in ("weight", "bias")},
    }
    for number in range(LAYERS):
        for name, old in NAMES.items():
            for part in ("weight", "bias"):
                names[f"layers.{number}.{name}.{part}"] = f"encoder.layer.{number}.{old}.{part}"
    return {name: weights[old] for name, old in names.items()}
