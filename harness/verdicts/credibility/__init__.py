"""May it be believed that what was timed trains, and at that rate: what each trial shows itself."""
