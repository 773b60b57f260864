"""The functions of SQL: one definition each, with its types, its vectorised kernel and its Spark expression.

`registry.lookup(name)` finds them. docs/sql/functions.md is made from them.
"""
