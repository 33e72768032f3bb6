"""One catalogue of texts for Python and the page."""
