"""Documents written by hand to break a reader of YAML: each gets its answer, with a place, at once."""

# ruff: noqa: E501, RUF001 - tables of odd texts

from __future__ import annotations

from collections.abc import Iterator

import pytest
from config_samples import Project, config, read

from export_gate.config import Config

BIG = 1 << 19
LOOKALIKES = ("\uff56ersion", "vers\u0131on", "ver\u017fion", "v\u0435rsion", "version\u200b", "\u2060version",
              "version\u202e", "\u2066version\u2069", "ve\u0301rsion", "version\u00ad", "versıon", "𝐯ersion")  # fmt: skip
STRANGE = ("\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u00a0", "\u2028", "\u2029", "\u0085", "\u3000", "\ufffd",
           "\ufdfa", "\U000e0041", "\U0010ffff", "e" + "\u0301" * 500, "\u1100" * 50, "👩‍👩‍👧‍👦")  # fmt: skip
TAGS = ("!!python/object/apply:os.system ['true']", "!!python/name:os.system", "!!binary aGk=", "!!timestamp 2001-01-01",
        "!!set {a: , b: }", "!!omap [a: 1]", "!!pairs [a: 1]", "!!str 1", "!!int '1'", "!!float 1", "!!bool yes", "!!null x",
        "!!map {}", "!!seq []", "!own {}", "!<tag:yaml.org,2002:str> 1", "! x", "!e!x y")  # fmt: skip
NUMBERS = ("1e999", "-1e999", "1e-999", "9" * 400, "-" + "9" * 400, "0o777", "0777", "0x1F", "0b11", "1_000", "1:30", "190:20:30",
           "+1", "1.", ".5", "1e5", "1E+5", ".inf", "-.INF", ".nan", "1e", "0x", "--1", "2001-01-01", "2001-12-14t21:59:43.10-05:00",
           "١٢٣", "1٫5", "²", "Ⅷ", "1e１")  # fmt: skip
WORDS = ("yes", "No", "on", "OFF", "y", "~", "null", "Null", "True", "TRUE", "true", "=", "<<", "*", "&", "?", "-", ":", "|", ">",
         "%", "@", "`", "'", '"', "{", "}", "[", "]", ",", "#", "---", "...", "!", "\t", "\\", "''", '""')  # fmt: skip
ESCAPES = (
    r"\ud800",
    r"\udfff",
    r"\ud800\udc00",
    r"\0",
    r"\x00",
    r"\x1b[31m",
    r"\u202e",
    r"\UFFFFFFFF",
    r"\U00110000",
    r"\q",
    "\\",
)
KEYS = ("? [a, b]\n: 1", "? {a: 1}\n: 2", "? |\n  long\n: 1", ": 1", "'': 1", "~: 1", "? \n: ", "1: 2", "1.5: 2", "true: 1",
        "2001-01-01: 1", "[a]: 1", "{a: 1}: 2", "*a : 1", "&a k: *a", "!!str k: 1", "a: 1\na: 2", "version: 1\n'version': 1",
        'version: 1\n"ver\\u0073ion": 1')  # fmt: skip
ANCHORS = ("&a [*a]", "&a {k: *a}", "&a {? *a : 1}", "*missing", "&a x\nb: *a\nc: &a y\nd: *a", "&a &b x", "&a", "[&a x, *a, *b]",
           "{<<: *a}", "{<<: {<<: {<<: {}}}}", "{<<: [1, 2]}", "{<<: x}", "{<<: [{a: 1}, {a: 2}]}", "{<<: , <<: }",
           "&\u202ea x", "&a.b-c x", "&" + "a" * 5000 + " x")  # fmt: skip


def documents() -> Iterator[tuple[str, bytes]]:
    """Name and content of each."""
    texts: dict[str, str] = {}
    texts |= {
        f"key that looks like another {i}": config().replace("version", word) for i, word in enumerate(LOOKALIKES)
    }
    texts |= {
        f"strange text in a name {i}": config().replace("  m:", f"  'm{mark}':") for i, mark in enumerate(STRANGE)
    }
    texts |= {
        f"strange text in a value {i}": config().replace("pkg.mod", f"pkg{mark}mod") for i, mark in enumerate(STRANGE)
    }
    texts |= {f"strange text in a dim {i}": config(dims=f'{{"n{mark}": {{max: 4}}}}') for i, mark in enumerate(STRANGE)}
    texts |= {f"tag {tag}": config(x=tag) for tag in TAGS}
    texts |= {f"number {number[:20]}": config(dims=f"{{n: {{min: 2, max: {number}}}}}") for number in NUMBERS}
    texts |= {f"word {word!r}": config(more=f"    timeout: {word}") for word in WORDS}
    texts |= {f"escape {escape}": config(more=f'    kwargs: {{k: "{escape}", "{escape}": 1}}') for escape in ESCAPES}
    texts |= {f"key {key[:20]!r}": f"{key}\n" for key in KEYS}
    texts |= {f"anchor {anchor[:20]!r}": f"a: {anchor}\n" for anchor in ANCHORS}
    texts |= {f"path {path!r}": config(more=f'    controls: {{data: [{{path: "{path}"}}]}}') for path in PATHS}
    texts |= {f"factory {place!r}": config().replace("pkg.mod:make", f'"{place}"') for place in FACTORIES}
    texts |= dict(LARGE)
    yield from ((name, text.encode("utf-8", "surrogatepass")) for name, text in texts.items())
    yield from BYTES.items()


PATHS = ("../../etc/passwd", "/etc/passwd", "data/../../x.npz", "~/x.npz", "C:\\\\x.npz", "\\\\\\\\host\\\\x.npz", "data\\n.npz",
         "data\\0.npz", "data\\e[31m.npz", "file:///etc/passwd", "data", "", ".", "a" * 300 + ".npz", "/" * 300, "data/\\u202egpj.npz",
         "/proc/self/environ", "/dev/zero", "\\uD800.npz")  # fmt: skip
FACTORIES = ("", ":", "a:", ":b", "a:b:c", "a b:c", "../x.py:f", "/etc/x.py:f", "x.py", "os:system\\n", "a:b()", "a:__import__('os')",
             "a\\0:b", "a.:b", ".a:b", "а.b:c", "C:\\\\x.py:f", "x.py:f.g.h")  # fmt: skip
LARGE = {
    "scalar of half a mebibyte": config().replace("pkg.mod", "p" * BIG),
    "quoted scalar of half a mebibyte": config().replace("pkg.mod", f'"{"p" * BIG}"'),
    "folded scalar": "version: >\n" + "  word\n" * 60_000,
    "literal scalar": "version: |\n" + "  word\n" * 60_000,
    "100,000 keys": "".join(f"k{i}: 0\n" for i in range(100_000)),
    "100,000 keys in flow": "{" + ", ".join(f"k{i}: 0" for i in range(90_000)) + "}",
    "100,000 kwargs": config(more="    kwargs: {" + ", ".join(f"k{i}: 0" for i in range(80_000)) + "}"),
    "100,000 documents": "--- 1\n" * 100_000,
    "100,000 directives": "%YAML 1.1\n" * 100_000,
    "100,000 anchors": "".join(f"k{i}: &a{i} 0\n" for i in range(60_000)),
    "one anchor, 100,000 aliases": "a: &a [1]\nb: [" + "*a, " * 100_000 + "]",
    "100,000 merges": "a: &a {k: 1}\nb: {" + "<<: *a, " * 80_000 + "}",
    "merges of one list": "a: &a {k: 1}\nb: {<<: [" + "*a, " * 80_000 + "]}",
    "closing brackets": "]" * BIG,
    "braces": "{" * BIG,
    "braces that close": "{" * 5000 + "}" * 5000,
    "keys within keys": "".join("? " for _ in range(100_000)),
    "nested deeper each line": "".join(" " * i + "a:\n" for i in range(1400)),
    "quotes that do not end": 'a: "' + "x\n" * 100_000,
    "comments": "# x\n" * 150_000,
    "spaces": " " * BIG,
    "tabs": "\t" * BIG,
    "colons": ":" * BIG,
    "dashes": "-" * BIG,
    "dash, space": "- " * 200_000 + "\n",
    "escapes": 'a: "' + "\\u0041" * 80_000 + '"',
    "anchors of one value": "a: " + "&a " * 100_000,
    "tags of one value": "a: " + "!!str " * 100_000,
}
BYTES = {
    "NUL": config().encode().replace(b"pkg", b"p\0g"),
    "only NUL": b"\0" * 1000,
    "ends of lines by CR alone": config().encode().replace(b"\n", b"\r"),
    "ends of lines by CR LF": config().encode().replace(b"\n", b"\r\n"),
    "ends of lines mixed": config().encode().replace(b"\n", b"\r\n", 3).replace(b"\n", b"\r", 1),
    "indented by tabs": config().encode().replace(b"  ", b"\t"),
    "UTF-16": config().encode("utf-16"),
    "UTF-16 without mark": config().encode("utf-16-le"),
    "UTF-32": config().encode("utf-32"),
    "byte order mark": b"\xef\xbb\xbf" + config().encode(),
    "latin-1": config().encode().replace(b"pkg", b"p\xe9g"),
    "overlong": config().encode().replace(b"pkg", b"p\xc0\xafg"),
    "half a surrogate": config().encode().replace(b"pkg", b"p\xed\xa0\x80g"),
    "cut in a character": config().encode() + b"# \xf0\x9f\x98",
    "beyond Unicode": b"a: \xf4\x90\x80\x80\n",
    "escape sequence": config().encode().replace(b"pkg", b"p\x1b[2Jg"),
    "backspaces": config().encode().replace(b"pkg", b"p\x08\x08g"),
    "DEL": config().encode().replace(b"pkg", b"p\x7fg"),
    "nothing": b"",
    "end of document": b"...\n",
    "two documents": config().encode() + b"---\n" + config().encode(),
    "JSON": b'{"version": 1, "models": {}}',
    "gzip": bytes.fromhex("1f8b0800000000000003") + bytes(range(256)),
    "ELF": b"\x7fELF\x02\x01\x01" + bytes(64),
    "a mebibyte and one": b"#" * ((1 << 20) + 1),
}
VALID = {
    "number 0o777": "an octal number of YAML 1.2",
    "number 0777": "a decimal number of YAML 1.2",
    "number 0x1F": "a hexadecimal number",
    "path 'data'": "a folder of images",
    "path '.'": "the same",
    "factory '../x.py:f'": "a factory is code, which reaches everything anyway",
    "factory '/etc/x.py:f'": "the same",
    "factory 'x.py:f.g.h'": "an attribute of an attribute",
    "scalar of half a mebibyte": "a module with a long name",
    "ends of lines by CR alone": "YAML has them",
    "ends of lines by CR LF": "Windows has them",
    "ends of lines mixed": "editors make them",
}
"""Documents that are what they say, and why."""
DOCUMENTS = dict(documents())
BATCHES = [list(DOCUMENTS)[at : at + 16] for at in range(0, len(DOCUMENTS), 16)]


def test_there_are_two_hundred():
    """The documents are as many as promised."""
    assert len(DOCUMENTS) >= 200


@pytest.mark.slow
@pytest.mark.parametrize("names", BATCHES, ids=range(len(BATCHES)))
def test_a_hostile_document_is_answered(names: list[str], project: Project):
    """There is no traceback, it takes at most a second, and the answer is a config or a list of places."""
    answers = {name: read(DOCUMENTS[name]) for name in names}
    loaded = {name for name, answer in answers.items() if isinstance(answer, Config)}
    assert loaded == {name for name in names if name in VALID}
