"""Programs that measure on this machine's GPU. Each says with ``--help`` what it writes.

``kernels`` measures our kernels against torch's, ``library`` the calls of torch's libraries,
``collectives`` those of two GPUs, ``launched`` which kernels a library call starts.
"""
