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
from mapper.workload.hf_import.spec import PARAMETERS, HfModel
from mapper.workload.torch_import.export import Traced, trace
from mapper.workload.torch_import.importing import import_module
from mapper.workload.writing.experts import skewed_loads, traced_loads

#: The name under which transformers knows our attention.
_ATTENTION = "tilewright"

#: What language models call their key-value cache; newer versions of the library have the first.
_CACHE_ARGUMENTS = ("cache", "past_key_values")

#: Colours of an image, where the configuration does not say.
_CHANNELS = 3

#: Height and width of an image, where neither the call nor the configuration says.
_IMAGE = 224


def import_model(model: HfModel) -> Workload:
    """The workload of a model in the chosen phase."""
    transformers = _transformers(model)
    config = _configuration(transformers, model)
    with torch.device("meta"):
        loads = _Loads(model)
        network = _built(transformers, config, model, loads)
        network.eval()
        _use_own_norms(network)
        run = _run(network, config, model)

        def traced() -> Traced:
            with _reported(model, "the model cannot be traced with these inputs alone"):
                return trace(run.module, (), run.inputs)

        workload = import_module(run.module, traced, name=model.title, dtype=model.dtype)
    built = f"built as {type(network).__name__} of transformers"
    workload = replace(workload, folded=(built, *workload.folded))
    loads.check_asked()
    if model.chosen["phase"] == "decode":
        _check_caches(workload, model)
    return workload


def _check_caches(workload: Workload, model: HfModel) -> None:
    if not any(operator.kind == "cache_update" for operator in workload.operators):
        message = "the model takes key-value caches but does not use them; is it a decoder?"
        raise InputError(Problem(message, where=f"workload {model.title}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What is traced, and its inputs."""

    module: nn.Module
    inputs: Mapping[str, Any]


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
    known = {*vars(kind()), *inspect.signature(kind.__init__).parameters}
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
    experts.check_chosen(config.get_text_config(), where)
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
    for kind in kinds:
        if type(config) in getattr(transformers, kind)._model_mapping:
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


def _run(network: Any, config: Any, model: HfModel) -> _Run:
    batch, seq = int(model.chosen["batch"]), int(model.chosen["seq"])
    if model.chosen["phase"] == "decode":
        return _decoding(network, config, model)
    inputs = _inputs(network, config, model, batch, seq)
    return _Run(module=network, inputs=inputs | _options(network, model))


def _inputs(network: Any, config: Any, model: HfModel, batch: int, seq: int) -> dict[str, Any]:
    match network.main_input_name:
        case "input_ids":
            tokens = torch.zeros(batch, seq, dtype=torch.int64)
            decoder = {"decoder_input_ids": tokens} if config.is_encoder_decoder else {}
            return {"input_ids": tokens, **decoder, **_image_beside(network, config, model)}
        case "input_features" if hasattr(config, "max_source_positions"):
            # Two frames of a spectrogram for each position of the encoder.
            frames = (config.num_mel_bins, 2 * config.max_source_positions)
            tokens = torch.zeros(batch, seq, dtype=torch.int64)
            return {
                "input_features": torch.zeros(batch, *frames),
                "decoder_input_ids": tokens,
            }
        case "pixel_values":
            height, width = _image_size(config, model)
            channels = getattr(config, "num_channels", _CHANNELS)
            return {"pixel_values": torch.zeros(batch, channels, height, width)}
    message = (
        f"a model whose input is {network.main_input_name} cannot be imported by name; allowed: "
        "tokens or images. Name a function that returns the module and its inputs (file.py:make)"
    )
    raise InputError(Problem(message, where=f"workload {model.title}"))


def _image_beside(network: Any, config: Any, model: HfModel) -> dict[str, Tensor]:
    """Of models that embed texts and images, one image for each text."""
    taken = inspect.signature(network.forward).parameters
    required = type(network).__name__.endswith("Model") and "pixel_values" in taken
    vision = getattr(config, "vision_config", None)
    if not required or vision is None:
        return {}
    height, width = _image_size(vision, model)
    channels = getattr(vision, "num_channels", _CHANNELS)
    return {"pixel_values": torch.zeros(int(model.chosen["batch"]), channels, height, width)}


def _image_size(config: Any, model: HfModel) -> tuple[int, int]:
    size: Any = model.chosen.get("image") or getattr(config, "image_size", _IMAGE)
    height, width = (size, size) if isinstance(size, int) else size
    return int(height), int(width)


def _options(network: Any, model: HfModel) -> dict[str, Any]:
    """Arguments of the call that are no tensors, those that the model takes."""
    taken = inspect.signature(network.forward).parameters
    options: dict[str, Any] = {"use_cache": False} if "use_cache" in taken else {}
    if "logits_to_keep" in taken and model.chosen["logits"] == "last":
        options["logits_to_keep"] = 1
    return options


def _decoding(network: Any, config: Any, model: HfModel) -> _Run:
    taken = inspect.signature(network.forward).parameters
    argument = next((name for name in _CACHE_ARGUMENTS if name in taken), None)
    has_heads = getattr(config.get_text_config(), "num_attention_heads", None) is not None
    if argument is None or config.is_encoder_decoder or not has_heads:
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
    return _Run(module=Decoding(network, ctx, argument), inputs={"token": token, "caches": caches})


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
    return result.transpose(1, 2), None


@contextlib.contextmanager
def _reported(model: HfModel, what: str) -> Iterator[None]:
    """Whatever the library refuses is a mistake in the configuration."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        message = f"{what}: {type(error).__name__}: {text}"
        where = f"workload {model.title}"
        raise InputError(Problem(message, where=where, file=model.file)) from error
