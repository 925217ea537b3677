"""Image classifiers."""

from __future__ import annotations

from mapper.workload.zoo.entry import BATCH, CLASSES, DTYPE, ZooEntry, image

ENTRIES = (
    ZooEntry(
        name="resnet18",
        description="image classifier, 18 layers, 11.7 M parameters",
        family="resnet",
        function="resnet18",
        parameters=(BATCH, image(), CLASSES, DTYPE),
    ),
    ZooEntry(
        name="resnet50",
        description="image classifier, 50 layers, 25.6 M parameters",
        family="resnet",
        function="resnet50",
        parameters=(BATCH, image(), CLASSES, DTYPE),
    ),
    ZooEntry(
        name="mobilenet_v2",
        description="image classifier of depthwise convolutions, 3.5 M parameters",
        family="mobilenet",
        function="mobilenet_v2",
        parameters=(BATCH, image(), CLASSES, DTYPE),
        aliases=("mobilenetv2",),
    ),
    ZooEntry(
        name="vit_s",
        description="vision transformer ViT-S/16, 22 M parameters",
        family="vit",
        function="vit_s",
        parameters=(BATCH, image(16, multiple_of=16), CLASSES, DTYPE),
        aliases=("vit-s",),
    ),
)
