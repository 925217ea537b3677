"""Image classifiers whose operations and parameters are counted, and what is published of them."""

SPECS = (
    "resnet18",
    "resnet18:batch=2,image=160,classes=10",
    "mobilenet_v1:width=0.5",
    "mobilenet_v2:image=192,width=0.75",
    "mobilenet_v3_small",
    "mobileone_s0",
    "shufflenet_v2:width=2.0",
    "efficientnet_b0:image=128",
    "densenet121:image=64",
    "vovnet27-slim",
    "hardnet39ds:image=96",
    "efficientvit_b0",
    "mcunet_vww1",
)

# Name: parameters, MACs at the default resolution. Both are those of the standard torch
# implementations: torchvision (ResNet, MobileNetV2 and V3, ShuffleNetV2, EfficientNet, DenseNet,
# timm (MobileNetV1, MobileOne with merged branches, EfficientViT) and
# pytorchcv (VoVNet, HarDNet), by `sum(p.numel() for p in model.parameters())` and torch's
# FlopCounterMode. They agree with the papers' rounded figures. MCUNet: MACs as in the model zoo of
# its authors (6.4, 12.8, 67.3, 81.8, 125.9; 6.0, 11.6, 55.8 M); their parameters are ours.
PUBLISHED = {
    "resnet18": (11_689_512, 1_814_073_344),
    "resnet34": (21_797_672, 3_663_761_408),
    "resnet50": (25_557_032, 4_089_184_256),
    "resnet101": (44_549_160, 7_801_405_440),
    "resnet152": (60_192_808, 11_513_626_624),
    "mobilenet_v1": (4_231_976, 568_740_352),
    "mobilenet_v2": (3_504_872, 300_774_272),
    "mobilenet_v3_small": (2_542_856, 56_510_400),
    "mobilenet_v3_large": (5_483_032, 216_589_760),
    "mobileone_s0": (2_078_504, 275_110_400),
    "mobileone_s1": (4_764_840, 825_057_024),
    "mobileone_s2": (7_808_168, 1_298_426_496),
    "mobileone_s3": (10_078_312, 1_895_790_592),
    "mobileone_s4": (14_838_352, 2_979_269_760),
    "shufflenet_v2": (2_278_604, 144_907_992),
    "efficientnet_b0": (5_288_548, 385_814_752),
    "efficientnet_b1": (7_794_184, 686_802_832),
    "efficientnet_b2": (9_109_994, 993_561_872),
    "efficientnet_b3": (12_233_232, 1_827_141_392),
    "efficientnet_b4": (19_341_616, 4_393_771_024),
    "efficientnet_b5": (30_389_784, 10_266_384_752),
    "efficientnet_b6": (43_040_704, 19_067_593_536),
    "efficientnet_b7": (66_347_960, 37_745_884_192),
    "densenet121": (7_978_856, 2_834_161_664),
    "densenet169": (14_149_480, 3_359_843_328),
    "densenet201": (20_013_928, 4_291_365_888),
    "vovnet27-slim": (3_525_736, 2_176_695_296),
    "vovnet39": (22_600_296, 7_072_227_328),
    "vovnet57": (36_640_296, 8_930_144_256),
    "hardnet39ds": (3_488_228, 429_471_474),
    "hardnet68ds": (4_180_602, 775_281_526),
    "hardnet68": (17_565_348, 4_246_114_304),
    "hardnet85": (36_670_212, 9_074_081_584),
    "efficientvit_b0": (3_410_008, 100_233_216),
    "efficientvit_b1": (9_102_024, 519_214_592),
    "efficientvit_b2": (24_330_712, 1_584_937_984),
    "efficientvit_b3": (48_646_056, 3_953_822_208),
    "mcunet_in0": (749_840, 6_364_224),
    "mcunet_in1": (636_232, 12_790_096),
    "mcunet_in2": (729_392, 67_287_200),
    "mcunet_in3": (737_408, 81_785_520),
    "mcunet_in4": (1_732_640, 125_874_400),
    # MACs: mlcommons/tiny's reference .tflite files; parameters are ours
    "mlperf_kws": (23_180, 2_656_768),
    "mlperf_ic": (77_946, 12_501_632),
    "mlperf_ad": (265_864, 264_192),
    "mcunet_vww0": (368_970, 5_958_400),
    "mcunet_vww1": (432_746, 11_578_816),
    "mcunet_vww2": (639_258, 55_771_280),
}

# With other widths, by the same implementations.
PUBLISHED_WIDTHS = {
    "mobilenet_v1:width=0.25": (470_072, 41_030_272),
    "mobilenet_v1:width=0.75": (2_585_560, 325_400_448),
    "mobilenet_v2:width=0.35": (1_677_128, 59_285_808),
    "mobilenet_v2:width=1.4": (6_108_776, 582_195_824),
    "mobilenet_v3_large:width=0.5": (1_734_576, 64_962_192),
    "mobilenet_v3_small:width=0.75": (1_653_920, 39_115_576),
    "shufflenet_v2:width=0.5": (1_366_792, 40_476_448),
    "shufflenet_v2:width=1.5": (3_503_624, 295_759_392),
    "shufflenet_v2:width=2.0": (7_393_996, 583_253_464),
}
