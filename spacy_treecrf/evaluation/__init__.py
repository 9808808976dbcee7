"""Figures of annotated data: scores, intervals, significance, calibration, pictures.

The pipe imports its calibration, taggers and the command line import all; it knows no pipe.
"""
