"""Exponents of a Block of block_from(), from the norm at which it begins."""

from __future__ import annotations

from ._block import Block
from ._repeated import BlockExponents, block_exponents, collapsed_norm


def exponents_of_block(block: Block, tokens: int, threads: int = 0) -> BlockExponents:
    """From the norm that the block leaves unchanged, if there is one, else from that of the embeddings: means over its depth."""
    has_fixed_norm = block.is_repeated and collapsed_norm(block.network, tokens, threads) is not None
    return block_exponents(block, tokens, start_norm=None if has_fixed_norm else block.start_norm, threads=threads)
