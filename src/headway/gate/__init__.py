"""Gates: whether a run is good enough, for a pipeline that must not let a slow build through."""
