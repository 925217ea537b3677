"""Image classifiers whose operations and parameters are counted, and what is published of them."""

SPECS = (
    "resnet18",
    "resnet18:batch=2,image=160,classes=10",
    "resnet50",
    "mobilenet_v2",
    "mobilenet_v2:image=192",
    "vit_s",
    "vit_s:batch=3,image=96",
)

# Name: parameters, MACs (None: not stated to the unit). Parameters as torchvision states them for
# the convolutional networks, timm for ViT-S/16; MACs at 224 x 224 by torchvision's model tables,
# which give 1.81, 4.09 and 0.30 G.
PUBLISHED = {
    "resnet18": (11_689_512, 1_814_073_344),
    "resnet50": (25_557_032, 4_089_184_256),
    "mobilenet_v2": (3_504_872, 300_774_272),
    "vit_s": (22_050_664, None),
}
