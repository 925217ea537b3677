"""Strict YAML: does a file mean exactly what it looks like?"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arch.errors import InputError
from arch.strict_yaml import parse_value, read


@pytest.fixture
def write(tmp_path: Path):
    def _write(content: str | bytes) -> Path:
        path = tmp_path / "file.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("010", 10),
        ("1e9", 1e9),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("0x10", "0x10"),
        ("-3", -3),
        (".5", 0.5),
        ("true", True),
        ("~", None),
        ("'12'", "12"),
        ('"true"', "true"),
        ("256 KiB", "256 KiB"),
        ("[int8, int16]", ["int8", "int16"]),
        ("{a: 1}", {"a": 1}),
        ("[unclosed", "[unclosed"),
        ("*alias", "*alias"),
        ("", None),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_every_key_and_item_knows_its_line(write) -> None:
    document = read(write("a: 1\nb:\n  c: [2,\n    3]\n  # comment\n  d:\n    - x\n"))
    assert document.data == {"a": 1, "b": {"c": [2, 3], "d": ["x"]}}
    assert document.line(("a",)) == 1
    assert document.line(("b", "c")) == 3
    assert document.line(("b", "c", 1)) == 4
    assert document.line(("b", "d", 0)) == 7
    assert document.line(("b", "missing")) == 2  # that of the nearest parent


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(write) -> None:
    document = read(write("\ufeffa: 1\r\nb: x\r\n"))
    assert document.data == {"a": 1, "b": "x"}
    assert document.line(("b",)) == 2


MALFORMED = [
    ("a: 1\nb: 2\na: 3\n", 3, "a: is a duplicate key; first on line 1"),
    ("x:\n  y: 1\n  y: 2\n", 3, "x.y: is a duplicate key"),
    ("", 1, "is empty"),
    ("# only a comment\n", 1, "is empty"),
    ("a:\n\tb: 1\n", 2, "indented with a tab"),
    ("a: [1, 2\n", 2, "is not valid YAML"),
    ("a: 1\n---\nb: 2\n", 2, "single document"),
    ("a: &x 1\nb: *x\n", 2, "b: anchors and aliases are not supported"),
    ("a: &x [*x]\n", 1, "anchors and aliases are not supported"),
    ("b: &x {c: 1}\na:\n  <<: *x\n", 3, "anchors and aliases are not supported"),
    ("ok: 1\na: !!python/object:os.system x\n", 2, "tags such as"),
    ("ok: 1\n2: x\n", 2, "cannot be a key"),
    ("ok: 1\n? [a]\n: b\n", 2, "a list or mapping cannot be a key"),
    (b"a: 1\nb: \xff\xfe\n", 2, "is not UTF-8"),
    ("a: 1\nb: \x07\n", 2, "control character"),
    ("[\n" * 5000, 1001, "nesting"),
    ("a: " + "[" * 40 + "]" * 40, 1, "nested more than 32 deep"),
]


@pytest.mark.parametrize(("content", "line", "message"), MALFORMED)
def test_malformed_files_are_named_with_their_line(
    write, content: str | bytes, line: int, message: str
) -> None:
    path = write(content)
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert message in str(error.value)


def test_all_duplicates_are_reported_at_once(write) -> None:
    with pytest.raises(InputError) as error:
        read(write("a: 1\na: 2\nb: 3\nb: 4\n"))
    assert [problem.line for problem in error.value.problems] == [2, 4]


def test_what_is_no_file(tmp_path: Path, write) -> None:
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="at most"):
        read(write("a: " + "x" * (1 << 21)))


@given(st.binary(max_size=200))
def test_no_bytes_are_anything_but_data_or_an_input_error(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file.yaml"
        file.write_bytes(content)
        try:
            document = read(file)
        except InputError:
            return
        assert document.line(()) is not None


@given(st.text(alphabet="ab:-[]{}&*!|>'\"# \n\t1.,?", max_size=60))
def test_no_override_text_crashes(text: str) -> None:
    parse_value(text)
