"""Tests of the room `distribute`."""
