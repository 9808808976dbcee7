"""A spaCy pipeline behind HTTP: annotation and explanation as JSON, and a page for people.

The command line may import it; it imports the pipe, taggers, pages and explanations. Only `extra`
can be imported without starlette and uvicorn, the extra "serve".
"""
