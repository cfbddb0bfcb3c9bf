"""Storage as a study asks for it: tiers of a platform, folders laid out on Lustre."""
