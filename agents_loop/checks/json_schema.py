"""The one place that names `jsonschema`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from agents_loop.errors import ConfigurationError, MissingExtraError
from agents_loop.messages import JsonValue


def schema_problems(schema: Mapping[str, Any]) -> Callable[[JsonValue], Iterable[str]]:
    """A function that gives what of a value is not as the schema says.

    Raises:
        MissingExtraError: `jsonschema` is not installed.
        ConfigurationError: The schema is none.
    """
    try:
        jsonschema, referencing = import_module("jsonschema"), import_module("referencing")
    except ImportError as error:
        raise MissingExtraError("json_check with a schema", "jsonschema") from error
    validator_class = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        validator_class.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ConfigurationError(f"schema is no JSON schema, at {error.json_path}: {error.message}") from error
    # An empty registry: without one the library fetches what a reference names.
    validator = validator_class(schema, registry=referencing.Registry(), format_checker=validator_class.FORMAT_CHECKER)

    def problems(value: JsonValue) -> Iterable[str]:
        found = sorted(validator.iter_errors(value), key=lambda error: (error.json_path, error.message))
        return [f"{error.json_path}: {error.message}" for error in found]

    return problems
