"""Whether a document is what a schema says: the part of JSON Schema that the report's own uses."""

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

Schema = Mapping[str, Any]
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def misfits(value: object, schema: Schema, root: Schema, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield each field that is not as it must be, and what is there instead as JSON; ``""`` where nothing is.

    Args:
        value: What stands in the document.
        schema: What the schema says of it.
        root: The whole schema, which references point into.
        at: The way to the value, as ``findings[0].rule``.
    """
    if "$ref" in schema:
        yield from misfits(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    if not _fits(value, schema) or ("anyOf" in schema and not any(_is(value, one, root) for one in schema["anyOf"])):
        yield at, json.dumps(value, ensure_ascii=False)
        return
    for one in schema.get("allOf", ()):
        yield from misfits(value, one, root, at)
    if isinstance(value, dict):
        yield from _below(value, schema, root, at)
    elif isinstance(value, list):
        for number, item in enumerate(value if "items" in schema else ()):
            yield from misfits(item, schema["items"], root, f"{at}[{number}]")


def _is(value: object, schema: Schema, root: Schema) -> bool:
    return next(misfits(value, schema, root), None) is None


def _below(value: Mapping[str, object], schema: Schema, root: Schema, at: str) -> Iterator[tuple[str, str]]:
    """Yield the misfits among an object's fields."""
    beside = (names for name, names in schema.get("dependentRequired", {}).items() if name in value)
    for name in chain(schema.get("required", ()), *beside):
        if name not in value:
            yield f"{at}.{name}".lstrip("."), ""
    named: Schema = schema.get("properties", {})
    patterns: Schema = schema.get("patternProperties", {})
    for name, one in value.items():
        said = [what for pattern, what in patterns.items() if re.search(pattern, name)]
        said += [named[name]] if name in named else []
        if not said and "additionalProperties" in schema:
            said = [schema["additionalProperties"]]
        for what in said:
            yield from misfits(one, what, root, f"{at}.{name}".lstrip("."))


def _fits(value: object, schema: Schema) -> bool:
    """Return whether a value by itself, what is below it left out, is as the schema says."""
    kinds = schema.get("type", ())
    if kinds and not any(_is_a(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if value not in schema.get("enum", [value]):
        return False
    if isinstance(value, str):
        return len(value) >= schema.get("minLength", 0) and bool(re.search(schema.get("pattern", ""), value))
    if isinstance(value, list):
        return len(value) >= int(schema.get("minItems", 0))
    if isinstance(value, (int, float)):
        least, most = float(schema.get("minimum", -math.inf)), float(schema.get("maximum", math.inf))
        return least <= value <= most
    return True


def _is_a(value: object, kind: str) -> bool:
    if kind in _TYPES:
        return isinstance(value, _TYPES[kind])
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    is_figure = -sys.float_info.max <= value <= sys.float_info.max  # and no integer that no float could hold
    return is_figure and (kind == "number" or isinstance(value, int))
