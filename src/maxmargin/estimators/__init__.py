"""Step 5, from solutions to estimators that follow scikit-learn's conventions."""
