"""Rules of the class data_loading."""
