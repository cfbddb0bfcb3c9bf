"""What papers found beside what was measured: which cells answer a finding, and by which figure."""
