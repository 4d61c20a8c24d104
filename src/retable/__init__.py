"""The tables of ICML 2024 papers, made again: one room per paper over `retable.common`."""
