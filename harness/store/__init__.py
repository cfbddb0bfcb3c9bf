"""Run directories: where every file lies, and the tables read from them."""
