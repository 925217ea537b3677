"""Parameters of named workloads: ``name:key=value,key=value`` parsed and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arch.datatypes import ALLOWED, SPARSITY_ALLOWED, datatype, sparsity
from arch.errors import InputError, Problem, unknown

Value = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One ``key=value``: an integer in a range, one of ``choices``, or a text that ``check`` takes.

    ``default`` ``None`` means that the value must be given, or, with ``default_text``, that it
    follows from the others in the stated way.
    """

    name: str
    help: str
    default: Value | None = None
    default_text: str | None = None
    low: int = 1
    high: int = 2**31 - 1
    multiple_of: int = 1
    choices: tuple[str, ...] = ()
    check: Callable[[str], object] | None = None
    texts: str = ""
    """What ``check`` takes, for people."""

    @property
    def required(self) -> bool:
        return self.default is None and self.default_text is None

    @property
    def allowed(self) -> str:
        if self.choices:
            return ", ".join(self.choices)
        if self.check is not None:
            return self.texts
        step = f", a multiple of {self.multiple_of}" if self.multiple_of > 1 else ""
        return f"an integer {self.low} to {self.high}{step}"

    def parse(self, text: str) -> Value:
        """The value of ``text``; ``ValueError`` saying what is allowed."""
        if self.choices:
            if text not in self.choices:
                raise ValueError(unknown("value", text, self.choices))
            return text
        if self.check is not None:
            self.check(text)
            return text
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            raise ValueError(f"{text!r} is not an integer; allowed {self.allowed}")
        value = int(text)
        if not self.low <= value <= self.high or value % self.multiple_of:
            raise ValueError(f"{text} is not allowed; allowed {self.allowed}")
        return value


def dtype_parameter(default: str, help: str = "format of activations and weights") -> Parameter:
    return Parameter(name="dtype", help=help, default=default, check=datatype, texts=ALLOWED)


def format_parameters(default: str) -> tuple[Parameter, ...]:
    """How operands are stored: activations, weights, and the zeros that weights have."""
    return (
        dtype_parameter(default, "format of activations"),
        Parameter(
            name="weights",
            help="format of weights, as in weights=int4_g128",
            default_text="as dtype",
            check=datatype,
            texts=ALLOWED,
        ),
        Parameter(
            name="sparsity",
            help="zeros of the weights that are not stored",
            default="1",
            check=sparsity,
            texts=SPARSITY_ALLOWED,
        ),
    )


def layers_parameter(layers: int) -> Parameter:
    """Of a model with so many layers."""
    return Parameter(
        name="layers", help="the first so many layers", default_text=f"{layers}", high=layers
    )


def only_one_of(name: str, given: Mapping[str, str], exclusive: Sequence[str]) -> None:
    """``InputError`` if several of these parameters are given, each of which decides alone."""
    both = [key for key in exclusive if key in given]
    if len(both) > 1:
        message = f"{' and '.join(both)} exclude each other; allowed: one of them"
        raise InputError(Problem(message, where=f"workload {name}"))


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """``"gemm:M=4,N=4"`` as the name and its raw parameters."""
    name, _, rest = spec.partition(":")
    return name.strip(), split_pairs(spec, rest)


def split_pairs(spec: str, text: str) -> dict[str, str]:
    """``"M=4,N=4"`` as a dictionary; ``spec`` is what errors are about."""
    problems: list[Problem] = []
    pairs: dict[str, str] = {}
    for item in text.split(",") if text else []:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not (key and equals and value):
            problems.append(Problem(f"{item!r} is not key=value", where=f"workload {spec!r}"))
        elif key in pairs:
            problems.append(Problem(f"{key} is given twice", where=f"workload {spec!r}"))
        pairs[key] = value
    if problems:
        raise InputError(problems)
    return pairs


def parse_parameters(
    name: str, parameters: Sequence[Parameter], given: Mapping[str, str]
) -> dict[str, Value]:
    """Checked values of everything given or with a default; all problems at once."""
    where = f"workload {name}"
    known = {parameter.name: parameter for parameter in parameters}
    problems = [
        Problem(unknown("parameter", key, list(known)), where=where)
        for key in given
        if key not in known
    ]
    values: dict[str, Value] = {}
    for parameter in parameters:
        try:
            value = _value(parameter, given)
        except InputError as error:
            problems += [replace(p, where=f"{where}: {parameter.name}") for p in error.problems]
            continue
        except ValueError as error:
            problems.append(Problem(str(error), where=f"{where}: {parameter.name}"))
            continue
        if value is not None:
            values[parameter.name] = value
    if problems:
        raise InputError(problems)
    return values


def _value(parameter: Parameter, given: Mapping[str, str]) -> Value | None:
    if parameter.name in given:
        return parameter.parse(given[parameter.name])
    if parameter.required:
        raise ValueError(f"must be given ({parameter.help}); allowed {parameter.allowed}")
    return parameter.default


def usage(name: str, parameters: Iterable[Parameter]) -> str:
    """``gemm:M=,N=,K=,dtype=int8``: how to write it, defaults filled in."""
    shown = (f"{p.name}={'' if p.default is None else p.default}" for p in parameters)
    return f"{name}:{','.join(shown)}"
