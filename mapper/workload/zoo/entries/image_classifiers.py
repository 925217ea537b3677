"""Image classifiers."""

from __future__ import annotations

from dataclasses import replace

from mapper.workload.parameters import Parameter
from mapper.workload.zoo.entry import BATCH, CLASSES, DTYPE, ZooEntry, image

_WIDTHS = ("0.25", "0.35", "0.5", "0.75", "1.0", "1.4")

#: Default resolution of EfficientNet B0 to B7 (authors' implementation).
_EFFICIENTNET_IMAGES = (224, 240, 260, 300, 380, 456, 528, 600)


def _width(*choices: str) -> Parameter:
    return Parameter(
        name="width", help="factor of all channel counts", default="1.0", choices=choices
    )


_RESNETS = tuple(
    ZooEntry(
        name=f"resnet{depth}",
        description=f"image classifier, {depth} layers, {millions} M parameters",
        family="resnet",
        function="resnet",
        fixed={"depth": depth},
        parameters=(BATCH, image(), CLASSES, DTYPE),
    )
    for depth, millions in ((18, 11.7), (34, 21.8), (50, 25.6), (101, 44.5), (152, 60.2))
)

_MOBILENETS = (
    ZooEntry(
        name="mobilenet_v1",
        description="image classifier of depthwise separable convolutions, 4.2 M parameters",
        family="mobilenet",
        function="mobilenet_v1",
        parameters=(BATCH, image(), _width(*_WIDTHS), CLASSES, DTYPE),
    ),
    ZooEntry(
        name="mobilenet_v2",
        description="image classifier of inverted residuals, 3.5 M parameters",
        family="mobilenet",
        function="mobilenet_v2",
        parameters=(BATCH, image(), _width(*_WIDTHS), CLASSES, DTYPE),
    ),
    *(
        ZooEntry(
            name=f"mobilenet_v3_{variant}",
            description=f"image classifier of gated inverted residuals, {millions} M parameters",
            family="mobilenet",
            function="mobilenet_v3",
            fixed={"variant": variant},
            parameters=(BATCH, image(), _width(*_WIDTHS), CLASSES, DTYPE),
        )
        for variant, millions in (("small", 2.5), ("large", 5.5))
    ),
    *(
        ZooEntry(
            name=f"mobileone_{size}",
            description=f"image classifier, branches merged as deployed, {millions} M parameters",
            family="mobileone",
            function="mobileone",
            fixed={"size": size},
            parameters=(BATCH, image(), CLASSES, DTYPE),
        )
        for size, millions in (("s0", 2.1), ("s1", 4.8), ("s2", 7.8), ("s3", 10.1), ("s4", 14.8))
    ),
    ZooEntry(
        name="shufflenet_v2",
        description="image classifier with shuffled channels, 2.3 M parameters",
        family="shufflenet",
        function="shufflenet_v2",
        parameters=(BATCH, image(), _width("0.5", "1.0", "1.5", "2.0"), CLASSES, DTYPE),
    ),
)

_EFFICIENTNETS = tuple(
    ZooEntry(
        name=f"efficientnet_b{size}",
        description=f"image classifier of gated inverted residuals, {millions} M parameters",
        family="efficientnet",
        function="efficientnet",
        fixed={"size": size},
        parameters=(BATCH, image(default=_EFFICIENTNET_IMAGES[size]), CLASSES, DTYPE),
    )
    for size, millions in enumerate((5.3, 7.8, 9.1, 12.2, 19.3, 30.4, 43.0, 66.3))
)

_DENSE = (
    *(
        ZooEntry(
            name=f"densenet{depth}",
            description=f"image classifier, all layers joined, {millions} M parameters",
            family="densenet",
            function="densenet",
            fixed={"depth": depth},
            parameters=(BATCH, image(), CLASSES, DTYPE),
        )
        for depth, millions in ((121, 8.0), (169, 14.1), (201, 20.0))
    ),
    *(
        ZooEntry(
            name=f"vovnet{size}",
            description=f"image classifier, layers joined once a block, {millions} M parameters",
            family="vovnet",
            function="vovnet",
            fixed={"size": size},
            parameters=(BATCH, image(), CLASSES, DTYPE),
        )
        for size, millions in (("27-slim", 3.5), ("39", 22.6), ("57", 36.6))
    ),
    *(
        ZooEntry(
            name=f"hardnet{size}",
            description=f"image classifier with harmonic connections, {millions} M parameters",
            family="hardnet",
            function="hardnet",
            fixed={"size": size},
            parameters=(BATCH, image(), CLASSES, DTYPE),
        )
        for size, millions in (("39ds", 3.5), ("68ds", 4.2), ("68", 17.6), ("85", 36.7))
    ),
)

_TRANSFORMERS = (
    *(
        ZooEntry(
            name=f"efficientvit_{size}",
            description=f"image classifier with linear attention, {millions} M parameters",
            family="efficientvit",
            function="efficientvit",
            fixed={"size": size},
            parameters=(BATCH, image(), CLASSES, DTYPE),
        )
        for size, millions in (("b0", 3.4), ("b1", 9.1), ("b2", 24.3), ("b3", 48.6))
    ),
)

#: Variant: what it was searched for, its resolution and its classes.
_MCUNETS = {
    "in0": ("ImageNet", 48, 1000),
    "in1": ("ImageNet", 96, 1000),
    "in2": ("ImageNet", 160, 1000),
    "in3": ("ImageNet", 176, 1000),
    "in4": ("ImageNet", 160, 1000),
    "vww0": ("visual wake words", 64, 2),
    "vww1": ("visual wake words", 80, 2),
    "vww2": ("visual wake words", 144, 2),
}

_TINY = tuple(
    ZooEntry(
        name=f"mcunet_{variant}",
        description=f"MCUNet for microcontrollers, {task} at {side} x {side}",
        family="mcunet",
        function="mcunet",
        fixed={"variant": variant},
        parameters=(BATCH, image(default=side), replace(CLASSES, default=classes), DTYPE),
    )
    for variant, (task, side, classes) in _MCUNETS.items()
)

ENTRIES = (*_RESNETS, *_MOBILENETS, *_EFFICIENTNETS, *_DENSE, *_TRANSFORMERS, *_TINY)
