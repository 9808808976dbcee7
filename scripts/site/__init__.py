"""What mkdocs needs beside the pages of docs/."""
