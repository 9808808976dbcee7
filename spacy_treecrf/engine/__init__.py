"""Arrays in, arrays out: sequences, chain inference, trees and boosting. Never imports spaCy."""
