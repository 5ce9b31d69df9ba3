"""What runs inside an SGLang server: the methods `processor` and `async`, shipped there as source.

A request names its processor by a short string, the same for all requests of a run, so that the server hands all their
rows over in one call. The string is a small program (`bootstrap`) and the name of a bundle. The bundle (the sources of
the harness's own modules, of the user's, and the vocabulary) is installed once a process; the server needs only the
libraries of the mask engine. From then on `runtime` puts the same maskers to work that run embedded.
"""
