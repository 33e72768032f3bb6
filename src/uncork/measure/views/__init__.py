"""What only the page draws: views of a recording, packed, bounded in size."""
