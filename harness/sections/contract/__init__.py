"""What a section is: blocks as data, and how all sections are found and made."""
