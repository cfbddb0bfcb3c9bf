"""Do all frameworks compute the same network?"""
