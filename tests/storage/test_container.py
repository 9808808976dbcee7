from __future__ import annotations

import errno
import hashlib
import os
import pickle
import random
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from srsly import msgpack

from spacy_treecrf.storage import container
from tests.hardening.file_limits import largest_file

MAGIC = b"\x89TREECRF\r\n"
DTYPES = ["<f4", "<f8", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "|b1"]

ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0))
)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]))
)
RESERVED = ("__array__", "__packed__", "__texts__")
NAMES = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda name: name not in RESERVED)
STATES = st.dictionaries(
    NAMES,
    st.recursive(
        PLAIN | ARRAYS | st.lists(PLAIN),
        lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
        max_leaves=8,
    ),
    max_size=5,
)

SMALL = {
    "kind": "crf",
    "rate": 0.5,
    "depth": None,
    "labels": ["B", "I", "O"],
    "forest": {"left": np.arange(6, dtype=np.int32).reshape(2, 3), "on": np.array([True, False])},
}


def seal(body: bytes, version: int = 1) -> bytes:
    """A file with this body and a right checksum."""
    start = MAGIC + struct.pack("<IQ", version, len(body))
    return start + hashlib.sha256(start + body).digest() + body


def body_of(data: bytes) -> bytes:
    return data[len(MAGIC) + 4 + 8 + 32 :]


def array_body(dtype: Any, shape: Any, data: Any, **more: Any) -> bytes:
    table = {"__array__": dtype, "shape": shape, "data": data, **more}
    return bytes(msgpack.packb({"forest": {"left": table}}, use_bin_type=True))


def assert_same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            assert_same(left, right)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, float):
        assert struct.pack("<d", a) == struct.pack("<d", b)
    else:
        assert a == b


def assert_refused(data: bytes, match: str = "") -> None:
    with pytest.raises(ValueError, match=r"^treecrf: the file 'm.bin' .*" + match):
        container.parse(data, "the file 'm.bin'")


def state_or_refusal(data: bytes) -> dict[str, Any] | None:
    """The state in these bytes, None if they are refused as they should be; fails otherwise."""
    try:
        return container.parse(data)
    except ValueError as error:
        message = str(error)
    assert message.startswith("treecrf: model data ")
    return None


@settings(deadline=None)
@given(STATES)
def test_state_survives_the_round_trip(state: dict[str, Any]) -> None:
    data = container.dump(state)
    parsed = container.parse(data)
    assert_same(parsed, state)
    assert container.dump(parsed) == data


@settings(deadline=None)
@given(ARRAYS)
def test_parsed_arrays_are_owned_aligned_contiguous_and_writable(array: np.ndarray) -> None:
    parsed = container.parse(container.dump({"a": array, "b": [array]}))
    for copy in (parsed["a"], parsed["b"][0]):
        assert type(copy) is np.ndarray
        assert copy.dtype.isnative
        assert copy.flags.aligned
        assert copy.flags.c_contiguous
        assert copy.flags.writeable
        assert copy.flags.owndata


def test_any_memory_order_and_byte_order_is_stored_the_same() -> None:
    array = np.arange(24, dtype="<i4").reshape(2, 3, 4)
    data = container.dump({"a": array})
    for other in (np.asfortranarray(array), array.astype(">i4"), array[:, ::-1][:, ::-1]):
        assert container.dump({"a": other}) == data


def test_numpy_scalars_become_plain_and_tuples_lists() -> None:
    state = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": (1, np.float64(2))}
    assert_same(
        container.parse(container.dump(state)), {"a": 0.5, "b": 3, "c": True, "d": [1, 2.0]}
    )


def test_file_layout_is_fixed() -> None:
    """A change here is a new format version."""
    array = np.array([1, 2], dtype="<u2")
    body = (
        b"\x82\xa1n\x07\xa1a\x83\xa9__array__\xa3<u2\xa5shape\x91\x02\xa4data\xc4\x04"
        + array.tobytes()
    )
    assert container.dump({"n": 7, "a": array}) == seal(body)


def nested(levels: int, innermost: Any) -> dict[str, Any]:
    for _ in range(levels - 1):
        innermost = {"x": innermost}
    return {"x": innermost}


def test_nesting_is_limited_in_the_same_way_for_writing_and_reading() -> None:
    for deepest in (nested(32, 1), nested(31, [1]), nested(30, np.zeros(2))):
        assert_same(container.parse(container.dump(deepest)), deepest)
    for too_deep in (nested(33, 1), nested(32, [1]), nested(32, np.zeros(2))):
        with pytest.raises(ValueError, match=r"^treecrf: .*'x\.x.*32 levels of nesting"):
            container.dump(too_deep)
    assert_refused(seal(msgpack.packb(nested(33, 1))), "32 levels")
    assert_refused(seal(b"\x81\xa1x" * 100_000 + b"\xc0"), "32 levels")


def cyclic() -> dict[str, Any]:
    state: dict[str, Any] = {}
    state["self"] = state
    return state


@pytest.mark.parametrize(
    ("state", "field"),
    [
        ({"a": {"b": {1, 2}}}, "'a.b'"),
        ({"a": {"b": b"raw"}}, "'a.b'"),
        ({"a": ["x", object()]}, r"'a\[1\]'"),
        ({"a": 2**64}, "'a'"),
        ({"a": [-(2**63) - 1]}, r"'a\[0\]'"),
        ({"a": 2**20_000}, "'a'"),
        ({"a": {1: "x"}}, "'a'"),
        ({"a": {"__array__": "x"}}, "'a'"),
        ({"a": np.array([None])}, "'a'.*object"),
        ({"a": np.zeros(3, dtype=np.float16)}, "'a'.*float16"),
        ({"a": np.array(["x"])}, "'a'.*<U1"),
        ({"a": np.ma.masked_array([1.0], [True])}, "'a'.*MaskedArray"),
        ({"a": 1j}, "'a'"),
        ({"a": np.datetime64("2020-01-01")}, "'a'"),
        (cyclic(), "'self.self"),
        ({"a": ["half \ud800"]}, "surrogate"),
        ({"half \ud800": 1}, "surrogate"),
        ([1], "a list of 1"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(state: Any, field: str) -> None:
    with pytest.raises(ValueError, match=f"^treecrf: .*{field}"):
        container.dump(state)


def test_every_flipped_byte_is_refused() -> None:
    data = container.dump(SMALL)
    for position in range(len(data)):
        for bits in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= bits
            assert_refused(bytes(damaged))


def test_every_truncation_and_extension_is_refused() -> None:
    data = container.dump(SMALL)
    assert_refused(b"", "is empty")
    for length in range(1, len(data)):
        assert_refused(data[:length], "is truncated")
    for extra in (b"\0", b"\n", data):
        assert_refused(data + extra, f"{len(extra)} bytes after its end")


def test_errors_say_what_is_wrong_and_what_to_do() -> None:
    body = body_of(container.dump(SMALL))
    assert_refused(b"PK\x03\x04 some zip file", "check the path")
    assert_refused(seal(body, version=3), "version 3.*update spacy-treecrf")
    assert_refused(seal(body, version=0), "version 0")
    damaged = bytearray(seal(body))
    damaged[-1] ^= 1
    assert_refused(bytes(damaged), "checksum")
    assert_refused(seal(b"\xc1"), "malformed body")
    with pytest.raises(ValueError, match=r"^treecrf: model data: expected bytes, found the text"):
        container.parse("text")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "middle of a value"),
        (b"\x81\xa1a", "middle of a value"),
        (b"\x81\xa1a\xcb\0", "middle of a value"),
        (b"\x81\xa1a\xdb\xff", "middle of a value"),
        (b"\x80\x80", "1 bytes follow"),
        (b"\x90", "table of fields"),
        (b"\xc0", "table of fields"),
        (b"\x81\xa1a\xc4\x01x", "'a' is a value of type bytes"),
        (b"\x81\xa1a\x91\xc4\x01x", r"'a\[0\]' is a value of type bytes"),
        (b"\x82\xa1a\x01\xa1a\x02", "twice"),
        (b"\x81\x01\x02", "field's name"),
        (b"\x81\xc4\x01a\x02", "field's name"),
        (b"\x81\x90\x02", "field's name"),
        (b"\x81\xa1a\xa1\xff", "utf-8"),
        (b"\x81\xa1a\xc7\x03\xffabc", "max_ext_len"),  # extension types, timestamps among them
        (b"\x81\xa1a\xd6\xffabcd", "max_ext_len"),
        (b"\x81\xa1a\xd4\x01x", "max_ext_len"),
        (b"\x81\xa1a\xc7\x00\x01", "extension type 1"),
        (b"\x81\xa1a\xc9\xff\xff\xff\xff\x01", "bytes follow its end"),
        (b"\x81\xa1a\xc9\xff\xff\xff\xff", "max_ext_len"),  # 2**32 with its type: 0
        (b"\x81\xa1a\xc1", "begins no value"),
    ],
)
def test_malformed_body_is_refused(body: bytes, reason: str) -> None:
    assert_refused(seal(body), reason)


@pytest.mark.parametrize(
    ("dtype", "shape", "data"),
    [
        ("|O", [1], b"\0" * 8),
        ("O", [1], b"\0" * 8),
        (">f4", [1], b"\0" * 4),
        ("f4", [1], b"\0" * 4),
        ("<f2", [1], b"\0" * 2),
        ("<M8[s]", [1], b"\0" * 8),
        ([["a", "<f4"]], [1], b"\0" * 4),
        (None, [1], b"\0" * 8),
        (5, [1], b"\0" * 8),
        ("<f4", [2], b"\0" * 4),
        ("<f4", [1], b"\0" * 5),
        ("<f4", [0], b"\0" * 4),
        ("<f4", [], b""),
        ("<f4", [-1], b"\0" * 4),
        ("<f4", [-1, -1], b"\0" * 4),
        ("<f4", [2**40, 2**40], b"\0" * 4),
        ("<f4", [2**63], b""),
        ("<f4", [2**62, 2**62, 0], b""),
        ("<f4", [1] * 33, b"\0" * 4),
        ("<f4", [True], b"\0" * 4),
        ("<f4", [1.0], b"\0" * 4),
        ("<f4", ["1"], b"\0" * 4),
        ("<f4", 1, b"\0" * 4),
        ("<f4", None, b"\0" * 4),
        ("<f4", [1], "\0" * 4),
        ("<f4", [4], [0, 0, 0, 0]),
        ("<f4", [1], None),
        ("|b1", [2], b"\0\2"),
    ],
)
def test_malformed_array_is_refused(dtype: Any, shape: Any, data: Any) -> None:
    assert_refused(seal(array_body(dtype, shape, data)), "malformed body")


def test_malformed_array_is_named() -> None:
    assert_refused(seal(array_body("<f4", [2], b"\0" * 4)), r"'forest\.left'.*\[2\]")
    assert_refused(seal(array_body("<f4", [1], b"\0" * 4, order="F")), r"'forest\.left'")
    top = {"__array__": "<f4", "shape": [1], "data": b"\0" * 4}
    assert_refused(seal(msgpack.packb(top, use_bin_type=True)), "found an array")


@settings(deadline=None)
@given(state=STATES, seed=st.integers(0, 2**32), edits=st.integers(1, 4))
def test_edited_body_with_right_checksum_is_a_state_or_refused(
    state: dict[str, Any], seed: int, edits: int
) -> None:
    rng = random.Random(seed)
    body = bytearray(body_of(container.dump({**state, **SMALL})))
    for _ in range(edits):
        position = rng.randrange(len(body))
        kind = rng.randrange(3)
        if kind == 0:
            body[position] = rng.randrange(256)
        elif kind == 1:
            body.insert(position, rng.randrange(256))
        else:
            del body[position : position + rng.randrange(1, 4)]
    parsed = state_or_refusal(seal(bytes(body)))
    if parsed is not None:
        assert_same(container.parse(container.dump(parsed)), parsed)


def test_every_byte_value_at_every_place_of_a_body_is_a_state_or_refused() -> None:
    body = body_of(container.dump({"a": np.array([[True]]), "b": [1.5, "é", None, -7]}))
    for position in range(len(body)):
        for value in range(256):
            edited = bytearray(body)
            edited[position] = value
            state_or_refusal(seal(bytes(edited)))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_body_is_a_state_or_refused(body: bytes) -> None:
    state_or_refusal(seal(body))


@pytest.mark.parametrize("tag", [b"\xdd", b"\xdf"])
def test_announced_lengths_allocate_nothing(tag: bytes) -> None:
    size = 100_000
    header = tag + (size // 2).to_bytes(4, "big")
    bomb = seal(b"\x81\xa1a" + header * 30 + b"\xc0" * (size // 2))
    huge = seal(b"\x81\xa1a" + tag + b"\xff" * 4)
    tracemalloc.start()
    try:
        assert_refused(bomb, "middle of a value")
        assert_refused(huge, "middle of a value")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


class _Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_pickles_inside_a_body_are_never_loaded(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap = pickle.dumps(_Trap(sprung))
    pickle.loads(trap)
    assert sprung.exists()
    sprung.unlink()

    numpy_table = {b"nd": True, b"type": "|O", b"kind": b"O", b"shape": [1], b"data": trap}
    srsly_array = msgpack.packb({"a": numpy_table}, use_bin_type=True)
    assert_refused(seal(srsly_array), "field's name")
    text_keys = {key.decode(): value for key, value in numpy_table.items()}
    assert_refused(seal(msgpack.packb({"a": text_keys}, use_bin_type=True)), "bytes outside")
    assert_refused(seal(array_body("|O", [1], trap)), "malformed body")
    assert_refused(seal(msgpack.packb({"a": trap}, use_bin_type=True)), "'a'")
    assert not sprung.exists()


def test_decoders_registered_with_srsly_are_never_called(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(
        msgpack.msgpack_decoders, "get_all", lambda: {"spy": lambda *a, **k: called.append(a)}
    )
    msgpack.unpackb(msgpack.packb({"a": 1}))
    assert called
    called.clear()
    assert_same(container.parse(container.dump(SMALL)), SMALL)
    assert not called


def test_saved_file_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "model.treecrf"
    container.save(path, {"version": "old"})
    container.save(str(path), SMALL)
    assert_same(container.read(path), SMALL)
    assert_same(container.read(str(path)), SMALL)
    assert path.read_bytes() == container.dump(SMALL)
    assert os.listdir(tmp_path) == ["model.treecrf"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and links")
def test_saved_file_has_ordinary_permissions_and_links_stay(tmp_path: Path) -> None:
    plain, folder, link = tmp_path / "plain", tmp_path / "models", tmp_path / "latest"
    plain.touch()
    folder.mkdir()
    link.symlink_to(folder / "model")
    container.save(link, SMALL)
    assert link.is_symlink()
    assert (folder / "model").stat().st_mode == plain.stat().st_mode
    assert_same(container.read(link), SMALL)


def _disk_full(*args: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _interrupted(*args: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_failed_save_keeps_the_old_file_and_leaves_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "model"
    container.save(path, {"version": "old"})
    before = path.read_bytes()
    monkeypatch.setattr(os, call, _disk_full)
    with pytest.raises(ValueError, match=r"^treecrf: cannot save .*model'.*No space left"):
        container.save(path, SMALL)
    monkeypatch.setattr(os, call, _interrupted)
    with pytest.raises(KeyboardInterrupt):
        container.save(path, SMALL)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_failed_write_keeps_the_old_file_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / "model"
    container.save(path, {"version": "old"})
    before = path.read_bytes()
    with (
        pytest.raises(ValueError, match=r"^treecrf: cannot save .*model'.*too large"),
        largest_file(10),
    ):
        container.save(path, SMALL)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_unstorable_state_does_not_touch_the_disk(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: cannot store"):
        container.save(tmp_path / "model", {"a": object()})
    assert os.listdir(tmp_path) == []


def test_saving_to_a_wrong_place_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: .*folder .*absent' does not exist; create it"):
        container.save(tmp_path / "absent" / "model", SMALL)
    with pytest.raises(ValueError, match=r"^treecrf: cannot save"):
        container.save(tmp_path, SMALL)
    assert os.listdir(tmp_path) == []


def test_reading_a_wrong_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: cannot read the model file '.*absent'.*path"):
        container.read(tmp_path / "absent")
    with pytest.raises(ValueError, match=r"^treecrf: cannot read the model file"):
        container.read(tmp_path)
    with pytest.raises(ValueError, match=r"^treecrf: cannot read the model file"):
        container.read("nul\0byte")
    path = tmp_path / "other.json"
    path.write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"^treecrf: the model file '.*other\.json' does not hold"):
        container.read(path)
    path.write_bytes(container.dump(SMALL)[:-5])
    with pytest.raises(ValueError, match=r"^treecrf: the model file '.*other\.json' is truncated"):
        container.read(path)
