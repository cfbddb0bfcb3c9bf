"""The formats of `bakeoff export`, one module a format; its name is the file's.

A module has ``of_table(table)``, where a table can be written so, ``of_results(results)``, where
all results can, or both. Text is returned as str, anything else as bytes.
"""
