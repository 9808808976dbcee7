"""Trees for rows with missing values: surrogate splits, weighted rows, averaged leaves.

Rooms that boost may import it; it imports trees and encoding.
"""
