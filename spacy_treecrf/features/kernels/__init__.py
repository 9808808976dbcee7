"""Compiled loops over tokens: capital runs, repeats, phrases, key tables, windows.

Only features imports them; they import nothing of the package.
"""
