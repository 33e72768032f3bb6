"""One file per form: Report to text."""
