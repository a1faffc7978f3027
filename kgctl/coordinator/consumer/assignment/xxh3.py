"""XXH3 with 64 bits and seed 0: the hash by which Kafka notices that a group's topics have changed (KIP-1101).

Written from the published algorithm (XXH3_64bits of xxHash 0.8). A group is hashed a few times in its life, so plainness comes
before speed: microseconds for a small topic, milliseconds for one of 10,000 partitions.
"""

from __future__ import annotations

import struct

_MASK32 = 0xFFFF_FFFF
_MASK64 = 0xFFFF_FFFF_FFFF_FFFF
_PRIME32_1, _PRIME32_2, _PRIME32_3 = 0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D
_PRIME64_1, _PRIME64_2, _PRIME64_3 = 0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9
_PRIME64_4, _PRIME64_5 = 0x85EB_CA77_C2B2_AE63, 0x27D4_EB2F_1656_67C5
_PRIME_MX1, _PRIME_MX2 = 0x1656_6791_9E37_79F9, 0x9FB2_1C65_1E98_DF25

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE = 64
_BLOCK = _STRIPE * ((len(_SECRET) - _STRIPE) // 8)
_LANES = struct.Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    """The hash of ``data``, from 0 to 2**64 - 1."""
    size = len(data)
    if size > 240:
        return _hash_long(data)
    if size > 128:
        return _hash_129_to_240(data)
    if size > 16:
        return _hash_17_to_128(data)
    return _hash_small(data)


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _fold(left: int, right: int) -> int:
    """The 128-bit product, its halves exclusive-ored."""
    product = left * right
    return (product ^ (product >> 64)) & _MASK64


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK64


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _PRIME_MX1 & _MASK64
    return value ^ (value >> 32)


def _avalanche_xxh64(value: int) -> int:
    value ^= value >> 33
    value = value * _PRIME64_2 & _MASK64
    value ^= value >> 29
    value = value * _PRIME64_3 & _MASK64
    return value ^ (value >> 32)


def _hash_small(data: bytes) -> int:
    size = len(data)
    if size > 8:
        low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
        high = _u64(data, size - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _fold(low, high)) & _MASK64)
    if size >= 4:
        keyed = (_u32(data, size - 4) + (_u32(data, 0) << 32)) ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        keyed ^= _rotate(keyed, 49) ^ _rotate(keyed, 24)
        keyed = keyed * _PRIME_MX2 & _MASK64
        keyed ^= (keyed >> 35) + size
        keyed = keyed * _PRIME_MX2 & _MASK64
        return keyed ^ (keyed >> 28)
    if size:
        combined = (data[0] << 16) | (data[size >> 1] << 24) | data[-1] | (size << 8)
        return _avalanche_xxh64(combined ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    return _avalanche_xxh64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _mix(data: bytes, at: int, secret_at: int) -> int:
    return _fold(_u64(data, at) ^ _u64(_SECRET, secret_at), _u64(data, at + 8) ^ _u64(_SECRET, secret_at + 8))


def _hash_17_to_128(data: bytes) -> int:
    """Pairs of 16 bytes, from the ends inwards."""
    size = len(data)
    mixed = size * _PRIME64_1
    for pair in range((size - 1) // 32 + 1):
        mixed += _mix(data, 16 * pair, 32 * pair) + _mix(data, size - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(mixed & _MASK64)


def _hash_129_to_240(data: bytes) -> int:
    size = len(data)
    mixed = size * _PRIME64_1
    for index in range(8):
        mixed += _mix(data, 16 * index, 16 * index)
    mixed = _avalanche(mixed & _MASK64)
    for index in range(8, size // 16):
        mixed += _mix(data, 16 * index, 16 * (index - 8) + 3)
    mixed += _mix(data, size - 16, 136 - 17)
    return _avalanche(mixed & _MASK64)


def _hash_long(data: bytes) -> int:
    """Eight lanes over stripes of 64 bytes, scrambled after each block of 16 stripes."""
    size = len(data)
    lanes = [_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1]
    last_stripe = (size - 1) // _STRIPE
    for stripe in range(last_stripe):
        within = stripe * _STRIPE % _BLOCK // _STRIPE
        _accumulate(lanes, data, stripe * _STRIPE, 8 * within)
        if within == _BLOCK // _STRIPE - 1:
            _scramble(lanes)
    _accumulate(lanes, data, size - _STRIPE, len(_SECRET) - _STRIPE - 7)
    mixed = size * _PRIME64_1
    for pair in range(4):
        left, right = lanes[2 * pair], lanes[2 * pair + 1]
        mixed += _fold(left ^ _u64(_SECRET, 11 + 16 * pair), right ^ _u64(_SECRET, 19 + 16 * pair))
    return _avalanche(mixed & _MASK64)


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    values, keys = _LANES.unpack_from(data, at), _LANES.unpack_from(_SECRET, secret_at)
    for lane, (value, key) in enumerate(zip(values, keys, strict=True)):
        keyed = value ^ key
        lanes[lane ^ 1] = (lanes[lane ^ 1] + value) & _MASK64
        lanes[lane] = (lanes[lane] + (keyed & _MASK32) * (keyed >> 32)) & _MASK64


def _scramble(lanes: list[int]) -> None:
    keys = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE)
    for lane, key in enumerate(keys):
        value = lanes[lane]
        lanes[lane] = ((value ^ (value >> 47) ^ key) * _PRIME32_1) & _MASK64
