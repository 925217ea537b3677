"""Builds a model of ``transformers`` on the meta device, with inputs, and imports it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from arch.errors import InputError, Problem, unknown
from mapper.workload.graph import Workload
from mapper.workload.hf_import import experts
from mapper.workload.hf_import.calls import likely_call, other_call
from mapper.workload.hf_import.inputs import Asked, parts_of
from mapper.workload.hf_import.packed import tracing
from mapper.workload.hf_import.pretended import on_cpu
from mapper.workload.hf_import.spec import PARAMETERS, HfModel
from mapper.workload.torch_import.export import Traced, trace
from mapper.workload.torch_import.importing import import_module
from mapper.workload.writing.experts import skewed_loads, traced_loads

#: The name under which transformers knows our attention.
_ATTENTION = "tilewright"

#: What language models call their key-value cache; newer versions of the library have the first.
_CACHE_ARGUMENTS = ("cache", "past_key_values")


def import_model(model: HfModel) -> Workload:
    """The workload of a model in the chosen phase."""
    with torch.device("meta"):
        return import_built_model(model)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltModel:
    """A network that has been built, what of it is traced, and its inputs."""

    network: nn.Module
    module: nn.Module
    inputs: Mapping[str, Any]
    device: str = "meta"


def import_built_model(model: HfModel) -> tuple[Workload, BuiltModel]:
    """The workload and what it was imported from, on the device that torch uses at the moment."""
    transformers = _transformers(model)
    config = _configuration(transformers, model)
    loads = _Loads(model)
    network = _built(transformers, config, model, loads)
    network.eval()
    _without_warnings(network)
    for part in parts_of(config):
        if hasattr(part, "use_cache"):
            part.use_cache = False
    _use_own_norms(network)
    workload, built = _imported(network, config, model)
    loads.check_asked()
    if model.chosen["phase"] == "decode":
        _check_caches(workload, model)
    return replace(workload, folded=(_description(built), *workload.folded)), built


def _without_warnings(network: nn.Module) -> None:
    """Models look at the values of texts only to warn about padding."""
    name = "warn_if_padding_and_no_attention_mask"
    for module in network.modules():
        if hasattr(module, name):
            setattr(module, name, lambda *_, **__: None)


class _NotTracedError(InputError):
    """The model wants to be called in another way, or on another device."""


#: What torch raises where a model makes tensors of its own on the CPU.
_TWO_DEVICES = "FakeTensorDeviceMismatchError"


def _imported(network: Any, config: Any, model: HfModel) -> tuple[Workload, BuiltModel]:
    if model.chosen["phase"] == "decode":
        built = _decoding(network, config, model)
        return _lowered(built, model), built
    asked, options = Asked(network=network, config=config, model=model), _options(network, model)
    built = BuiltModel(network=network, module=network, inputs=likely_call(asked, options))
    try:
        return _lowered(built, model), built
    except _NotTracedError as error:
        if _TWO_DEVICES in str(error):
            built = replace(built, inputs=on_cpu(network, built.inputs), device="cpu")
        else:
            call = other_call(asked, options)
            if call is None:
                raise
            built = replace(built, inputs=call)
    return _lowered(built, model), built


def _lowered(built: BuiltModel, model: HfModel) -> Workload:
    def traced() -> Traced:
        try:
            with torch.device(built.device), tracing(built.inputs):
                return trace(built.module, (), built.inputs)
        except InputError:
            raise
        except Exception as error:
            what = "the model cannot be traced with these inputs alone"
            raise _NotTracedError(_problem(model, what, error)) from error

    return import_module(built.module, traced, name=model.title, dtype=model.dtype)


def _description(built: BuiltModel) -> str:
    """What was built and called, so that nobody takes it for more."""
    tensors = [
        f"{name} {'x'.join(map(str, value.shape))}"
        for name, value in built.inputs.items()
        if isinstance(value, Tensor)
    ]
    name = f"built as {type(built.network).__name__} of transformers"
    return f"{name}, called with {', '.join(tensors)}" if tensors else name


def _check_caches(workload: Workload, model: HfModel) -> None:
    if not any(operator.kind == "cache_update" for operator in workload.operators):
        message = "the model takes key-value caches but does not use them; is it a decoder?"
        raise InputError(Problem(message, where=f"workload {model.title}"))


def _transformers(model: HfModel) -> Any:
    try:
        import transformers
    except ImportError as error:
        message = "needs the package transformers: pip install 'tilewright[transformers]'"
        raise InputError(Problem(message, where=f"workload {model.title}")) from error
    library: Any = transformers
    library.logging.set_verbosity_error()
    library.AttentionInterface.register(_ATTENTION, _attention)
    return library


class _Loads:
    """Tokens of each expert: from the trace, or falling with the skew."""

    def __init__(self, model: HfModel) -> None:
        self._model = model
        self._asked = False

    def __call__(self, tokens: int, count: int, chosen: int) -> tuple[int, ...]:
        self._asked = True
        trace_name = self._model.chosen.get("trace")
        if trace_name is not None:
            return traced_loads(Path(str(trace_name)), tokens, count, chosen)
        return skewed_loads(tokens, count, chosen, float(self._model.chosen["skew"]))

    def check_asked(self) -> None:
        """A skew or a trace must be of something."""
        chosen = self._model.chosen
        given = "trace" if "trace" in chosen else "skew" if float(chosen["skew"]) else None
        if given is not None and not self._asked:
            message = f"{given} is given, but the model has no experts whose loads it could set"
            raise InputError(Problem(message, where=f"workload {self._model.title}"))


def _configuration(transformers: Any, model: HfModel) -> Any:
    """The configuration with the given fields, all unknown ones reported at once."""
    types = list(transformers.CONFIG_MAPPING)
    where = f"workload {model.title}"
    if model.model_type not in types:
        message = unknown("model type", model.model_type, types)
        raise InputError(Problem(message, where=where, file=model.file))
    kind = transformers.CONFIG_MAPPING[model.model_type]
    with _reported(model, "the default configuration is not valid"):
        defaults = kind()
    known = {*vars(defaults), *inspect.signature(kind.__init__).parameters}
    known |= {name for cls in kind.__mro__ for name in getattr(cls, "__annotations__", {})}
    own = {} if model.file else model.fields
    names = sorted({*known, *(parameter.name for parameter in PARAMETERS)} - {"self", "kwargs"})
    problems = [
        Problem(unknown("field", name, names), where=where) for name in own if name not in known
    ]
    if problems:
        raise InputError(problems)
    with _reported(model, "the configuration is not valid"):
        config = kind(**model.fields)
    for part in parts_of(config):
        experts.check_chosen(part, where)
    return config


def _built(transformers: Any, config: Any, model: HfModel, loads: experts.Loads) -> Any:
    """The network that the configuration names, else a language model, else the bare model."""
    if experts.register(loads):
        config._experts_implementation = experts.NAME
    with _reported(model, "the model cannot be built"), _without_initialization(transformers):
        config._attn_implementation = _ATTENTION
        try:
            return _of_its_class(transformers, config)
        except KeyError:
            # A model that looks its attention up among the library's own.
            config._attn_implementation = "eager"
            return _of_its_class(transformers, config)


def _of_its_class(transformers: Any, config: Any) -> Any:
    named = [n for n in getattr(config, "architectures", None) or () if hasattr(transformers, n)]
    if named:
        return getattr(transformers, named[0])._from_config(config)
    # Of an encoder and a decoder, the language model alone would be the decoder.
    whole = ("AutoModelForSeq2SeqLM", "AutoModelForSpeechSeq2Seq")
    kinds = whole if config.is_encoder_decoder else ("AutoModelForCausalLM",)
    # Some models have no class but those for one task.
    tasks = sorted(name for name in dir(transformers) if name.startswith("AutoModelFor"))
    for kind in (*kinds, "AutoModel", *tasks, "AutoBackbone"):
        if type(config) in getattr(getattr(transformers, kind), "_model_mapping", ()):
            return getattr(transformers, kind).from_config(config)
    return transformers.AutoModel.from_config(config)


def _without_initialization(transformers: Any) -> contextlib.AbstractContextManager[Any]:
    """Weights on the meta device have no values to choose."""
    for owner in ("initialization", "modeling_utils"):
        function = getattr(getattr(transformers, owner, None), "no_init_weights", None)
        if function is not None:
            return function()  # type: ignore[no-any-return]
    return contextlib.nullcontext()


def _use_own_norms(network: nn.Module) -> None:
    """Every library class for a root-mean-square norm as torch's, which is one operator."""
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            weights = dict(child.named_parameters())
            if type(child).__name__.endswith("RMSNorm") and list(weights) == ["weight"]:
                own = nn.RMSNorm(tuple(weights["weight"].shape), dtype=weights["weight"].dtype)
                own.weight = weights["weight"]
                setattr(parent, name, own.eval())


def _options(network: Any, model: HfModel) -> dict[str, Any]:
    """Arguments of the call that are no tensors, those that the model takes."""
    taken = inspect.signature(network.forward).parameters
    options: dict[str, Any] = {"use_cache": False} if "use_cache" in taken else {}
    if "logits_to_keep" in taken and model.chosen["logits"] == "last":
        options["logits_to_keep"] = 1
    return options


def _decoding(network: Any, config: Any, model: HfModel) -> BuiltModel:
    taken = inspect.signature(network.forward).parameters
    argument = next((name for name in _CACHE_ARGUMENTS if name in taken), None)
    if argument is None or config.is_encoder_decoder or not _has_heads(config):
        message = "only language models with a key-value cache can decode; allowed: phase=prefill"
        raise InputError(Problem(message, where=f"workload {model.title}"))
    batch, ctx = int(model.chosen["batch"]), int(model.chosen["ctx"])
    text = config.get_text_config()
    heads, sizes = _cached(text)
    caches = [
        (torch.zeros(batch, heads, ctx, sizes[0]), torch.zeros(batch, heads, ctx, sizes[1]))
        for _ in range(text.num_hidden_layers)
    ]
    token = torch.zeros(batch, 1, dtype=torch.int64)
    module = Decoding(network, ctx, argument)
    return BuiltModel(network=network, module=module, inputs={"token": token, "caches": caches})


def _has_heads(config: Any) -> bool:
    return getattr(config.get_text_config(), "num_attention_heads", None) is not None


def _cached(text: Any) -> tuple[int, tuple[int, int]]:
    """Heads of a cache, and how many elements of a position its two tensors have in each.

    Multi-head latent attention keeps the latent and the rotated part of the keys, both once.
    """
    latent = getattr(text, "kv_lora_rank", None)
    if latent:
        return 1, (latent, text.qk_rope_head_dim)
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return heads, (size, size)


class Decoding(nn.Module):
    """One new token against caches, which are inputs of the network and updated in place."""

    def __init__(self, network: nn.Module, ctx: int, argument: str) -> None:
        super().__init__()
        self.network = network
        self.ctx = ctx
        self.argument = argument

    def forward(self, token: Tensor, caches: list[tuple[Tensor, Tensor]]) -> Tensor:
        result = self.network(
            input_ids=token,
            position_ids=torch.full((1, 1), self.ctx - 1),
            use_cache=True,
            **{self.argument: Caches(caches, self.ctx)},
        )
        first: Tensor = result[0]
        return first


class Caches:
    """Keys and values of each layer, as the attention layers of transformers want to see them."""

    is_compileable = False

    def __init__(self, caches: list[tuple[Tensor, Tensor]], ctx: int) -> None:
        self._caches = caches
        self._ctx = ctx

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """The new position written over the last one; all positions are returned."""
        key, value = self._caches[layer_idx]
        return self._written(key, key_states), self._written(value, value_states)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._ctx - 1

    def _written(self, cache: Tensor, new: Tensor) -> Tensor:
        return torch.slice_scatter(cache, new, dim=2, start=self._ctx - 1, end=self._ctx)


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention as one operator; heads that share a key are not copied."""
    causal = options.get("is_causal")
    if causal is None:
        causal = getattr(module, "is_causal", True)
    result = scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        is_causal=bool(causal) and attention_mask is None and query.shape[2] > 1,
        scale=options.get("scaling"),
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return result.transpose(1, 2).contiguous(), None


@contextlib.contextmanager
def _reported(model: HfModel, what: str) -> Iterator[None]:
    """Whatever the library refuses is a mistake in the configuration."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(_problem(model, what, error)) from error


def _problem(model: HfModel, what: str, error: Exception) -> Problem:
    text = " ".join(str(error).split())
    message = f"{what}: {type(error).__name__}: {text}"
    return Problem(message, where=f"workload {model.title}", file=model.file)
