"""What commands share: errors as lines, folders of pipelines, options of settings, tables, signals.

Commands import it; it imports whatever is below the command line.
"""
