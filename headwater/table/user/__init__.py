"""Functions of users as functions of SQL: their types, and how they are called on columns."""
