"""An NVIDIA GPU in software: the driver library that IREE's runtime calls, and an interpreter of PTX behind it.

Kernels run thread by thread, to the next barrier each, in an order of warps that changes. A kernel that reads what
another thread wrote with no barrier between, that leaves its memory or waits for threads that never come is an error
which names the instruction. Functions that hardware approximates are exact here, and nothing is timed: what runs here
may still be slow on a GPU, or different in last bits. Source: PTX ISA 8.5; CUDA Driver API 11.3.
"""
