"""Agents and chat clients of other frameworks, each in a module of its own.

Importing one loads no SDK, but for `semantic_kernel`, whose classes derive from Semantic Kernel's.
"""
