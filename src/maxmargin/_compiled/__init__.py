"""Infrastructure of compiled loops, independent of support vector machines.

The decorator, intrinsics, memory, threads and time limits.
"""
