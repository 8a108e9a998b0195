"""Parts of attack.py: problems, a judge in long double, and what is asked of the library."""
