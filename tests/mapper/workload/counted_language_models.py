"""Language models whose operations and parameters are counted, and what is published of them."""

SPECS = (
    "gpt2",
    "gpt2:batch=4,seq=64",
    "llama3-8b",
    "llama3-8b:phase=decode,batch=4,ctx=256",
)

# Name: parameters of the released checkpoint, MACs (None: not stated to the unit).
PUBLISHED = {
    "gpt2": (124_439_808, None),
    "llama3-8b": (8_030_261_248, None),
}
