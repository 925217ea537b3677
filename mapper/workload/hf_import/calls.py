"""Which arguments a model of ``transformers`` is called with.

Where a model leaves more than one possibility, it is run on the meta device, which takes no time,
and the first call that it accepts is taken.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from arch.errors import InputError, Problem
from mapper.workload.hf_import.inputs import MAKERS, Asked, parts_of, required_arguments
from mapper.workload.hf_import.packed import tracing, with_places
from mapper.workload.torch_import.export import quiet, trace

#: No more calls are tried than this.
_MOST_TRIED = 64

#: Tracing takes longer than running.
_MOST_TRACED = 2

#: Arguments that belong to another one, though the call may leave them out.
_COMPANIONS: Mapping[str, tuple[str, ...]] = {
    "states": ("actions", "returns_to_go", "timesteps", "attention_mask"),
    "input_values": ("decoder_input_values", "decoder_input_ids"),
    "input_features": ("decoder_input_ids",),
    "flattened_patches": ("decoder_input_ids",),
    "past_values": ("past_observed_mask",),
}

#: What a model may take beside texts, and the part of its configuration that says so.
_BESIDE: Mapping[str, tuple[str, ...]] = {
    "pixel_values": ("vision_config",),
    "high_res_pixel_values": ("high_res_vision_config",),
    "input_features": ("audio_config",),
    "input_values": ("audio_config", "speech_config"),
}

#: What models may leave out of their signature's required arguments and ask for all the same.
_WANTED_BY_SOME = (
    *("attention_mask", "bbox", "decoder_input_ids"),
    *("pixel_values", "input_features", "input_values"),
)


def likely_call(asked: Asked, options: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors that the model accepts, together with ``options``. Where there is only one
    possibility, it is not tried."""
    calls = [list(_calls(asked, names, options)) for names in _usual_arguments(asked)]
    if len(calls) == 1 and len(calls[0]) == 1:
        return calls[0][0]
    return _accepted(asked.network, calls) or calls[0][0]


def other_call(asked: Asked, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """For a model that cannot be traced with the likely call: with what some models want beside
    it, at last with attention as the library writes it."""
    usual = _usual_arguments(asked)[-1]
    taken = set(inspect.signature(asked.network.forward).parameters)
    wanted = [name for name in _WANTED_BY_SOME if name in taken and name not in usual]
    lists = [usual, *([*usual, name] for name in wanted)]
    # Layouts have been tried already: here the likeliest of each argument.
    calls = [list(_calls(asked, names, options))[:1] for names in lists]
    found = _accepted(asked.network, calls[1:])
    if found is None:
        for part in parts_of(asked.config):
            part._attn_implementation = "eager"
        found = _accepted(asked.network, calls[:2])
    return found


def _accepted(network: Any, calls: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Any] | None:
    """What does not run without values may be traced all the same, as checks of them are left
    out."""
    for layouts in calls:
        for accepts, tried in ((_runs, layouts), (_traces, layouts[:_MOST_TRACED])):
            for call in tried:
                if accepts(network, call):
                    return call
    return None


def _calls(
    asked: Asked, names: Sequence[str], options: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The likeliest first."""
    layouts = itertools.product(*(MAKERS[name](asked) for name in names))
    for tensors in itertools.islice(layouts, _MOST_TRIED):
        call = dict(zip(names, tensors, strict=True)) | dict(options)
        yield with_places(asked.network, call)


def _usual_arguments(asked: Asked) -> list[list[str]]:
    """With what may stand beside the main arguments, then those alone."""
    taken = set(inspect.signature(asked.network.forward).parameters)
    main = asked.network.main_input_name
    required = required_arguments(asked.network)
    needed = [main] if isinstance(main, str) else list(main)
    # Parts of models inherit the name of an input that they do not have.
    needed = [name for name in needed if name in taken or not required]
    needed += [name for name in required if name not in needed]
    if asked.config.is_encoder_decoder and main == "input_ids":
        needed.append("decoder_input_ids")
    for name in tuple(needed):
        needed += [n for n in _COMPANIONS.get(name, ()) if n in taken and n not in needed]
    _check_known(asked, needed)
    beside = [n for n in _beside(asked) if n in taken and n not in needed]
    return [[*needed, *beside], needed] if beside else [needed]


def _beside(asked: Asked) -> Iterator[str]:
    if asked.network.main_input_name != "input_ids":
        return
    for name, parts in _BESIDE.items():
        if any(getattr(asked.config, part, None) is not None for part in parts):
            yield name


def _check_known(asked: Asked, names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in MAKERS]
    if unknown:
        message = (
            f"a model that is called with {', '.join(unknown)} cannot be imported by name; add a "
            "function to MAKERS in mapper/workload/hf_import/inputs.py, or name a function that "
            "returns the module and its inputs (file.py:make)"
        )
        raise InputError(Problem(message, where=f"workload {asked.model.title}"))


def _runs(network: Any, call: Mapping[str, Any]) -> bool:
    try:
        with quiet(), torch.no_grad(), tracing(call):
            network(**call)
    except Exception:
        # Whatever a model raises, it does not want this call.
        return False
    return True


def _traces(network: Any, call: Mapping[str, Any]) -> bool:
    try:
        with tracing(call):
            trace(network, (), call)
    except Exception:
        return False
    return True
