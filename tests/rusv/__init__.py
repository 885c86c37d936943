"""What the vectors and the timeline must do."""
