"""
A search on the workers of a dask cluster
=========================================

`SVMSearchCV` runs its chains of fits on any backend of joblib. Here the cluster is a local one with two
workers; ``Client("tcp://scheduler:8786")`` would use one that is already there. Needs
``pip install 'maxmargin[dask]'``.
"""

from joblib import parallel_config
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC
from maxmargin.model_selection import SVMSearchCV


def main() -> None:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("dask is not installed, nothing to show: pip install 'maxmargin[dask]'.")
        return

    X, y = load_breast_cancer(return_X_y=True)
    grid = {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": [0.001, 0.01, 0.1]}
    search = SVMSearchCV(make_pipeline(StandardScaler(), SVC()), grid, n_jobs=2)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster), parallel_config(backend="dask"):
        search.fit(X, y)
    print(f"on dask: {search.best_params_}, accuracy {search.best_score_:.4f}")
    here = SVMSearchCV(search.estimator, grid).fit(X, y)
    print(f"here:    {here.best_params_}, accuracy {here.best_score_:.4f}")


if __name__ == "__main__":
    main()
