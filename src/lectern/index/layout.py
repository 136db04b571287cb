"""How a collection lies on a Qdrant server: shards and their copies, what is in memory, and how the nearest chunks are
found. A new collection is made as the operator configured it. One that differs is a fault that the doctor names."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from lectern.domain.errors import ConfigError, IndexMismatch, ProviderRefused
from lectern.index import schema
from lectern.index.nodes import CLIENT_ERRORS, error_of

log = logging.getLogger("lectern.index")

Quantization = Literal["none", "scalar", "binary"]
Schemas = dict[str, models.PayloadSchemaType | models.KeywordIndexParams]
CHUNK_ID = "chunk_id"
GENERATION = "generation"
CONFLICT = 409
GRAPH_LINKS = 16  # of a point in the graph of its book: Qdrant's own number
OVERSAMPLING = 2.0  # candidates by quantized vectors, for each that the exact ones then choose


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What the operator configured."""

    shards: int | None = None  # None: one for each node
    replicas: int = 1
    write_consistency: int = 1
    on_disk: bool = False
    quantization: Quantization = "none"
    graph_per_book: bool = True
    exact_below: int = 50_000  # chunks of a book; a larger one is searched through its graph


def search_params(layout: Layout, chunks: int) -> models.SearchParams:
    """How the nearest of so many chunks are found: exactly, as in the embedded index, unless the book is large."""
    if chunks < layout.exact_below:
        ignored = models.QuantizationSearchParams(ignore=True)
        return models.SearchParams(exact=True, quantization=ignored)
    rescored = models.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING)
    return models.SearchParams(quantization=rescored)


async def create(client: AsyncQdrantClient, collection: str, dimensions: int, layout: Layout) -> None:
    """Make the collection, unless another process has just made it."""
    try:
        await client.create_collection(
            collection,
            vectors_config={schema.DENSE: _dense(dimensions, layout)},
            sparse_vectors_config={schema.LEXICAL: _sparse(layout)},
            shard_number=layout.shards,
            replication_factor=layout.replicas,
            write_consistency_factor=layout.write_consistency,
            on_disk_payload=layout.on_disk,
            hnsw_config=_graph(layout),
            quantization_config=_quantization(layout),
        )
    except UnexpectedResponse as exc:
        if exc.status_code != CONFLICT and not await client.collection_exists(collection):
            raise
    await add_indexes(client, collection, payload_schemas())


async def check(client: AsyncQdrantClient, collection: str, dimensions: int | None) -> list[str]:
    """Refuse a collection that is not ours; let one of an older version take the terms' weights as they come. Returns
    the fields whose payload index is missing; an empty collection gets its own."""
    info = await client.get_collection(collection)
    vectors: Any = info.config.params.vectors
    dense = vectors.get(schema.DENSE) if isinstance(vectors, dict) else None
    if dense is None or (dimensions is not None and dense.size != dimensions):
        raise IndexMismatch(
            f"the collection {collection!r} on the server was not made by Lectern for {dimensions} dimensions; "
            "set QDRANT_COLLECTION_NAME to another name"
        )
    words = (info.config.params.sparse_vectors or {}).get(schema.LEXICAL)
    if words is not None and words.modifier == models.Modifier.IDF:
        plain = {schema.LEXICAL: models.SparseVectorParams(modifier=models.Modifier.NONE)}
        await client.update_collection(collection, sparse_vectors_config=plain)
    missing = _missing(info)
    if missing and not info.points_count:  # whoever made it was killed, or is making them
        await add_indexes(client, collection, missing)
        return []
    return missing


async def check_nodes(client: AsyncQdrantClient, layout: Layout) -> None:
    """Refuse a cluster that has fewer nodes than a write must reach, those that are down included. A key for one
    collection alone may not count them."""
    if layout.write_consistency == 1:
        return
    try:
        status: Any = await client.cluster_status()
    except CLIENT_ERRORS as exc:
        if not isinstance(error_of(exc), ProviderRefused):
            raise
        log.warning(
            "the nodes of the Qdrant server could not be counted: QDRANT_API_KEY may not read /cluster. Check that "
            "there are at least %d (LECTERN_QDRANT_WRITE_CONSISTENCY)",
            layout.write_consistency,
        )
        return
    nodes = len(status.peers) if status.status == "enabled" else 1
    if nodes < layout.write_consistency:
        raise ConfigError(
            f"LECTERN_QDRANT_WRITE_CONSISTENCY is {layout.write_consistency}, but the Qdrant server has {nodes} "
            f"node{'s' * (nodes > 1)}, and each holds one copy. Lower the setting, or add nodes"
        )


def payload_schemas() -> Schemas:
    """Every field that has a payload index."""
    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    keywords = dict.fromkeys((*schema.KEYWORD_FIELDS, CHUNK_ID), models.PayloadSchemaType.KEYWORD)
    integers = dict.fromkeys((*schema.INTEGER_FIELDS, GENERATION), models.PayloadSchemaType.INTEGER)
    return {schema.TENANT_FIELD: tenant, **keywords, **integers}


async def missing_indexes(client: AsyncQdrantClient, collection: str) -> list[str]:
    """The fields that have no payload index."""
    return _missing(await client.get_collection(collection))


async def add_indexes(client: AsyncQdrantClient, collection: str, fields: Iterable[str]) -> None:
    """Make the payload indexes of these fields; one that is there is left alone."""
    schemas = payload_schemas()
    for name in fields:
        await client.create_payload_index(collection, name, field_schema=schemas[name])


async def differences(client: AsyncQdrantClient, collection: str, layout: Layout) -> list[str]:
    """In what the collection differs from what is configured, by the settings' names."""
    configured = {
        "LECTERN_QDRANT_SHARDS": layout.shards,
        "LECTERN_QDRANT_REPLICAS": layout.replicas,
        "LECTERN_QDRANT_WRITE_CONSISTENCY": layout.write_consistency,
        "LECTERN_QDRANT_ON_DISK": layout.on_disk,
        "LECTERN_QDRANT_QUANTIZATION": layout.quantization,
        "LECTERN_QDRANT_GRAPH_PER_BOOK": layout.graph_per_book,
    }
    config: Any = (await client.get_collection(collection)).config
    shards, copies = config.params.shard_number, await _copies(client, collection)
    actual = {
        "LECTERN_QDRANT_SHARDS": shards if layout.shards else None,
        "LECTERN_QDRANT_REPLICAS": min((len(peers) for peers in copies.values()), default=1),
        "LECTERN_QDRANT_WRITE_CONSISTENCY": config.params.write_consistency_factor or 1,
        "LECTERN_QDRANT_ON_DISK": bool(config.params.vectors[schema.DENSE].on_disk),
        "LECTERN_QDRANT_QUANTIZATION": _kind_of(config.quantization_config),
        "LECTERN_QDRANT_GRAPH_PER_BOOK": config.hnsw_config.m == 0,
    }
    return [
        f"{name} is {configured[name]}, the collection has {actual[name]}"
        for name in configured
        if actual[name] != configured[name]
    ]


async def mend(client: AsyncQdrantClient, collection: str, layout: Layout) -> None:
    """Give the collection what is configured; the server rebuilds in the background. The number of shards stays."""
    await client.update_collection(
        collection,
        collection_params=models.CollectionParamsDiff(
            replication_factor=layout.replicas,
            write_consistency_factor=layout.write_consistency,
            on_disk_payload=layout.on_disk,
        ),
        vectors_config={schema.DENSE: models.VectorParamsDiff(on_disk=layout.on_disk)},
        hnsw_config=_graph(layout),
        quantization_config=_quantization(layout) or models.Disabled.DISABLED,
    )
    for shard, peers in (await _copies(client, collection)).items():
        status: Any = await client.cluster_status()
        others = [int(peer) for peer in status.peers if int(peer) not in peers]
        for peer in others[: max(layout.replicas - len(peers), 0)]:
            copy = models.ReplicateShard(shard_id=shard, from_peer_id=peers[0], to_peer_id=peer)
            await client.cluster_collection_update(collection, models.ReplicateShardOperation(replicate_shard=copy))


async def _copies(client: AsyncQdrantClient, collection: str) -> dict[int, list[int]]:
    """The nodes that hold each shard, or are getting it; nothing of a server that is no cluster."""
    status = await client.cluster_status()
    if status.status != "enabled":
        return {}
    info = await client.collection_cluster_info(collection)
    places = [(shard.shard_id, info.peer_id) for shard in info.local_shards]
    places += [(shard.shard_id, shard.peer_id) for shard in info.remote_shards]
    copies: dict[int, list[int]] = {}
    for shard, peer in sorted(places):
        copies.setdefault(shard, []).append(peer)
    return copies


def _missing(info: models.CollectionInfo) -> list[str]:
    return sorted(payload_schemas().keys() - info.payload_schema.keys())


def _dense(dimensions: int, layout: Layout) -> models.VectorParams:
    windows = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    return models.VectorParams(
        size=dimensions, distance=models.Distance.COSINE, multivector_config=windows, on_disk=layout.on_disk
    )


def _sparse(layout: Layout) -> models.SparseVectorParams:
    return models.SparseVectorParams(index=models.SparseIndexParams(on_disk=layout.on_disk))  # terms come weighted


def _graph(layout: Layout) -> models.HnswConfigDiff:
    """Graphs of books alone, or one of all: every search is of one book."""
    if layout.graph_per_book:
        return models.HnswConfigDiff(m=0, payload_m=GRAPH_LINKS, on_disk=layout.on_disk)
    return models.HnswConfigDiff(m=GRAPH_LINKS, payload_m=GRAPH_LINKS, on_disk=layout.on_disk)


def _quantization(layout: Layout) -> models.ScalarQuantization | models.BinaryQuantization | None:
    """Quantized vectors stay in memory; the exact ones choose among what they propose."""
    match layout.quantization:
        case "scalar":
            scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
            return models.ScalarQuantization(scalar=scalar)
        case "binary":
            return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
        case "none":
            return None


def _kind_of(quantization: Any) -> str:  # noqa: ANN401  # one of the client's many
    for kind in ("scalar", "binary"):
        if getattr(quantization, kind, None) is not None:
            return kind
    return "none" if quantization is None else "another"
