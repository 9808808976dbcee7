"""How good labels are: accuracy, spans, likelihood, calibration, intervals and comparisons."""
