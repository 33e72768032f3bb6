"""Where ranks are read and measured."""
