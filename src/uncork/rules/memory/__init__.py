"""Rules of the class memory."""
