"""What compiled loops are made of, independent of support vector machines:
decorator, memory, threads and limits.
"""
