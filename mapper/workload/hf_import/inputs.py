"""Tensors that a model of ``transformers`` is called with, sized by its configuration.

Every argument that is known here has a function that lists the layouts that models use for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mapper.workload.hf_import.spec import HfModel

#: Colours of an image, where the configuration does not say.
_CHANNELS = 3

#: Height and width of an image, where neither the call nor the configuration says.
_IMAGE = 224

#: Frames of a film, where the configuration does not say.
_FRAMES = 16

#: Samples of sound a second, where the configuration does not say, and frames of a spectrogram
#: (one every 10 ms, as is usual for speech).
_SAMPLES_PER_SECOND = 16000
_SPECTRA_PER_SECOND = 100

#: Frequencies of a spectrogram, where the configuration does not say.
_BINS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A network that has been built, its configuration, and what was asked for."""

    network: Any
    config: Any
    model: HfModel

    @property
    def batch(self) -> int:
        return int(self.model.chosen["batch"])

    @property
    def seq(self) -> int:
        return int(self.model.chosen["seq"])

    @property
    def seconds(self) -> int:
        return int(self.model.chosen["seconds"])

    def number(self, *names: str, default: int) -> int:
        """The first of these fields that the configuration or one of its parts has."""
        for name in names:
            for config in parts_of(self.config):
                value = getattr(config, name, None)
                if isinstance(value, int) and value > 0:
                    return int(value)
        return default

    @property
    def image(self) -> tuple[int, int]:
        size: Any = self.model.chosen.get("image")
        for config in parts_of(self.config):
            size = size or getattr(config, "image_size", None)
        match size or _IMAGE:
            case int(side) | [int(side)] | (int(side),):
                return side, side
            case {"height": height, "width": width} | [height, width] | (height, width):
                return int(height), int(width)
        return _IMAGE, _IMAGE

    @property
    def channels(self) -> int:
        return self.number("num_channels", "in_channels", "in_chans", default=_CHANNELS)

    @property
    def frames(self) -> int:
        return self.number("num_frames", "frames_per_clip", default=_FRAMES)

    @property
    def patch(self) -> int:
        return self.number("patch_size", default=16)

    @property
    def grid(self) -> tuple[int, int]:
        """Patches of an image, down and across."""
        height, width = self.image
        return max(height // self.patch, 1), max(width // self.patch, 1)


def required_arguments(network: Any) -> list[str]:
    """Arguments of the call that have no default."""
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    parameters = inspect.signature(network.forward).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]


def parts_of(config: Any) -> list[Any]:
    """A configuration and those inside it, outer ones first."""
    found = [config]
    for part in found:
        values = vars(part).values() if hasattr(part, "to_dict") else ()
        found += [value for value in values if hasattr(value, "to_dict")]
    return found


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(shape)


def _tokens(asked: Asked) -> list[Tensor]:
    return [torch.zeros(asked.batch, asked.seq, dtype=torch.int64)]


def _images(asked: Asked) -> list[Tensor]:
    """One for each text: as one picture, a film, a pair or a list of pictures, or as patches."""
    height, width = asked.image
    picture = (asked.channels, height, width)
    down, across = asked.grid
    patch = asked.channels * asked.patch**2
    if _is_packed(asked):
        return [_packed_patches(asked)]
    return [
        _zeros(asked.batch, *picture),
        _zeros(asked.batch, asked.frames, *picture),
        _zeros(asked.batch, 1, *picture),
        _zeros(asked.batch, 2, *picture),
        _zeros(asked.batch, down * across, patch),
        _zeros(asked.batch, 1, down * across, patch),
    ]


def _is_packed(asked: Asked) -> bool:
    """Whether patches of all images are rows of one matrix, and a table says where each ends."""
    return any(name.endswith("grid_thw") for name in required_arguments(asked.network))


def _packed_patches(asked: Asked) -> Tensor:
    down, across = asked.grid
    depth = asked.number("temporal_patch_size", "patch_temporal", default=1)
    width = asked.channels * depth * asked.patch**2
    return _zeros(asked.batch * down * across, width)


def _grid(asked: Asked) -> list[Tensor]:
    """Frames, rows and columns of patches of each image; its numbers are needed."""
    return [torch.tensor([(1, *asked.grid)] * asked.batch, device="cpu")]


def _merge_sizes(asked: Asked) -> list[Tensor]:
    return [torch.ones(asked.batch, dtype=torch.int64, device="cpu")]


def _films(asked: Asked) -> list[Tensor]:
    return [_zeros(asked.batch, asked.frames, asked.channels, *asked.image)]


def _sounds(asked: Asked) -> list[Tensor]:
    """Samples, with or without channels; some models take spectrograms under the same name."""
    rate = asked.number("sampling_rate", "sample_rate", default=_SAMPLES_PER_SECOND)
    samples = rate * asked.seconds
    channels = asked.number("audio_channels", "channels", default=1)
    long = asked.number("max_length", default=_SPECTRA_PER_SECOND * asked.seconds)
    spectrum = _zeros(asked.batch, long, asked.number("num_mel_bins", default=_BINS))
    plain = _zeros(asked.batch, samples)
    channelled = _zeros(asked.batch, channels, samples)
    return [plain, channelled, spectrum] if _has_no_bins(asked) else [spectrum, plain, channelled]


def _has_no_bins(asked: Asked) -> bool:
    return asked.number("num_mel_bins", default=0) == 0


_BIN_FIELDS = (
    *("num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel", "input_feat_size"),
    *("mel_bins", "n_mels", "num_mels", "feature_size", "input_dim"),
)


def _spectrograms(asked: Asked) -> list[Tensor]:
    """Frequencies and frames in either order, with and without a channel."""
    bins = asked.number(*_BIN_FIELDS, default=_BINS)
    frames = _SPECTRA_PER_SECOND * asked.seconds
    if positions := asked.number("max_source_positions", default=0):
        # Two frames of a spectrogram for each position of the encoder.
        fixed = [_zeros(asked.batch, bins, 2 * positions)]
    else:
        fixed = []
    stacked = bins * asked.number("num_stacked_frames", default=1)
    even = frames // 128 * 128 or 128
    return [
        *fixed,
        _zeros(asked.batch, frames, stacked),
        _zeros(asked.batch, bins, frames),
        _zeros(asked.batch, 1, frames, bins),
        _zeros(asked.batch, even, bins),
        _zeros(asked.batch, bins, even),
        _zeros(asked.batch, 1, 1024 - 23, 64),
        _zeros(bins, frames),
    ]


def _sound_masks(asked: Asked) -> list[Tensor]:
    sounds = _spectrograms(asked)
    lengths = dict.fromkeys(size for sound in sounds for size in sound.shape[1:])
    return [
        torch.ones(asked.batch, length, dtype=kind)
        for length in lengths
        for kind in (torch.bool, torch.int64)
    ]


def _past_values(asked: Asked) -> list[Tensor]:
    lags = getattr(asked.config, "lags_sequence", None) or [0]
    past = asked.number("context_length", "prediction_length", default=asked.seq) + max(lags)
    size = asked.number("num_input_channels", "input_size", default=1)
    several = [_zeros(asked.batch, past, size)]
    return [*([_zeros(asked.batch, past)] if size == 1 else []), *several]


def _time_features(asked: Asked) -> list[Tensor]:
    """What the feature size counts beyond lags and static values: location and scale are two."""
    lags = getattr(asked.config, "lags_sequence", None) or [0]
    count = asked.number("num_time_features", default=0)
    past = asked.number("context_length", "prediction_length", default=asked.seq) + max(lags)
    return [_zeros(asked.batch, past, count)]


def _rows(*fields: str) -> Callable[[Asked], list[Tensor]]:
    """A vector for each token; how long it is, the first of these fields says."""

    def make(asked: Asked) -> list[Tensor]:
        width = asked.number(*fields, "hidden_size", default=1)
        return [_zeros(asked.batch, asked.seq, width), _zeros(asked.batch, width, asked.seq)]

    return make


def _hidden(asked: Asked) -> list[Tensor]:
    return [_packed_patches(asked)] if _is_packed(asked) else _rows()(asked)


def _latents(asked: Asked) -> list[Tensor]:
    side = asked.number("num_latents", "query_length", default=asked.seq)
    width = asked.number("hidden_size", default=1)
    return [
        _zeros(asked.batch, width, asked.seq),
        _zeros(asked.batch, asked.seq, width),
        _zeros(asked.batch, side, width),
    ]


def _ones(width: int | None = None) -> Callable[[Asked], list[Tensor]]:
    """A one for each token, or so many."""

    def make(asked: Asked) -> list[Tensor]:
        more = () if width is None else (width,)
        return [torch.ones(asked.batch, asked.seq, *more, dtype=torch.int64)]

    return make


def _flat_patches(asked: Asked) -> list[Tensor]:
    """Pixels of a patch after its row and its column."""
    return [_zeros(asked.batch, asked.seq, 2 + asked.channels * asked.patch**2)]


def _patch_masks(asked: Asked) -> list[Tensor]:
    down, across = asked.grid
    return [
        torch.ones(asked.batch, down * across, dtype=torch.int64),
        torch.ones(asked.batch, *asked.image, dtype=torch.int64),
    ]


def _patch_shapes(asked: Asked) -> list[Tensor]:
    return [torch.tensor([asked.grid] * asked.batch, device="cpu")]


def _patch_places(asked: Asked) -> list[Tensor]:
    down, across = asked.grid
    return [torch.zeros(asked.batch, down * across, 2, dtype=torch.int64)]


Maker = Callable[[Asked], Sequence[Tensor]]

#: What each argument of a call can look like, the likeliest first.
MAKERS: Mapping[str, Maker] = {
    "input_ids": _tokens,
    "decoder_input_ids": _tokens,
    "qformer_input_ids": _tokens,
    "classes_input_ids": _tokens,
    "tasks_input_ids": _tokens,
    "attention_mask": _ones(),
    "classes_attention_mask": _ones(),
    "tasks_attention_mask": _ones(),
    "bbox": _ones(4),
    "pixel_values": _images,
    "high_res_pixel_values": _images,
    "prompt_pixel_values": _images,
    "prompt_masks": _images,
    "pixel_values_videos": _films,
    "input_values": _sounds,
    "input_features": _spectrograms,
    "audio_mel": _spectrograms,
    "input_features_mask": _sound_masks,
    "audio_mel_mask": _sound_masks,
    "decoder_input_values": _rows("num_mel_bins"),
    "past_values": _past_values,
    "past_observed_mask": _past_values,
    "past_time_features": _time_features,
    "past_values_padding": _past_values,
    "hidden_states": _hidden,
    "inputs_embeds": _rows(),
    "query_embeds": _rows(),
    "noise_embeds": _rows(),
    "context_hidden_states": _rows(),
    "latents": _latents,
    "inputs": _rows("d_model"),
    "states": _rows("state_dim"),
    "actions": _rows("act_dim"),
    "returns_to_go": lambda asked: [_zeros(asked.batch, asked.seq, 1)],
    "rewards": lambda asked: [_zeros(asked.batch, asked.seq, 1)],
    "timesteps": _tokens,
    "flattened_patches": _flat_patches,
    "pixel_attention_mask": _patch_masks,
    "patch_attention_mask": _patch_masks,
    "pixel_position_ids": _patch_places,
    "spatial_shapes": _patch_shapes,
    "grid_thw": _grid,
    "image_grid_thw": _grid,
    "merge_sizes": _merge_sizes,
}
